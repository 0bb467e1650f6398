// Pairs of the built-in corpus, as training and validation read them.
//
//     const auto pairs = std::make_shared<const CorpusPairs>("zh-en", 1, Corpus::Split::kTrain, 5000, context);
//     CorpusStream stream(pairs);
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/corpus.h"
#include "data/lines.h"
#include "regard/context.h"

namespace regard {

// A run reads them four times and more, to count them, to learn pieces, to train; so the first ones, which are all of
// them if nobody asks for more than usual, are made once, by all threads, and kept.
class CorpusPairs {
 public:
  CorpusPairs(const std::string& pair, std::uint64_t seed, Corpus::Split split, std::int64_t lines,
              const Context& context);
  std::uint64_t lines() const { return lines_; }
  LinePair at(std::uint64_t line) const { return line < kept_.size() ? kept_[line] : make(line); }

 private:
  LinePair make(std::uint64_t line) const;

  Corpus corpus_;
  std::uint64_t lines_;
  std::vector<LinePair> kept_;
};

class CorpusStream final : public PairStream {
 public:
  explicit CorpusStream(std::shared_ptr<const CorpusPairs> pairs) : pairs_(std::move(pairs)) {}
  bool next(LinePair& pair) override;
  PairPosition position() const override { return {.line = at_}; }
  void seek(const PairPosition& position) override;
  bool can_seek() const override { return true; }
  std::size_t held() const override { return sizeof(*this); }
  std::string name() const override { return "the built-in corpus"; }

 private:
  std::shared_ptr<const CorpusPairs> pairs_;
  std::uint64_t at_ = 0;
};

}  // namespace regard
