// The module regard_pieces.so: SentencePiece's trainer behind a few C functions (data/pieces_module.h).
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/pieces_module.h"

namespace {

using NextText = int (*)(void*, RegardPiecesText*);
using TakeText = void (*)(void*, RegardPiecesText);

class Texts final : public sentencepiece::SentenceIterator {
 public:
  Texts(NextText next, void* user) : next_(next), user_(user) { Next(); }
  bool done() const override { return done_; }
  void Next() override {
    RegardPiecesText text = {};
    done_ = next_(user_, &text) == 0;
    if (!done_) value_.assign(text.data, text.size);
  }
  const std::string& value() const override { return value_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  NextText next_;
  void* user_;
  bool done_ = false;
  std::string value_;
};

void tell(std::string_view text, char* error, std::size_t size) {
  if (size == 0) return;
  const std::size_t count = std::min(text.size(), size - 1);
  std::memcpy(error, text.data(), count);
  error[count] = '\0';
}

// "--a=1 --b=2". The library splits such a text itself, but prints it first.
std::unordered_map<std::string, std::string> split(std::string_view options) {
  std::unordered_map<std::string, std::string> out;
  while (!options.empty()) {
    const std::string_view option = options.substr(0, options.find(' '));
    options.remove_prefix(std::min(option.size() + 1, options.size()));
    const std::size_t equals = option.find('=');
    if (!option.starts_with("--") || equals == std::string_view::npos) continue;
    out.emplace(option.substr(2, equals - 2), option.substr(equals + 1));
  }
  return out;
}

int train(const char* options, NextText next, TakeText done, void* user, char* error, std::size_t error_size) try {
  Texts texts(next, user);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(split(options), &texts, &model);
  if (!status.ok()) {
    // "trainer_interface.cc(58) [(a) <= (b)] Vocabulary size …": its last part is for people.
    std::string_view text = status.message();
    const std::size_t end = text.rfind("] ");
    if (end != std::string_view::npos && end + 2 < text.size()) text.remove_prefix(end + 2);
    tell(text, error, error_size);
    return 0;
  }
  done(user, {model.data(), model.size()});
  return 1;
} catch (const std::exception& problem) {
  tell(problem.what(), error, error_size);
  return 0;
}

using Processor = sentencepiece::SentencePieceProcessor;

void* open(RegardPiecesText model) try {
  auto processor = std::make_unique<Processor>();
  if (!processor->LoadFromSerializedProto({model.data, model.size}).ok()) return nullptr;
  return processor.release();
} catch (const std::exception&) {
  return nullptr;
}

void close(void* opened) { delete static_cast<Processor*>(opened); }

int encode(void* opened, RegardPiecesText text, void (*token)(void*, int, unsigned, unsigned), void* user) try {
  const auto pieces = static_cast<Processor*>(opened)->EncodeAsImmutableProto({text.data, text.size});
  for (const auto& piece : pieces.pieces()) token(user, static_cast<int>(piece.id()), piece.begin(), piece.end());
  return 1;
} catch (const std::exception&) {
  return 0;
}

int decode(void* opened, const int* ids, std::size_t count, TakeText done, void* user) try {
  std::string text;
  if (!static_cast<Processor*>(opened)->Decode(std::vector<int>(ids, ids + count), &text).ok()) return 0;
  done(user, {text.data(), text.size()});
  return 1;
} catch (const std::exception&) {
  return 0;
}

const RegardPiecesModule kModule = {kRegardPiecesVersion, train, open, close, encode, decode};

}  // namespace

extern "C" [[gnu::visibility("default")]] const RegardPiecesModule* regard_pieces_module() { return &kModule; }
