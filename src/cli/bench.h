// A benchmark is one file of this folder: a list of cases that registers itself.
//
//     const AddBench relu({.name = "relu", .summary = "…", .cases = [] {
//       return std::vector<Case>{{.name = "64x512", .operation = "relu", .parameters = {{"rows", 64}, {"width", 512}},
//                                 .bytes = 2 * 64 * 512 * 4, .limit = "limits/copy_64x512", .peers = {"torch"},
//                                 .tolerance = 1e-6, .prepare = [] { …; return Job{…}; }}};
//     }});
//
// `regard bench NAME` checks each case against its reference in double, then times it. With --turns the program waits
// for commands instead, so that a coordinator (bench/run.py) can let it and a peer take turns on the same inputs:
//
//     cases                        one line of JSON a case
//     machine                      one line of JSON: processor, target, threads, version, commit
//     prepare CASE FOLDER          makes the inputs and writes each to FOLDER/name.f32 (little endian); drops what was
//                                  prepared before
//     check CASE                   the distance from the reference, 1 being the largest allowed
//     run CASE SAMPLES CALLS       warms up, then SAMPLES times the mean time of CALLS calls, in seconds, on one line
//     output CASE FILE             writes the result of the last call
//     memory CASE FOLDER WAY       bytes that the first two calls take at their peak beyond what the process holds
//     quit
//
// Every answer ends with a line `ok` or `error TEXT`. Peers (bench/peers) speak the same, except that they are told of
// a case by `case JSON` instead of telling.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned.h"
#include "regard/random.h"

namespace regard::cli {

struct Input {
  std::string name;
  std::span<const float> values;
};

// A case with its data in memory.
struct Job {
  std::function<void()> run;                             // one call, as it is timed
  std::function<double()> gap;                           // |result − reference in double| / what is allowed
  std::vector<Input> inputs = {};                        // what a peer needs to compute the same
  std::function<std::span<const float>()> output = {};   // what a peer's result is compared with
  std::vector<std::shared_ptr<const void>> memory = {};  // what the views in the functions look into
};

struct Case {
  std::string name;       // without blanks
  std::string operation;  // what peers have to compute
  std::vector<std::pair<std::string, std::int64_t>> parameters = {};
  double flops = 0;        // of one call; or
  double bytes = 0;        // read and written by one call
  std::string limit = "";  // the case that says what the machine could do at best
  std::vector<std::string> peers = {};
  double tolerance = 0;  // largest allowed difference of two results, absolute
  // How they are compared; or "dropout": zeros stand at different places; "random": only as large; "words": most rows
  // are equal.
  std::string compare = "elements";
  bool memory = false;  // the peak of its memory is measured, too
  std::function<Job()> prepare;
};

struct Bench {
  const char* name;
  const char* summary;
  std::vector<Case> (*cases)();
};

inline std::map<std::string, Bench>& benches() {
  static std::map<std::string, Bench> all;
  return all;
}

struct AddBench {
  explicit AddBench(const Bench& bench) { benches().emplace(bench.name, bench); }
};

// `count` numbers evenly spread over [−1, 1), the same on every machine.
inline std::shared_ptr<Floats> random_numbers(std::size_t count, std::uint64_t seed) {
  auto values = std::make_shared<Floats>(count);
  const RandomKey key(seed);
  for (std::size_t i = 0; i < count; ++i) (*values)[i] = 2 * uniform(key, i) - 1;
  return values;
}

}  // namespace regard::cli
