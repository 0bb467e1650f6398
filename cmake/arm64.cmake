# Cross-compiles for ARM64 and runs the tests under qemu. Of Highway, fmt and CLI11 only headers are needed, which serve
# every architecture; GoogleTest is compiled from the sources that Debian packages.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)
file(GLOB fmt_DIR /usr/lib/*/cmake/fmt)
