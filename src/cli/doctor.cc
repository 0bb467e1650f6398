// `regard doctor`: is this machine fit for Regard? One line a check: what was found, and if something is wrong, what to
// do about it.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/float_mode.h"
#include "base/pool.h"
#include "cli/command.h"
#include "kernels/target.h"
#include "regard/autograd/ops.h"

namespace regard::cli {
namespace {

struct Finding {
  std::string found;
  std::string advice = {};  // what to do; empty: all is well
};

struct Check {
  const char* name;
  Finding (*look)();
};

constexpr double kGigabyte = 1e9;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

// The value behind `key` in a file of lines "key : value", such as those under /proc; empty if there is none.
std::string line_of(const char* file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

Finding processor() {
  std::string model = line_of("/proc/cpuinfo", "model name");
  if (model.empty()) model = "of unknown make";
  constexpr std::string_view kOfInterest[] = {"sse4_2",      "avx2",     "fma",      "avx512f", "avx512_vnni",
                                              "avx512_bf16", "amx_bf16", "amx_int8", "asimd",   "sve"};
  std::vector<std::string> has;
  std::istringstream flags(line_of("/proc/cpuinfo", "flags") + " " + line_of("/proc/cpuinfo", "Features"));
  for (std::string flag; flags >> flag;) {
    if (std::count(std::begin(kOfInterest), std::end(kOfInterest), flag) > 0) has.push_back(flag);
  }
  return {fmt::format("{} ({})", model, fmt::join(has, " "))};
}

Finding kernels() {
  std::vector<std::string> others = targets();
  std::erase(others, target());
  std::string found = target();
  if (!others.empty()) found += fmt::format("; this processor can also run {}", fmt::join(others, ", "));
  const char* asked = std::getenv("REGARD_TARGET");
  if (asked != nullptr && *asked != '\0') return {found + " (REGARD_TARGET asks for it)"};
  if (target() == "sse4") {
    found += "; without fused multiply-add results differ in the last bits from those of other machines";
  }
  return {found};
}

Finding cores() {
  std::string found =
      fmt::format("{} core{}, {} in use", hardware_threads(), hardware_threads() == 1 ? "" : "s", threads());
  std::ifstream quota("/sys/fs/cgroup/cpu.max");
  double microseconds = 0, period = 0;
  if (quota >> microseconds >> period && period > 0 && microseconds / period < hardware_threads()) {
    found += fmt::format("; the container grants {:.1f} of them", microseconds / period);
  }
  std::atomic<int> visits{0};
  parallel(1000, [&](std::size_t) { ++visits; });
  if (visits != 1000)
    return {found, fmt::format("{} of 1000 pieces of work were done: please report this", visits.load())};
  return {found};
}

Finding memory() {
  std::istringstream text(line_of("/proc/meminfo", "MemAvailable"));
  double kilobytes = 0;
  if (!(text >> kilobytes)) return {"cannot tell how much is free"};
  double bytes = kilobytes * 1024;
  double most = 0, used = 0;
  std::ifstream limit("/sys/fs/cgroup/memory.max"), current("/sys/fs/cgroup/memory.current");
  if (limit >> most && current >> used) bytes = std::min(bytes, std::max(0.0, most - used));
  const std::string found = fmt::format("{:.1f} GB free", bytes / kGigabyte);
  if (bytes < 0.25 * kGigabyte) return {found, "close other programs or allow the container more: 0.25 GB are needed"};
  return {found};
}

Finding disk() {
  struct statvfs space = {};
  if (statvfs(".", &space) != 0) return {std::strerror(errno), "change to a directory that exists"};
  const double bytes = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  const std::string found = fmt::format("{:.1f} GB free in this directory", bytes / kGigabyte);
  if (bytes < 0.1 * kGigabyte) return {found, "make room: a model and its checkpoint need 0.1 GB at the least"};
  std::string name = ".regard-doctor-XXXXXX";
  const int file = mkstemp(name.data());
  if (file < 0) {
    return {found + fmt::format(", but it cannot be written to ({})", std::strerror(errno)),
            "change to a directory where you may write, models are put there"};
  }
  const bool written = write(file, "ok", 2) == 2 && fsync(file) == 0;
  const int reason = errno;
  close(file);
  unlink(name.c_str());
  if (!written) return {found + fmt::format(", but writing failed ({})", std::strerror(reason)), "check the disk"};
  return {found + ", writable"};
}

Finding files() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  rlimit size = {};
  getrlimit(RLIMIT_FSIZE, &size);
  const std::string found = limit.rlim_cur == RLIM_INFINITY ? "any number may be open"
                                                            : fmt::format("{} may be open at once", limit.rlim_cur);
  if (limit.rlim_cur < 256) return {found, "allow more: ulimit -n 1024"};
  if (size.rlim_cur != RLIM_INFINITY) {
    return {found + fmt::format(", none larger than {:.1f} GB", static_cast<double>(size.rlim_cur) / kGigabyte),
            "lift the limit, it would cut models off: ulimit -f unlimited"};
  }
  return {found};
}

// The value of `compute` on every target, one after another.
template <class Compute>
void on_every_target(Compute compute) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    Tape tape;
    compute(name, tape);
  }
}

