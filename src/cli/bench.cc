// regard bench: times one of the benchmarks, or takes turns with a peer (see bench.h).
#include "cli/bench.h"

#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/check.h"
#include "base/pool.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "cli/text.h"
#include "kernels/target.h"

namespace regard::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "inputs are written as they stand in memory");

constexpr double kTurnSeconds = 5e-3;   // long against a scheduler's tick of waking up, short against noise
constexpr double kGroupSeconds = 2e-5;  // calls shorter than this are timed in groups: the clock costs 30 ns
constexpr double kWarmSeconds = 3e-4;   // after which caches, clock frequency and the pool are awake

struct Options {
  std::string name;
  std::string part;
  int repeat = 11;
  bool json = false;
  bool turns = false;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  }
  return "unknown";
}

std::string machine_json() {
  return fmt::format(R"({{"cpu": {}, "target": "{}", "threads": {}, "version": "{}", "commit": "{}"}})",
                     json_text(processor()), target(), threads(), version(), commit());
}

std::string case_json(const std::string& bench, const Case& each) {
  std::string out =
      fmt::format(R"({{"case": {}, "operation": {})", json_text(bench + '/' + each.name), json_text(each.operation));
  for (const auto& [name, value] : each.parameters) out += fmt::format(", {}: {}", json_text(name), value);
  out +=
      fmt::format(R"(, "flops": {:.0f}, "bytes": {:.0f}, "limit": {}, "tolerance": {}, "compare": {}, "memory": {}, )"
                  R"("peers": [)",
                  each.flops, each.bytes, json_text(each.limit), each.tolerance, json_text(each.compare), each.memory);
  for (std::size_t i = 0; i < each.peers.size(); ++i) out += (i == 0 ? "" : ", ") + json_text(each.peers[i]);
  return out + "]}";
}

const Bench& find_bench(const std::string& name) {
  const auto found = benches().find(name);
  if (found != benches().end()) return found->second;
  std::vector<std::string> known;
  std::string list;
  for (const auto& [each, bench] : benches()) {
    known.push_back(each);
    list += (list.empty() ? "" : ", ") + each;
  }
  const std::string near = closest(name, known);
  fail(ErrorKind::kInput, "bench: unknown benchmark '", name, near.empty() ? "'" : "'; did you mean '" + near + "'?",
       " (known: ", list, ")");
}

Case find_case(const std::string& full_name) {  // "matmul/64x512x512"
  const std::size_t slash = std::min(full_name.find('/'), full_name.size());
  for (Case& each : find_bench(full_name.substr(0, slash)).cases()) {
    if (full_name.substr(slash) == '/' + each.name) return each;
  }
  fail(ErrorKind::kInput, "bench: there is no case '", full_name, "'");
}

// Prepared cases by their full names.
class Jobs {
 public:
  Job& get(const std::string& name) {
    const auto found = jobs_.find(name);
    return found != jobs_.end() ? found->second : jobs_.emplace(name, find_case(name).prepare()).first->second;
  }
  void clear() {  // except for the limits, which are asked for again and again
    std::erase_if(jobs_, [](const auto& each) { return !each.first.starts_with("limits/"); });
  }

 private:
  std::map<std::string, Job> jobs_;
};

// Mean seconds a call, `samples` times; the calls of a sample follow each other without a look at the clock.
std::vector<double> time_calls(const Job& job, int samples, int calls) {
  const double start = now();
  do {
    job.run();
  } while (now() - start < kWarmSeconds);
  std::vector<double> seconds(static_cast<std::size_t>(samples));
  for (double& each : seconds) {
    const double before = now();
    for (int call = 0; call < calls; ++call) job.run();
    each = (now() - before) / calls;
  }
  return seconds;
}

struct Turn {
  int samples, calls;
};

Turn fitting_turn(const Job& job) {
  const double one = std::max(1e-9, time_calls(job, 1, 1)[0]);
  const int calls = std::clamp(static_cast<int>(kGroupSeconds / one), 1, 10000);
  return {std::clamp(static_cast<int>(kTurnSeconds / (one * calls)), 1, 50), calls};
}

