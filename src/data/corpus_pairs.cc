#include "data/corpus_pairs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/pool.h"

namespace regard {
namespace {

constexpr std::int64_t kKept = 100'000;  // some 25 MB
constexpr std::size_t kBlock = 4096;

}  // namespace

CorpusPairs::CorpusPairs(const std::string& pair, std::uint64_t seed, Corpus::Split split, std::int64_t lines,
                         const Context& context)
    : corpus_(pair, seed, split),
      lines_(static_cast<std::uint64_t>(lines)),
      kept_(static_cast<std::size_t>(std::min(lines, kKept))) {
  for (std::size_t begin = 0; begin < kept_.size(); begin += kBlock) {
    stop_if_asked(context);
    parallel(std::min(kBlock, kept_.size() - begin), [&](std::size_t i) { kept_[begin + i] = make(begin + i); });
  }
}

LinePair CorpusPairs::make(std::uint64_t line) const {
  Corpus::Example example = corpus_.at(line);
  return {line + 1, std::move(example.source.text), std::move(example.target.text)};
}

bool CorpusStream::next(LinePair& pair) {
  if (at_ == pairs_->lines()) return false;
  pair = pairs_->at(at_++);
  return true;
}

void CorpusStream::seek(const PairPosition& position) {
  check(position.line <= pairs_->lines(), name(), " has ", pairs_->lines(), " pairs, cannot go on behind pair ",
        position.line);
  at_ = position.line;
}

}  // namespace regard
