// How layers come by their parameters: a Builder knows where they go, what they are called and where their first values
// come from.
//
//     const Builder builder(parameters, RandomKey(seed));
//     Linear readout(builder.under("readout"), 256, 128);       // adds "readout.weight" and "readout.bias"
//
// First values are drawn by the parameter's full name, so neither the order in which layers are made nor another layer
// beside them changes a value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "regard/autograd/parameter.h"
#include "regard/export.h"
#include "regard/nn/initial.h"
#include "regard/random.h"

namespace regard {

class REGARD_API Builder {
 public:
  Builder(Parameters& parameters, RandomKey key, DType type = DType::kF32)
      : parameters_(&parameters), key_(key), type_(type) {}
  // For parameters whose values come from a file: nothing is drawn (a small transformer: 30 ms), and until they are
  // filled they hold what happened to be in memory. `fits` is asked about each before there is memory for it, and
  // throws if the file has no such values.
  using Fits = std::function<void(const std::string& name, const Shape& shape)>;
  static Builder blank(Parameters& parameters, DType type = DType::kF32, Fits fits = {});

  Builder under(std::string_view name) const;      // "encoder" within "": "encoder.…"
  Builder in_group(std::string_view group) const;  // of the optimiser

  Parameter& xavier(std::string_view name, const Shape& shape, std::int64_t parts = 1, double gain = 1) const;
  Parameter& kaiming(std::string_view name, const Shape& shape) const;
  Parameter& orthogonal(std::string_view name, const Shape& shape, double gain = 1, std::int64_t parts = 1) const;
  Parameter& uniform(std::string_view name, const Shape& shape, double limit) const;
  Parameter& normal(std::string_view name, const Shape& shape, double deviation) const;
  Parameter& constant(std::string_view name, const Shape& shape, float value) const;
  Parameter& zeros(std::string_view name, const Shape& shape) const;

  RandomKey key(std::string_view name) const;  // for a layer that draws numbers of its own

 private:
  std::string full(std::string_view name) const;
  template <class Draw>
  Parameter& add(std::string_view name, const Shape& shape, const Draw& draw) const;

  Parameters* parameters_;
  RandomKey key_;
  DType type_;
  bool draws_ = true;
  Fits fits_;  // if there is anything to fit
  std::string prefix_;
  std::string group_;
};

}  // namespace regard
