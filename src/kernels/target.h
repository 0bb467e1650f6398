// Which instruction set the kernels run on. Highway picks the best that the processor has; tests, `regard verify` and
// the environment variable REGARD_TARGET (avx512, avx2, sse4, neon) can ask for another.
#pragma once

#include <string>
#include <vector>

namespace regard {

std::vector<std::string> targets();        // what this processor can run, best first
std::string target();                      // what runs now
void use_target(const std::string& name);  // "": the best; throws if the processor or the build lacks it

// Within its life, all kernels of the process run on the named target.
class TargetScope {
 public:
  explicit TargetScope(const std::string& name) : before_(target()) { use_target(name); }
  ~TargetScope() { use_target(before_); }
  TargetScope(const TargetScope&) = delete;
  TargetScope& operator=(const TargetScope&) = delete;

 private:
  std::string before_;
};

}  // namespace regard
