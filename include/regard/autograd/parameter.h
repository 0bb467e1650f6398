// What is learned. A model holds references into one Parameters; gradients are kept apart from it, so that a model is
// read-only while it computes and several threads can use it at once.
//
//     Parameters parameters;
//     Parameter& weight = parameters.add("encoder.weight", xavier({128, 256}, key));
//     Gradients gradients(parameters);
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regard/export.h"
#include "regard/tensor/tensor.h"

namespace regard {

struct Int8Weights;

struct Parameter {
  std::string name;
  Tensor value;
  std::string group;          // optimisers may treat groups differently: "" is the default one
  bool frozen = false;        // takes part in the forward pass, gets no gradient and is not changed
  std::size_t index = 0;      // its place in Parameters
  std::uint64_t version = 0;  // rises with every change of the value: packed copies know when they are out of date
  // The same in 8 bits, which tapes without gradients multiply by; null: there is none.
  std::shared_ptr<const Int8Weights> int8 = {};
};

class REGARD_API Parameters {
 public:
  Parameters() = default;
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  Parameter& add(std::string name, Tensor value, std::string group = "");
  Parameter& find(std::string_view name);
  void freeze(std::string_view prefix, bool frozen = true);  // all whose name begins so; throws if there is none

  std::size_t size() const { return all_.size(); }
  std::int64_t count() const;  // numbers in all
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  const Parameter& operator[](std::size_t index) const { return all_[index]; }
  Parameter& operator[](std::size_t index) { return all_[index]; }

 private:
  std::deque<Parameter> all_;  // references stay good
};

// One gradient a parameter. They add up over backward passes until zero() is called.
//
// Those in the tape's memory are made when something is first added to them, where values stood that the backward pass
// has done with. That needs less memory, but they are gone when the tape is reset.
//
// Of a table that is only looked up, the rows that were are known: the others hold zeros, and nobody has to write or
// read them. A table that is used in another way too (tied to the output) has an ordinary gradient.
class REGARD_API Gradients {
 public:
  enum class Place { kOwn, kTape };
  explicit Gradients(const Parameters& parameters, Place place = Place::kOwn);

  const Tensor& of(const Parameter& parameter) const;
  void zero();
  // Gradients that nothing was added to since zero() hold what was there before; this makes them zeros. Call it before
  // reading gradients; Optimizer does.
  void settle();

  // After settle(): the only rows whose gradient may be other than zero, in ascending order; none: any may be.
  std::optional<std::span<const std::int32_t>> rows(const Parameter& parameter) const;
  // To be called by whoever writes to gradients (of) by themselves: any row may hold something then.
  void forget_rows();
  // Moves those in a tape's memory to memory of their own, now and from now on.
  void keep();

 private:
  friend class Tape;
  struct Slot {
    Shape shape;
    DType type = DType::kF32;
    Tensor own;                         // not defined if none was needed
    Tensor gradient;                    // that, or in the tape's memory, or not defined: nothing was added yet
    bool fresh = true;                  // zero() came last: the next one to add may overwrite
    bool by_rows = false;               // all but the rows below holds zeros
    std::vector<std::int32_t> rows;     // looked up since zero()
    std::vector<std::uint8_t> is_used;  // by row
    bool lent = false;                  // an operation keeps something of its own in it, see Tape::borrow
    Tensor kept;                        // which is here if somebody else needed the place first

    void forget();  // an ordinary gradient from now on
    void clear();   // makes it zeros
    void use(std::span<const std::int32_t> more);
    void use_own();
  };
  const Slot& slot(const Parameter& parameter) const;  // throws if there is none

  Place place_;
  std::vector<Slot> slots_;
};

}  // namespace regard
