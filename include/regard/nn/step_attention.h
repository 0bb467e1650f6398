// Attention that looks at what it did before: one query at a time, softmax over the visible keys.
//   location-aware   vᵀ tanh(Wq + Vk_j + U f_j + b), f = F ∗ the weights of the query before      Chorowski et al. 2015
//   coverage         vᵀ tanh(Wq + Vk_j + w·c_j + b), c = Σ of the weights of all queries before   See et al. 2017
//
//     const StepMemory memory = attention.memory(annotations, annotations, lengths);      // once a sequence
//     Stepped now = attention(query, memory, before);                                     // before: now.weights of the
//                                                                                         // last step, or nothing
// Keys and values behind the length of their item are never looked at; who sees no key reads zeros.
#pragma once

#include <cstdint>
#include <span>

#include "regard/autograd/ops.h"
#include "regard/export.h"
#include "regard/nn/linear.h"

namespace regard {

struct StepWidths {
  std::int64_t query = 0, key = 0, hidden = 0;
};

struct StepMemory {
  Var keys;        // [batch, keys, hidden]: V k + b
  Var values;      // [batch, keys, width]; zeros where nobody may look
  Tensor visible;  // i8 [batch, keys]
  Tensor lengths;  // i32 [batch]
};

struct Stepped {
  Var context;  // [batch, width of the values]
  Var weights;  // [batch, keys]
  Var scores;   // [batch, keys]; −∞ where nobody may look
};

// What both share: a score vᵀ tanh(Wq + Vk_j + b + extra_j).
class REGARD_API StepAttention {
 public:
  StepAttention(const Builder& builder, const StepWidths& widths);

  // annotations [batch, keys, key width], values [batch, keys, width]; lengths: visible keys an item.
  StepMemory memory(Var annotations, Var values, std::span<const std::int32_t> lengths) const;

  // query [batch, query width]; extra [batch, keys, hidden] or none.
  Stepped operator()(Var query, const StepMemory& memory, Var extra = {}) const;

 private:
  Linear query_, key_;
  const Parameter* theta_;  // v [hidden, 1]
};

class REGARD_API LocationAwareAttention {
 public:
  // `filters` convolutions over `kernel` weights around each key.
  LocationAwareAttention(const Builder& builder, const StepWidths& widths, std::int64_t filters, std::int64_t kernel);

  StepMemory memory(Var annotations, Var values, std::span<const std::int32_t> lengths) const {
    return attention_.memory(annotations, values, lengths);
  }
  // before: the weights of the query before [batch, keys]; none: this is the first.
  Stepped operator()(Var query, const StepMemory& memory, Var before = {}) const;

 private:
  StepAttention attention_;
  const Parameter* filter_;  // F [kernel, filters]
  Linear location_;          // U
  std::int64_t kernel_;
};

class REGARD_API CoverageAttention {
 public:
  CoverageAttention(const Builder& builder, const StepWidths& widths);

  StepMemory memory(Var annotations, Var values, std::span<const std::int32_t> lengths) const {
    return attention_.memory(annotations, values, lengths);
  }
  // coverage: the sum of the weights of all queries before [batch, keys]; none: this is the first.
  Stepped operator()(Var query, const StepMemory& memory, Var coverage = {}) const;

 private:
  StepAttention attention_;
  const Parameter* weight_;  // w [hidden]
};

// Σ_j min(p_j, c_j), what it costs to look where one has looked before: [batch, keys] -> [batch].
REGARD_API Var coverage_loss(Var weights, Var coverage);

}  // namespace regard
