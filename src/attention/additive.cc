#include "attention/additive.h"
namespace regard {
void additive_query(const AdditiveItem<float>& a, std::size_t b, RowsOf<const float> c, float* d, float* e, float* f,
                    float* g) {
  reference::additive_query(a, b, c, d, e, f, g);
}
void additive_weights(const AdditiveItem<float>& a, std::size_t b, float c, float d, float* e) {
  reference::additive_weights(a, b, c, d, e);
}
void additive_query_backward(const AdditiveItem<float>& a, std::size_t b, RowsOf<const float> c, float d, float e,
                             const float* f, float* g, float* h, const AdditiveGradients<float>& i) {
  reference::additive_query_backward(a, b, c, d, e, f, g, h, i);
}
}  // namespace regard
