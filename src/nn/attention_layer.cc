#include "regard/nn/attention_layer.h"

#include <cstring>

#include "autograd/by_type.h"
#include "base/check.h"
#include "regard/nn/stack.h"

namespace regard {

AttentionLayer::AttentionLayer(const Builder& builder, std::string_view line, const AttendSizes& sizes)
    : mechanism_(line), sizes_(sizes) {
  for (const Learned& each : mechanism_.learned(sizes)) {
    Parameter* made = nullptr;
    switch (each.start) {
      case Learned::Start::kXavier:
        made = &builder.xavier(each.name, each.shape);
        break;
      case Learned::Start::kNormal:
        made = &builder.normal(each.name, each.shape, each.size);
        break;
      case Learned::Start::kUniform:
        made = &builder.uniform(each.name, each.shape, each.size);
        break;
      case Learned::Start::kZeros:
        made = &builder.zeros(each.name, each.shape);
        break;
    }
    made->frozen = !each.trains;
    learned_.push_back(made);
  }
}

AttendOptions AttentionLayer::with_learned(Tape& tape, const AttendOptions& options) const {
  check(options.learned.empty(), "AttentionLayer: what \"", mechanism_.text(), "\" learns is its own, but ",
        options.learned.size(), " tensors are given");
  AttendOptions all = options;
  const std::span<Var> learned = make_vars(tape, static_cast<std::int64_t>(learned_.size()));
  for (std::size_t i = 0; i < learned_.size(); ++i) learned[i] = tape.use(*learned_[i]);
  all.learned = learned;
  all.heads = sizes_.heads;
  all.hidden = sizes_.hidden;
  all.key_width = sizes_.key_width;
  all.key_token = sizes_.key_token;
  return all;
}

Attention AttentionLayer::operator()(Var q, Var k, Var v, const AttendOptions& options) const {
  const Var given = q.defined() ? q : options.query_tokens;
  check(given.defined(), "AttentionLayer: neither queries nor their tokens for \"", mechanism_.text(), '"');
  return attend(mechanism_, q, k, v, with_learned(given.tape(), options));
}

Var AttentionLayer::prepare_keys(Var k, const AttendOptions& options) const {
  const Var given = k.defined() ? k : options.key_tokens;
  check(given.defined(), "AttentionLayer: neither keys nor their tokens for \"", mechanism_.text(), '"');
  return regard::prepare_keys(mechanism_, k, with_learned(given.tape(), options));
}

Var with_weights(Var values) {
  check(values.shape().rank() == 4, "with_weights: values ", values.shape(),
        ": expected four dimensions: [batch, heads, keys, width]");
  const std::int64_t maps = values[0] * values[1], keys = values[2];
  const Tensor ones = values.tape().make({values[0], values[1], keys, keys}, values.dtype());
  std::memset(ones.raw(), 0, ones.bytes());
  by_type(ones.dtype(), [&]<class T>() {
    for (std::int64_t i = 0; i < maps * keys; ++i) ones.data<T>()[i * keys + i % keys] = 1;
  });
  return concat({values, values.tape().constant(ones)}, 3);
}

}  // namespace regard