std::string names(const std::vector<std::string>& list) { return fmt::format("{}", fmt::join(list, ", ")); }

constexpr const char* kReportOurs = "a mistake of Regard: please report it";
constexpr const char* kReport =
    "the processor or its virtual machine computes wrongly: try REGARD_TARGET=avx2 or sse4, and report this";

// Small whole numbers: every sum is exact, so whatever order a kernel adds in, there is one right answer.
Finding exact_products() {
  constexpr std::int64_t kRows = 13, kInner = 67, kColumns = 37;
  Tensor a = Tensor::empty({kRows, kInner}), b = Tensor::empty({kInner, kColumns});
  for (std::int64_t i = 0; i < a.size(); ++i) a.data<float>()[i] = static_cast<float>(i * 7 % 17 - 8);
  for (std::int64_t i = 0; i < b.size(); ++i) b.data<float>()[i] = static_cast<float>(i * 5 % 13 - 6);
  std::vector<std::string> right, wrong;
  on_every_target([&](const std::string& name, Tape& tape) {
    const Var product = matmul(tape.constant(a), tape.constant(b));
    const float* got = product.value().data<float>();
    bool equal = true;
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t j = 0; j < kColumns; ++j) {
        std::int64_t sum = 0;
        for (std::int64_t k = 0; k < kInner; ++k) {
          sum += ((i * kInner + k) * 7 % 17 - 8) * ((k * kColumns + j) * 5 % 13 - 6);
        }
        equal &= got[i * kColumns + j] == static_cast<float>(sum);
      }
    }
    (equal ? right : wrong).push_back(name);
  });
  if (!wrong.empty()) return {"wrong on " + names(wrong), kReport};
  return {"exact on " + names(right)};
}

Finding functions() {
  struct Known {
    Var (*function)(Var);
    float x, y;
  };
  const Known known[] = {
      {exp, 0, 1},           {exp, 1, 2.71828183f}, {exp, -10, 4.53999298e-5f}, {exp, -kInfinity, 0},
      {exp, 200, kInfinity}, {tanh, 0, 0},          {tanh, 0.5f, 0.462117157f}, {tanh, -2, -0.964027580f},
      {tanh, 100, 1},        {sigmoid, 0, 0.5f},    {sigmoid, 3, 0.952574127f}, {log, 10, 2.30258509f},
  };
  std::vector<std::string> wrong;
  on_every_target([&](const std::string& name, Tape& tape) {
    for (const Known& one : known) {
      const float got = static_cast<float>(one.function(tape.constant(Tensor::of({1}, {one.x}))).value().item());
      if (!(got == one.y || std::fabs(got - one.y) <= 1e-6f * std::fabs(one.y))) {
        wrong.push_back(name);
        break;
      }
    }
  });
  if (!wrong.empty()) return {"wrong on " + names(wrong), kReport};
  return {"exp, log, tanh, sigmoid as expected"};
}

