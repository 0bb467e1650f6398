#include "kernels/gru.h"
namespace regard {
void gru_gates(RowsOf<const float> a, RowsOf<const float> b, RowsOf<const float> c, RowsOf<float> d, RowsOf<float> e) {
  reference::gru_gates<float>(a, b, c, d, e);
}
void gru_gates_backward(RowsOf<const float> a, RowsOf<const float> b, RowsOf<const float> c, RowsOf<float> d, bool e,
                        RowsOf<float> f, RowsOf<float> g) {
  reference::gru_gates_backward<float>(a, b, c, d, e, f, g);
}
}  // namespace regard
