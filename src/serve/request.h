// What clients may ask, read from JSON (or from a form, as LibreTranslate's own client sends it) into plain structs.
// Whatever is not as it should be is refused in words, before anything is computed.
//
//     const TranslateRequest asked = translate_request(body, "application/json", limits);
//
// The shape of /translate is LibreTranslate's: {"q": "他们在看。", "source": "auto", "target": "en"}.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "models/what_if.h"
#include "serve/limits.h"
#include "tasks/alignment.h"

namespace regard::serve {

// An answer other than the one that was hoped for. The text is for the client: nothing in it is a secret.
class Refusal : public std::runtime_error {
 public:
  Refusal(int status, const std::string& text) : std::runtime_error(text), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

struct AlignmentAsked {
  AlignmentLevel level = AlignmentLevel::kWord;
  std::optional<double> threshold = {};  // none: of every target unit the link with the greatest weight
};

struct AttentionAsked {  // none: all of them
  std::optional<std::int64_t> layer = {}, head = {};
};

struct Languages {
  std::string source = "auto", target = {};  // target "": the model's
  std::string model = {};                    // the name of one; "": by the languages
};

struct TranslateRequest {
  std::vector<std::string> texts;
  bool many = false;  // q was an array, and so is the answer
  Languages languages = {};
  bool html = false, stream = false;
  std::int64_t alternatives = 0, beam = 5;
  std::optional<AlignmentAsked> alignment = {};
  std::optional<AttentionAsked> attention = {};
  bool trace = false;  // the answer is a trace
  std::string key = {};
};

struct EditRequest {
  struct Pin {
    std::int64_t target = 0, source = 0;
    std::int64_t layer = -1, head = -1;
    std::vector<float> weights = {};  // none: 1 at `source`
  };
  std::string text;
  Languages languages = {};
  std::int64_t alternatives = 0, beam = 5;
  std::vector<WhatIf::Head> muted = {};
  std::vector<std::int64_t> hidden = {};
  std::vector<Pin> pins = {};
  std::vector<std::string> prefix = {};
  std::optional<AttentionAsked> attention = {};
  bool trace = false;
  std::string key = {};
};

struct PairsRequest {  // of /align and /score
  std::vector<TextPair> pairs;
  bool many = false;
  Languages languages = {};
  AlignmentAsked alignment = {};              // of /align
  bool per_token = false, normalize = false;  // of /score
  std::string key = {};
};

struct DetectRequest {
  std::string text;
  std::string key = {};
};

struct NumberRows {
  std::int64_t count = 0, width = 0;
  std::vector<float> numbers = {};
};

struct AttendRequest {  // of the lab (serve/lab.h)
  std::string line;
  std::optional<NumberRows> q = {}, k = {}, v = {};
  std::optional<std::string> sentence = {};  // instead of them
  std::int64_t width = 8;                    // of the vectors of its words
  std::uint64_t seed = 1;
  std::optional<double> scale = {}, temperature = {};
  // What some scopes want to be given.
  std::optional<std::int32_t> length = {};
  std::vector<std::int32_t> documents = {};
  std::optional<NumberRows> mask = {}, bias = {};
  std::string key = {};
};
inline constexpr std::int64_t kMostLabRows = 64, kMostLabWidth = 64;

// They throw a Refusal: 400 for what makes no sense, 413 for too much, 415 for a body of another type.
TranslateRequest translate_request(std::string_view body, std::string_view type, const Limits& limits);
EditRequest edit_request(std::string_view body, std::string_view type, const Limits& limits);
PairsRequest align_request(std::string_view body, std::string_view type, const Limits& limits);
PairsRequest score_request(std::string_view body, std::string_view type, const Limits& limits);
DetectRequest detect_request(std::string_view body, std::string_view type, const Limits& limits);
AttendRequest attend_request(std::string_view body, std::string_view type, const Limits& limits);

}  // namespace regard::serve
