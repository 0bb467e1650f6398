// Errors and limits: what goes wrong is one exception with a kind and one line, and the process goes on.
#include <regard/autograd/ops.h>
#include <regard/context.h>
#include <regard/error.h>

#include <cstdio>

using namespace regard;

int main() {
  const Context context{.threads = 2, .memory_limit = 64 << 20};  // bytes of tensors
  const ContextScope scope(context);
  Tape tape;
  try {
    matmul(tape.constant(Tensor::zeros({2, 3})), tape.constant(Tensor::zeros({4, 5})));
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
  try {
    Tensor::zeros({1 << 20, 1 << 10});
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kLimit) std::printf("%s\n", error.what());
  }
  const Var sum = regard::sum(tape.constant(Tensor::of({3}, {1.0f, 2.0f, 3.0f})));
  std::printf("and on it goes: %.0f\n", sum.value().item());
}
