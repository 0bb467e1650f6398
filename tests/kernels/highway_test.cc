// Our own detection of the processor (src/kernels/highway.cc) against Highway's.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cstdint>

#if defined(__x86_64__)  // ARM64 has nothing to detect, and the library may not be there
namespace regard {
namespace {

TEST(Highway, ProcessorIsDetectedAsTheLibraryDetectsIt) {
  void* library = dlopen("libhwy.so.1", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto theirs = reinterpret_cast<std::int64_t (*)()>(dlsym(library, "_ZN3hwy16SupportedTargetsEv"));
  ASSERT_NE(theirs, nullptr);
  ASSERT_NE(theirs, &hwy::SupportedTargets) << "the library is linked in, which makes every start 3 ms longer";
  EXPECT_EQ(hwy::SupportedTargets() & HWY_TARGETS, theirs() & HWY_TARGETS);
  dlclose(library);
}

}  // namespace
}  // namespace regard
#endif