struct Times {
  std::vector<double> all;
  double least() const { return *std::min_element(all.begin(), all.end()); }
  double median() const {
    std::vector<double> sorted = all;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
    return sorted[sorted.size() / 2];
  }
  void add(const std::vector<double>& more) { all.insert(all.end(), more.begin(), more.end()); }
};

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:8.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:8.3f} ms", seconds * 1e3);
  return fmt::format("{:8.3f} s ", seconds);
}

double work(const Case& each) { return each.flops > 0 ? each.flops : each.bytes; }

void check_gap(const std::string& name, double gap) {
  if (!(gap <= 1)) {
    fail(ErrorKind::kInternal, "bench ", name, ": the result is ", gap, " times as far from the reference as allowed");
  }
}

int run_alone(const Options& options, const Context& context) {
  const Bench& bench = find_bench(options.name);
  if (!options.json) {
    fmt::print("# {}, {}, {} thread{}, regard {} {}\n", processor(), target(), threads(), threads() == 1 ? "" : "s",
               version(), commit());
  }
  Jobs jobs;
  bool any = false;
  for (const Case& each : bench.cases()) {
    const std::string name = options.name + '/' + each.name;
    if (name.find(options.part) == std::string::npos) continue;
    any = true;
    jobs.clear();
    const Job& job = jobs.get(name);
    job.run();
    const double gap = job.gap();
    check_gap(name, gap);
    const Job* limit = each.limit.empty() ? nullptr : &jobs.get(each.limit);
    const Turn turn = fitting_turn(job);
    const Turn limit_turn = limit != nullptr ? fitting_turn(*limit) : Turn{};
    Times ours, best;
    for (int round = 0; round < options.repeat; ++round) {
      if (context.cancel.stop_requested()) fail(ErrorKind::kCancelled, "stopped");
      ours.add(time_calls(job, turn.samples, turn.calls));
      if (limit != nullptr) best.add(time_calls(*limit, limit_turn.samples, limit_turn.calls));
    }
    const double rate = work(each) / ours.least() * 1e-9;
    const double share = limit != nullptr ? rate / (work(find_case(each.limit)) / best.least() * 1e-9) : 0;
    if (options.json) {
      fmt::print(R"({{"case": {}, "seconds": {}, "median": {}, "rate": {}, "unit": "{}", "share": {}, "gap": {}, )"
                 R"("machine": {}}})"
                 "\n",
                 json_text(name), ours.least(), ours.median(), rate, each.flops > 0 ? "GFLOP/s" : "GB/s", share, gap,
                 machine_json());
    } else {
      fmt::print("{:<36} {}  median {}", name, seconds_text(ours.least()), seconds_text(ours.median()));
      if (work(each) > 0) fmt::print("  {:8.1f} {:<7}", rate, each.flops > 0 ? "GFLOP/s" : "GB/s");
      if (limit != nullptr) fmt::print("  {:5.2f} of the machine", share);
      fmt::print("  gap {:.3f}\n", gap);
    }
    std::fflush(stdout);
  }
  check(any, "bench ", options.name, ": no case has '", options.part, "' in its name");
  return 0;
}

// A line of /proc/self/status, in bytes.
double status(std::string_view name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) return std::stod(line.substr(name.size() + 1)) * 1024;
  }
  fail(ErrorKind::kFile, "there is no ", name, " in /proc/self/status");
}

// Of the first calls in this process: what they load of the program's own file is not counted.
double extra_memory(const Job& job) {
#ifdef __GLIBC__
  malloc_trim(0);  // what earlier models left behind is nobody's to use again
#endif
  std::ofstream("/proc/self/clear_refs") << '5';  // the peak starts anew
  const double before = status("VmRSS") - status("RssFile");
  job.run();
  job.run();
  return status("VmHWM") - status("RssFile") - before;
}

void write_floats(const std::string& path, std::span<const float> values) {
  FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) fail(ErrorKind::kFile, "cannot write ", path, ": ", std::strerror(errno));
  const bool written = std::fwrite(values.data(), sizeof(float), values.size(), file) == values.size();
  if ((std::fclose(file) != 0) | !written) fail(ErrorKind::kFile, "cannot write ", path);
}

