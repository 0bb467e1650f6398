// The norm of all gradients together, and clipping by it (Pascanu et al. 2013): one number for the whole model, so the
// direction of the step stays as it is.
#pragma once

#include "regard/autograd/parameter.h"
#include "regard/export.h"

namespace regard {

struct GradientNorm {
  double norm = 0;                        // √ of the sum of squares; ∞ or NaN if a gradient is not finite
  const Parameter* not_finite = nullptr;  // the first parameter whose gradient is to blame
};

// Over the parameters that are not frozen, in their order; within one, in blocks of fixed size. Settles the gradients.
REGARD_API GradientNorm global_norm(const Parameters& parameters, Gradients& gradients);

// What to multiply gradients of this norm with so that it becomes `limit` at most; 0: no limit.
REGARD_API double clip_scale(double norm, double limit);

// Scales the gradients in place if their norm is above the limit; returns the norm they had.
REGARD_API double clip_global_norm(const Parameters& parameters, Gradients& gradients, double limit);

}  // namespace regard
