#include "serve/stream.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "decode/search.h"
#include "kernels/softmax.h"
#include "tasks/translation_pairs.h"

namespace regard::serve {
namespace {

// Where the model looked at the last of so many steps of one row.
Tensor last_weights(const Decoding& decoding, std::size_t steps) {
  const Tensor map = decoding.looked(0, std::vector<std::int32_t>(steps, 0)).cross.weights;
  if (!map.defined()) return {};
  return map.slice(2, map[2] - 1, map[2]).clone().reshape({map[0], map[1], map[3]});
}

}  // namespace

Streamed stream(const Model& model, std::string_view line, bool weights,
                const std::function<void(const std::vector<std::string>&)>& begin,
                const std::function<void(const StreamedToken&)>& each, const Context& context) {
  const ContextScope scope(context);
  const Translator& translator = model.translator;
  const Tokenizer &source = translator.source(), &target = translator.target();
  const std::vector<Token> tokens = source.encode(line);
  if (static_cast<std::int64_t>(tokens.size()) > model.longest) {
    throw Refusal(413, text("stream: a text of ", tokens.size(), " tokens, expected at most ", model.longest));
  }
  Streamed made;
  made.source = labels_of(source, tokens);
  begin(made.source);
  if (tokens.empty()) return made;
  const BatchSettings ends = ends_of(target);
  SequencePair pair{.id = 0, .source = ids_of(tokens), .target = {}};
  pair.source.push_back(source.special().end);
  const Batch batch = make_batch(std::span(&pair, 1), ends);
  const std::int64_t longest = LengthLimit{}.of(batch.lengths[0], model.translator.model().room());
  const std::unique_ptr<Decoding> decoding =
      translator.model().decode(batch, {.keeps = weights ? Keeps::kSource : Keeps::kNothing});
  const auto words = static_cast<std::size_t>(translator.model().target_words());
  const std::int32_t only = 0;
  std::int32_t previous = ends.begin;
  for (std::int64_t step = 0;; ++step) {
    stop_if_asked(context);
    const Tensor logits = decoding->step(std::span(&only, 1), std::span(&only, 1), std::span(&previous, 1));
    std::array<std::int32_t, 1> best = {};
    std::array<float, 1> value = {}, end = {};
    likeliest({logits.data<float>(), 1, words, words}, {.count = 1,
                                                        .columns = best.data(),
                                                        .values = value.data(),
                                                        .also = static_cast<std::size_t>(ends.end),
                                                        .also_values = end.data()});
    if (step == longest || best[0] == ends.end) {
      made.log_probability += static_cast<double>(end[0]);
      return made;
    }
    previous = best[0];
    pair.target.push_back(previous);
    made.text = target.decode(pair.target);
    made.log_probability += static_cast<double>(value[0]);
    each({.piece = target.piece(previous),
          .text = made.text,
          .log_probability = static_cast<double>(value[0]),
          .weights = weights ? last_weights(*decoding, pair.target.size()) : Tensor()});
  }
}

}  // namespace regard::serve