// Lines of the standard input; none at its end. Looks at `cancel` ten times a second: the signals themselves are
// blocked and interrupt nothing.
class Lines {
 public:
  explicit Lines(std::stop_token cancel) : cancel_(std::move(cancel)) {}

  std::optional<std::string> next() {
    for (;;) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      if (cancel_.stop_requested()) fail(ErrorKind::kCancelled, "stopped");
      pollfd wait{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      if (poll(&wait, 1, 100) == 0) continue;
      std::array<char, 4096> part;
      const ssize_t got = read(STDIN_FILENO, part.data(), part.size());
      if (got <= 0) return std::nullopt;
      buffer_.append(part.data(), static_cast<std::size_t>(got));
    }
  }

 private:
  std::stop_token cancel_;
  std::string buffer_;
};

void answer(const Options& options, const std::string& line, Jobs& jobs) {
  std::istringstream words(line);
  std::string command, name, path;
  words >> command;
  if (command == "cases") {
    for (const Case& each : find_bench(options.name).cases()) {
      if ((options.name + '/' + each.name).find(options.part) != std::string::npos) {
        fmt::print("{}\n", case_json(options.name, each));
      }
    }
  } else if (command == "machine") {
    fmt::print("{}\n", machine_json());
  } else if (command == "describe" && words >> name) {
    fmt::print("{}\n", case_json(name.substr(0, name.find('/')), find_case(name)));
  } else if (command == "prepare" && words >> name >> path) {
    jobs.clear();
    for (const Input& input : jobs.get(name).inputs) write_floats(path + '/' + input.name + ".f32", input.values);
  } else if (command == "check" && words >> name) {
    const Job& job = jobs.get(name);
    job.run();
    const double gap = job.gap();
    check_gap(name, gap);
    fmt::print("{}\n", gap);
  } else if (int samples = 0, calls = 0; command == "run" && words >> name >> samples >> calls) {
    check(samples > 0 && calls > 0, "run: samples and calls must be above 0");
    std::string seconds;
    for (const double each : time_calls(jobs.get(name), samples, calls)) seconds += fmt::format("{} ", each);
    fmt::print("{}\n", seconds);
  } else if (command == "memory" && words >> name) {
    fmt::print("{:.0f}\n", extra_memory(jobs.get(name)));
  } else if (command == "output" && words >> name >> path) {
    const Job& job = jobs.get(name);
    check(job.output != nullptr, name, " has no output to compare");
    write_floats(path, job.output());
  } else {
    fail(ErrorKind::kInput, "cannot make sense of '", line, "'");
  }
}

int take_turns(const Options& options, const Context& context) {
  find_bench(options.name);
  Jobs jobs;
  Lines lines(context.cancel);
  while (const std::optional<std::string> line = lines.next()) {
    if (*line == "quit") break;
    try {
      answer(options, *line, jobs);
      fmt::print("ok\n");
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kCancelled) throw;
      fmt::print("error {}\n", error.what());
    }
    std::fflush(stdout);
  }
  return 0;
}

const AddCommand add({
    .name = "bench",
    .summary = "check a kernel against its reference, then time it",
    .example = "regard bench limits",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      std::string names = "which one:";
      for (const auto& [name, bench] : benches()) names += text("\n", name, ": ", bench.summary);
      app.add_option("name", options->name, names)->required()->option_text("NAME");
      app.add_option("--case", options->part, "only cases whose name contains this")->option_text("TEXT");
      app.add_option("--repeat", options->repeat, "how many rounds; the least time counts")
          ->check(Range(1, 100000))
          ->option_text("N");
      app.add_flag("--json", options->json, "one line of JSON a case");
      app.add_flag("--turns", options->turns, "take commands from a coordinator on the standard input");
      return [options](const Context& context) {
        return options->turns ? take_turns(*options, context) : run_alone(*options, context);
      };
    },
});

}  // namespace
}  // namespace regard::cli
