#include "data/train_pieces.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/check.h"
#include "base/modules.h"
#include "base/utf8.h"
#include "data/pieces.h"

namespace regard {
namespace {

constexpr const char* kName = "regard_pieces.so";

// Texts arrive by a callback and leave by another: they are fetched some at a time.
struct Feeding {
  std::vector<std::string> texts;
  std::size_t at = 0;
  std::string model;
};

}  // namespace

std::vector<std::string> pieces_module_places() { return module_places(kName); }

const RegardPiecesModule* find_pieces_module() {
  // Opened once and never closed: its library keeps threads and tables.
  static const RegardPiecesModule* const found =
      find_module<RegardPiecesModule>(kName, "regard_pieces_module", kRegardPiecesVersion);
  return found;
}

const RegardPiecesModule& pieces_module() {
  const RegardPiecesModule* module = find_pieces_module();
  if (module == nullptr) {
    fail(ErrorKind::kFile, "learning pieces needs the module ", kName, ", which was not found or cannot be opened (",
         module_places_text(kName), "); words and characters do without");
  }
  return *module;
}

std::unique_ptr<Tokenizer> train_pieces(const EachText& texts, const PieceSettings& settings) {
  check(settings.size >= 8 && settings.size <= 1'000'000, "a vocabulary of pieces may have 8 to 1000000 ids, got ",
        settings.size);
  check(settings.coverage == 0 || (settings.coverage >= 0.98 && settings.coverage <= 1),
        "the coverage of characters may be 0.98 to 1, got ", settings.coverage);
  check(settings.together > 0, "texts come alone or so many together, got ", settings.together);
  const RegardPiecesModule& module = pieces_module();
  std::uint64_t bytes = 0;
  texts([&](std::string_view text) { bytes += text.size(); });
  const std::uint64_t stride =
      settings.most_bytes == 0 ? 1
                               : std::max<std::uint64_t>(1, (bytes + settings.most_bytes - 1) / settings.most_bytes);
  Feeding feeding;
  std::uint64_t number = 0;
  texts([&](std::string_view text) {
    const bool chosen = number++ / settings.together % stride == 0;
    if (chosen && text.find('\0') == std::string_view::npos) feeding.texts.emplace_back(text);
  });
  check(!feeding.texts.empty(), "there is no text to learn pieces from");
  std::unordered_set<char32_t> characters;
  for (const std::string& each : feeding.texts) {
    for (std::size_t at = 0; at < each.size();) {
      const utf8::Letter letter = utf8::read(each, at);
      characters.insert(letter.code);
      at += letter.length;
    }
  }
  const bool alphabet = static_cast<std::int64_t>(characters.size()) <= settings.size / 4;
  const double coverage = settings.coverage > 0 ? settings.coverage : alphabet ? 1 : 0.9995;

  // The number of threads is part of the result, so it is not the machine's. No sampling, no shuffling.
  std::string options =
      text("--model_type=", settings.unigram ? "unigram" : "bpe", " --vocab_size=", settings.size,
           " --character_coverage=", coverage, " --byte_fallback=", settings.byte_fallback ? "true" : "false",
           " --normalization_rule_name=",
           settings.lower        ? "nmt_nfkc_cf"
           : settings.as_written ? "identity"
                                 : "nmt_nfkc",
           " --unk_id=0 --bos_id=1 --eos_id=2 --pad_id=3 --num_threads=4 --input_sentence_size=0",
           " --shuffle_input_sentence=false --max_sentence_length=65536 --minloglevel=2",
           " --hard_vocab_limit=false");  // little text has fewer pieces
  std::array<char, 500> error = {};
  const int well = module.train(
      options.c_str(),
      [](void* user, RegardPiecesText* text) {
        auto& from = *static_cast<Feeding*>(user);
        if (from.at == from.texts.size()) return 0;
        const std::string& next = from.texts[from.at++];
        *text = {next.data(), next.size()};
        return 1;
      },
      [](void* user, RegardPiecesText model) { static_cast<Feeding*>(user)->model.assign(model.data, model.size); },
      &feeding, error.data(), error.size());
  feeding.texts.clear();
  feeding.texts.shrink_to_fit();
#ifdef __GLIBC__
  malloc_trim(0);  // or what the trainer took stays with the process for good
#endif
  if (well != 1) {
    // The library names options that our users do not have.
    const std::string_view reason = error.data();
    const std::size_t needed = reason.find(" vs ");
    const bool few =
        reason.find("smaller than required_chars") != std::string_view::npos && needed != std::string_view::npos;
    check(!few, "cannot learn ", settings.size, " pieces from these texts: their characters alone take ",
          reason.substr(needed + 4, reason.find('.', needed) - needed - 4), " ids; ask for more");
    check(false, "cannot learn ", settings.size, " pieces from these texts: ", reason);
  }
  return read_pieces(feeding.model);
}

}  // namespace regard
