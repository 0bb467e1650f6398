#include "decode/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "regard/autograd/ops.h"

namespace regard {
namespace {

// A word of the probabilities, which need not sum to one: `chance` is in [0, 1). The likeliest come first, equals by
// their number.
class Draw {
 public:
  explicit Draw(const SampleSettings& settings) : settings_(settings) {}

  std::int32_t operator()(std::span<const float> probabilities, double chance) {
    order_.resize(probabilities.size());
    std::iota(order_.begin(), order_.end(), 0);
    const auto likelier = [&](std::int32_t a, std::int32_t b) {
      const float pa = probabilities[static_cast<std::size_t>(a)], pb = probabilities[static_cast<std::size_t>(b)];
      return pa != pb ? pa > pb : a < b;
    };
    std::size_t count = order_.size();
    if (settings_.top_k > 0) count = std::min(count, static_cast<std::size_t>(settings_.top_k));
    std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count), order_.end(), likelier);
    double kept = 0;
    std::size_t last = 0;
    for (; last < count && (last == 0 || kept < settings_.top_p); ++last) kept += at(probabilities, last);
    double passed = 0;
    for (std::size_t i = 0; i + 1 < last; ++i) {
      passed += at(probabilities, i);
      if (chance * kept < passed) return order_[i];
    }
    return order_[last - 1];
  }

 private:
  double at(std::span<const float> probabilities, std::size_t i) const {
    return static_cast<double>(probabilities[static_cast<std::size_t>(order_[i])]);
  }
  const SampleSettings& settings_;
  std::vector<std::int32_t> order_;
};

void check_settings(const SampleSettings& settings, const Batch& batch, std::size_t keys) {
  check(keys == batch.lengths.size(), "sample: ", keys, " keys for ", batch.lengths.size(), " sources");
  check(settings.samples >= 1, "sample: ", settings.samples, " samples, expected 1 or more");
  check(settings.top_k >= 0, "sample: the ", settings.top_k, " likeliest words, expected 0 (all) or more");
  check(settings.top_p > 0 && settings.top_p <= 1, "sample: top-p ", settings.top_p, ", expected above 0, at most 1");
  check(std::isfinite(settings.temperature) && settings.temperature > 0, "sample: a temperature of ",
        settings.temperature, ", expected above 0");
  check_limit(settings.limit);
}

}  // namespace

std::vector<Hypotheses> sample(const SequenceModel& model, const Batch& batch, std::span<const RandomKey> keys,
                               const SampleSettings& settings, const Context& context) {
  check_settings(settings, batch, keys.size());
  const auto samples = static_cast<std::size_t>(settings.samples);
  const auto vocabulary = static_cast<std::size_t>(model.target_words());
  std::vector<Hypotheses> found(batch.lengths.size(), Hypotheses(samples));
  if (found.empty()) return found;
  std::vector<std::vector<bool>> ended(found.size(), std::vector<bool>(samples, false));
  std::vector<std::size_t> places(found.size());  // of a source among those of the step before
  std::vector<std::int32_t> running(found.size()), origins, previous;
  std::iota(running.begin(), running.end(), 0);
  const std::unique_ptr<Decoding> decoding = model.decode(batch);
  Draw draw(settings);
  Tape tape;
  for (std::int64_t step = 0; !running.empty(); ++step) {
    stop_if_asked(context);
    tape.reset();
    // Before the first word all samples of a source are one row; then each is one, the ended ones unread.
    const std::size_t width = step == 0 ? 1 : samples, width_before = step <= 1 ? 1 : samples;
    origins.clear();
    previous.clear();
    for (const std::int32_t source : running) {
      const auto at = static_cast<std::size_t>(source);
      for (std::size_t i = 0; i < width; ++i) {
        const std::vector<std::int32_t>& words = found[at][i].words;
        previous.push_back(words.empty() ? settings.begin : words.back());
        origins.push_back(static_cast<std::int32_t>(places[at] * width_before + std::min(i, width_before - 1)));
      }
    }
    const Var logits = tape.constant(decoding->step(running, origins, previous));
    const Tensor log_probabilities = log_softmax(logits).value();
    const Tensor factor = tape.make({1}, DType::kF32);
    factor.data<float>()[0] = static_cast<float>(1 / settings.temperature);
    const Tensor probabilities = softmax(multiply(logits, tape.constant(factor))).value();
    std::vector<std::int32_t> still;
    for (std::size_t s = 0; s < running.size(); ++s) {
      const auto source = static_cast<std::size_t>(running[s]);
      const std::int64_t longest = settings.limit.of(batch.lengths[source], model.room());
      bool goes_on = false;
      for (std::size_t i = 0; i < samples; ++i) {
        if (ended[source][i]) continue;
        const std::size_t row = s * width + std::min(i, width - 1);
        const float* const each = probabilities.data<float>() + row * vocabulary;
        check(!std::isnan(each[0]), "decoding: a probability is not a number; the model is damaged");
        const double chance = static_cast<double>(uniform(keys[source].at(i), static_cast<std::uint64_t>(step)));
        const std::int32_t word = step >= longest ? settings.end : draw({each, vocabulary}, chance);
        Hypothesis& one = found[source][i];
        one.log_probability +=
            static_cast<double>(log_probabilities.data<float>()[row * vocabulary + static_cast<std::size_t>(word)]);
        ended[source][i] = word == settings.end;
        if (ended[source][i]) {
          one.score = one.log_probability / std::pow(static_cast<double>(step + 1), settings.penalty);
        } else {
          one.words.push_back(word);
          goes_on = true;
        }
      }
      places[source] = s;
      if (goes_on) still.push_back(running[s]);
    }
    running = std::move(still);
  }
  return found;
}

}  // namespace regard
