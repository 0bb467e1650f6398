// Traces of what translators did: every layer and head of every attention, tokens with their bytes and words, what the
// beam wrote, and whether the map matters. Asking for a trace changes nothing of what was found.
//
//     const TraceItem item = trace_of(translator, line, translation.best[0]);
//     Trace{{item}}.write("a.trace");
//
// Axes: "source" (its tokens, the end), "target" (the same of what was written), of transformers also "written" (the
// begin, then the tokens: what each step was told). Maps: "cross" (target × source), of transformers "encoder" (source
// × source) and "decoder" (written × written, causal). Norms are |v·W|, the lengths of values behind the part of the
// output's matrix that is their head's. Several models: their cross maps as layers one after another, "encoder" and
// "decoder" of the first.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/alignment.h"
#include "tasks/erasure.h"
#include "tasks/translator.h"
#include "view/trace.h"

namespace regard {

struct TraceSettings {
  AlignmentSettings alignment = {};  // how words are cut; a layer, head or shift instead of the model's choice
  Keeps maps = Keeps::kEverything;   // which
  bool erasure = false;
  ErasureSettings erasing = {};
  std::int64_t batch_tokens = 1024;  // a pass keeps all it made until it ends: more together only takes more memory
};

TraceItem trace_of(const Translator& translator, std::string_view line, const Translator::Result& result,
                   const TraceSettings& settings = {});
std::vector<TraceItem> traces_of(const Translator& translator, std::span<const std::string> lines,
                                 std::span<const Translator::Result> results, const TraceSettings& settings = {},
                                 const Context& context = {});

// What a search wrote; of a line that was cut, its parts one after another.
TraceBeam beam_of(const Translator& translator, std::span<const SearchSteps> parts);

// A trace that is filled batch by batch and stays within a size. What does not fit is left out, and counted.
class TraceCollector {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{512} << 20;  // of weights; names and tokens: 15 MiB

  explicit TraceCollector(const TraceSettings& settings, std::uint64_t most_bytes = kMostBytes)
      : settings_(settings), most_(most_bytes) {}

  // One item a result. `titles` and `beams` are of each, or none.
  void add(const Translator& translator, std::span<const std::string> lines,
           std::span<const Translator::Result> results, std::span<const std::string> titles,
           std::span<const TraceBeam> beams, const Context& context = {});

  // Every result of every line, with its beam at the first; `numbers`: of the lines, for titles. A line in which there
  // was nothing to translate has no item.
  void add(const Translator& translator, std::span<const std::string> lines,
           std::span<const Translator::Translation> found, std::span<const std::uint64_t> numbers,
           const Context& context = {});
  // Pairs that are given, as regard align reads them: with --join, and without those of more tokens than `longest`.
  void add(const Translator& translator, std::span<const TextPair> pairs, std::span<const std::uint64_t> numbers,
           bool join, std::int64_t longest, const Context& context = {});

  const Trace& trace() const { return trace_; }
  void write(const std::string& path);  // and gives it away: nothing is left in it
  std::uint64_t left_out() const { return left_out_; }

 private:
  TraceSettings settings_;
  std::uint64_t most_, data_ = 0, header_ = 0, left_out_ = 0;
  Trace trace_;
  std::vector<TraceRecord> records_;  // of its items
};

}  // namespace regard
