#include "tasks/letters.h"

#include <algorithm>

#include "base/check.h"
#include "regard/random.h"

namespace regard {
namespace {

constexpr std::string_view kNoise = ".#-~";
constexpr std::uint64_t kTestShare = 8;  // one source of so many belongs to the test
static_assert(kNoise.size() == Letters::kNoises);

bool is_for_test(std::span<const std::int32_t> source) {
  RandomKey key(0);
  for (const std::int32_t word : source) key = key.at(static_cast<std::uint64_t>(word));
  return key.value() % kTestShare == 0;
}

}  // namespace

Letters::Letters(const LettersSettings& settings) : settings_(settings) {
  check(settings.least_letters >= 1 && settings.least_letters <= settings.most_letters, "letters: from ",
        settings.least_letters, " to ", settings.most_letters, " letters a source, expected at least 1");
  check(settings.most_letters >= 2, "letters: at most ", settings.most_letters,
        " letters a source: too few for training and test to differ, expected 2 or more");
}

LettersExample Letters::draw(std::uint64_t number, bool test) const {
  for (std::uint64_t attempt = 0;; ++attempt) {
    const RandomKey key = RandomKey(settings_.seed).at(test ? 1 : 0).at(number).at(attempt);
    std::uint64_t element = 0;
    const auto below = [&](std::uint32_t count) {
      return static_cast<std::uint32_t>(random_below(key, element++, count));
    };
    std::uint32_t letters = settings_.least_letters + below(settings_.most_letters - settings_.least_letters + 1);
    std::uint32_t noises = below(settings_.most_noise + 1);

    LettersExample example;
    example.pair.id = number * 2 + (test ? 1 : 0);
    while (letters + noises > 0) {  // every way of mixing them is equally likely
      const bool is_letter = below(letters + noises) < letters;
      const std::uint32_t word = 2 + (is_letter ? below(kLetters) : kLetters + below(kNoises));
      if (is_letter) example.places.push_back(static_cast<std::int32_t>(example.pair.source.size()));
      example.pair.source.push_back(static_cast<std::int32_t>(word));
      --(is_letter ? letters : noises);
    }
    if (is_for_test(example.pair.source) != test) continue;
    if (settings_.reverse) std::reverse(example.places.begin(), example.places.end());
    for (const std::int32_t place : example.places) {
      example.pair.target.push_back(example.pair.source[static_cast<std::size_t>(place)]);
    }
    return example;
  }
}

std::string Letters::text(std::int32_t word) {
  check(word >= 0 && word < kWords, "letters: there is no word ", word, ", expected 0 … ", kWords - 1);
  if (word == kBegin) return "<begin>";
  if (word == kEnd) return "<end>";
  const auto place = static_cast<std::uint32_t>(word) - 2;
  return {place < kLetters ? static_cast<char>('a' + place) : kNoise[place - kLetters]};
}

std::vector<std::string> Letters::labels(std::span<const std::int32_t> words) {
  std::vector<std::string> result;
  for (const std::int32_t word : words) result.push_back(text(word));
  return result;
}

std::vector<std::int32_t> Letters::words(const std::string& text) {
  std::vector<std::int32_t> result;
  for (const char letter : text) {
    const std::size_t noise = kNoise.find(letter);
    check((letter >= 'a' && letter <= 'z') || noise != std::string_view::npos, "letters: '", letter,
          "' is none of a … z ", kNoise);
    result.push_back(noise == std::string_view::npos ? 2 + (letter - 'a')
                                                     : static_cast<std::int32_t>(2 + kLetters + noise));
  }
  return result;
}

}  // namespace regard