Finding not_a_number() {
  std::vector<std::string> wrong;
  on_every_target([&](const std::string& name, Tape& tape) {
    const Var x = tape.constant(Tensor::of({1, 4}, {1.0f, kNaN, 2.0f, 3.0f}));
    bool stays = true;
    for (const auto function : {exp, tanh, sigmoid, relu}) stays &= std::isnan(function(x).value().data<float>()[1]);
    stays &= std::isnan(matmul(x, tape.constant(Tensor::of({4, 1}, {1.0f, 1.0f, 1.0f, 1.0f}))).value().item());
    if (!stays) wrong.push_back(name);
  });
  if (!wrong.empty()) return {"gets lost on " + names(wrong), kReport};
  return {"stays what it is"};
}

Finding float_modes() {
  Tape tape;
  const Var tiny = tape.constant(Tensor::of({1}, {1e-40f}));
  const std::uint64_t before = float_mode();
  const Var twice = tiny + tiny;
  const std::uint64_t after = float_mode();
  if (twice.value().data<float>()[0] != 0) return {"subnormal numbers are computed with, which is slow", kReportOurs};
  if (after != before) return {"the caller's floating-point mode was not put back", kReportOurs};
  return {"subnormal numbers count as zero, the caller's mode is put back"};
}

Finding same_bits() {
  std::vector<std::string> fused = targets();
  std::erase(fused, "sse4");  // no fused multiply-add: bits of its own
  if (fused.size() < 2) return {"only one set of instructions to compare"};
  Tensor a = Tensor::empty({5, 301}), b = Tensor::empty({301, 33});
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.data<float>()[i] = std::ldexp(static_cast<float>(i * 7919 % 2003 - 1001), -9);
  for (std::int64_t i = 0; i < b.size(); ++i)
    b.data<float>()[i] = std::ldexp(static_cast<float>(i * 6011 % 1999 - 999), -11);
  std::vector<Tensor> results;
  for (const std::string& name : fused) {
    const TargetScope scope(name);
    Tape tape;
    results.push_back(softmax(tanh(matmul(tape.constant(a), tape.constant(b)))).value().clone());
  }
  for (std::size_t i = 1; i < results.size(); ++i) {
    if (std::memcmp(results[0].raw(), results[i].raw(), results[0].bytes()) != 0) {
      return {fmt::format("{} and {} differ", fused[0], fused[i]), kReport};
    }
  }
  return {"equal on " + names(fused)};
}

constexpr Check kChecks[] = {
    {"processor", processor},
    {"kernels", kernels},
    {"threads", cores},
    {"memory", memory},
    {"disk", disk},
    {"files", files},
    {"matrix product", exact_products},
    {"functions", functions},
    {"not a number", not_a_number},
    {"float mode", float_modes},
    {"same bits", same_bits},
};

int run(const Context&) {
  fmt::print("Regard {}\n\n", version());
  int problems = 0;
  for (const Check& check : kChecks) {
    Finding finding;
    try {
      finding = check.look();
    } catch (const std::exception& error) {
      finding = {error.what(), kReportOurs};
    }
    const bool well = finding.advice.empty();
    problems += well ? 0 : 1;
    fmt::print("  {:<8} {:<15} {}\n", well ? "ok" : "PROBLEM", check.name, finding.found);
    if (!well) fmt::print("  {:<8} {:<15} -> {}\n", "", "", finding.advice);
  }
  if (problems > 0) {
    fmt::print("\n{} problem{}.\n", problems, problems == 1 ? "" : "s");
    return 1;
  }
  fmt::print("\nAll is well.\n");
  return 0;
}

const AddCommand doctor({
    .name = "doctor",
    .summary = "check that this machine is fit for Regard",
    .example = "regard doctor",
    .build = [](App&) -> Run { return run; },
});

}  // namespace
}  // namespace regard::cli
