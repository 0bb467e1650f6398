// Optimisers: they turn gradients into changed weights.
//
//     Adam adam(parameters, {.groups = {{"embedding", {.rate_factor = 0.1}}}});
//     adam.step(gradients, 1e-3);
//
// Decay is apart from the gradient (Loshchilov and Hutter 2019), so Adam with a decay is what others call AdamW:
//
//     Adam adam(parameters, {.groups = {{"", {.decay = 0.01}}}});
//
// A parameter belongs to the group it names; "" is the default one. Frozen parameters are left as they are, down to the
// last bit, and their moments with them. The learning rate is handed in at every step: see schedule.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "regard/autograd/parameter.h"
#include "regard/export.h"

namespace regard {

struct Group {
  double rate_factor = 1;  // multiplies the learning rate
  double decay = 0;        // weight decay, apart from the gradient: w shrinks by rate · decay · w a step
};
using Groups = std::map<std::string, Group>;

// Everything an optimiser remembers from step to step, by name: "encoder.weight/first".
struct OptimizerState {
  std::string kind;  // "adam"
  std::int64_t steps = 0;
  std::map<std::string, Tensor> tensors = {};
  std::map<std::string, std::int64_t> counts = {};
};

class REGARD_API Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Changes every parameter that is not frozen. The gradients are multiplied by gradient_scale on their way in, which
  // gives the bits that scaling them in place would give.
  void step(Gradients& gradients, double rate, double gradient_scale = 1);
  std::int64_t steps() const { return steps_; }

  OptimizerState state();  // its tensors are the optimiser's own, and change with the next step
  // Goes on as the one that had this state would, bit for bit. A state that does not fit throws and changes nothing.
  void resume(const OptimizerState& state);
  void check_state(const OptimizerState& state);  // throws if resume would

 protected:
  // A group that no parameter belongs to is an error: it would be a typing mistake.
  Optimizer(Parameters& parameters, const Groups& groups);

  struct Change {
    double rate;
    double decay;
    double gradient_scale;
  };
  virtual void change(const Parameter& parameter, const Tensor& gradient, const Change& change) = 0;

  // What is kept for a parameter: tensors like it, not defined until its first change, and counts.
  struct Kept {
    const char* name;
    Tensor* tensor = nullptr;
    std::int64_t* count = nullptr;
  };
  virtual const char* kind() const = 0;
  virtual std::vector<Kept> kept(const Parameter& parameter) = 0;

  Parameters& parameters_;

 private:
  void check_parameters() const;
  std::vector<Group> group_of_;  // by Parameter::index
  std::int64_t steps_ = 0;
};

struct SgdSettings {
  double momentum = 0;
  Groups groups = {};
};

class REGARD_API Sgd final : public Optimizer {
 public:
  explicit Sgd(Parameters& parameters, const SgdSettings& settings = {});

 private:
  void change(const Parameter& parameter, const Tensor& gradient, const Change& change) override;
  const char* kind() const override { return "sgd"; }
  std::vector<Kept> kept(const Parameter& parameter) override;

  SgdSettings settings_;
  std::vector<Tensor> moments_;  // by Parameter::index; not defined until the first change
};

// Steps as large as earlier changes were, divided by as large as gradients are: the rate is a factor near 1.  Zeiler
// 2012
struct AdadeltaSettings {
  double decay = 0.9;  // of both averages of squares
  double epsilon = 1e-6;
  Groups groups = {};
};

class REGARD_API Adadelta final : public Optimizer {
 public:
  explicit Adadelta(Parameters& parameters, const AdadeltaSettings& settings = {});

 private:
  void change(const Parameter& parameter, const Tensor& gradient, const Change& change) override;
  const char* kind() const override { return "adadelta"; }
  std::vector<Kept> kept(const Parameter& parameter) override;

  struct Squares {
    Tensor gradients, changes;  // averages of squares; not defined until the first change
  };
  AdadeltaSettings settings_;
  std::vector<Squares> squares_;  // by Parameter::index
};

struct AdamSettings {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  Groups groups = {};
};

class REGARD_API Adam final : public Optimizer {
 public:
  explicit Adam(Parameters& parameters, const AdamSettings& settings = {});

 private:
  void change(const Parameter& parameter, const Tensor& gradient, const Change& change) override;
  const char* kind() const override { return "adam"; }
  std::vector<Kept> kept(const Parameter& parameter) override;

  struct Moments {
    Tensor first, second;    // not defined until the first change
    std::int64_t steps = 0;  // of this parameter: one that was frozen starts its bias correction when it thaws
  };
  AdamSettings settings_;
  std::vector<Moments> moments_;  // by Parameter::index
};

}  // namespace regard
