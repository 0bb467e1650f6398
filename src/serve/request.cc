#include "serve/request.h"

#include <algorithm>
#include <limits>

#include "attention/cards.h"
#include "attention/line.h"
#include "base/check.h"
#include "base/utf8.h"
#include "io/json.h"

namespace regard::serve {
namespace {

constexpr std::size_t kLongestName = 64;  // of a language or a model
constexpr std::size_t kLongestKey = 256;  // of the key that lets one in
constexpr std::size_t kMostFields = 32;

template <class... Parts>
[[noreturn]] void refuse(int status, const Parts&... parts) {
  throw Refusal(status, text(parts...));
}

int hex(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

std::string unescaped(std::string_view form) {
  std::string out;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] == '+') {
      out += ' ';
    } else if (form[i] == '%') {
      const int high = i + 2 < form.size() ? hex(form[i + 1]) : -1, low = i + 2 < form.size() ? hex(form[i + 2]) : -1;
      if (high < 0 || low < 0) refuse(400, "the form has a % without two hexadecimal digits behind it");
      out += static_cast<char>(static_cast<unsigned char>(high * 16 + low));
      i += 2;
    } else {
      out += form[i];
    }
  }
  return out;
}

bool is_number(std::string_view value) {
  return !value.empty() && value.size() < 10 && value.find_first_not_of("0123456789") == std::string_view::npos;
}

// A form says the same as the JSON that is made of it, in texts alone.
std::string json_of_form(std::string_view form) {
  JsonWriter out;
  out.begin_object();
  for (std::size_t fields = 0; !form.empty(); ++fields) {
    if (fields == kMostFields) refuse(400, "the form has more than ", kMostFields, " fields");
    const std::size_t end = std::min(form.find('&'), form.size());
    const std::string_view field = form.substr(0, end);
    form.remove_prefix(std::min(end + 1, form.size()));
    const std::size_t equals = std::min(field.find('='), field.size());
    const std::string key = unescaped(field.substr(0, equals));
    const std::string value = unescaped(field.substr(std::min(equals + 1, field.size())));
    if (!utf8::valid(key) || !utf8::valid(value)) refuse(400, "the form is no UTF-8");
    out.key(key);
    if (key != "q" && is_number(value)) {
      out.value(static_cast<std::int64_t>(std::stoll(value)));
    } else if (key != "q" && (value == "true" || value == "false")) {
      out.value(value == "true");
    } else {
      out.value(value);
    }
  }
  return out.end_object().text();
}

Json parse(std::string_view body, std::string_view type) {
  std::string kind(type.substr(0, type.find(';')));
  while (kind.ends_with(' ')) kind.pop_back();
  std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return std::tolower(c); });
  if (kind == "application/x-www-form-urlencoded") return Json::parse(json_of_form(body), "the form");
  if (!kind.empty() && kind != "application/json") {
    refuse(415, "a body of another type than application/json or application/x-www-form-urlencoded");
  }
  return Json::parse(body, "the request");
}

// What Json throws about a request is the client's mistake, and says which.
template <class Read>
auto reading(std::string_view body, std::string_view type, const Read& read) {
  try {
    return read(parse(body, type));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal || error.kind() == ErrorKind::kCancelled) throw;
    throw Refusal(400, error.what());
  }
}

// Letters that text cannot show, or that end it, are blanks.
std::string cleaned(std::string_view text) {
  std::string out(text);
  std::replace(out.begin(), out.end(), '\0', ' ');
  return out;
}

std::string short_text(const Json& request, std::string_view key, std::string_view usual, std::size_t longest) {
  const std::optional<Json> found = request.find(key);
  if (!found || found->is_null()) return std::string(usual);
  const std::string_view value = found->text();
  if (value.size() > longest) refuse(400, key, ": a text of ", value.size(), " bytes, expected at most ", longest);
  return std::string(value);
}

bool flag(const Json& request, std::string_view key) {
  const std::optional<Json> found = request.find(key);
  return found && !found->is_null() && found->boolean();
}

std::int64_t whole(const Json& request, std::string_view key, std::int64_t usual, std::int64_t least,
                   std::int64_t most) {
  const std::optional<Json> found = request.find(key);
  return !found || found->is_null() ? usual : found->integer(least, most);
}

Languages languages_of(const Json& request) {
  Languages made{.source = short_text(request, "source", "auto", kLongestName),
                 .target = short_text(request, "target", "", kLongestName),
                 .model = short_text(request, "model", "", kLongestName)};
  if (made.source.empty()) made.source = "auto";
  return made;
}

std::string key_of(const Json& request) { return short_text(request, "api_key", "", kLongestKey); }

// A text, or an array of them. `total` counts the bytes of all texts of the request.
std::vector<std::string> texts_of(const Json& request, std::string_view key, const Limits& limits, std::size_t& total,
                                  bool& many) {
  const std::optional<Json> found = request.find(key);
  if (!found) refuse(400, key, " is missing: the text, or an array of texts");
  std::vector<Json> places;
  many = found->kind() == Json::Kind::kArray;
  if (many) {
    places = found->array();
    if (places.size() > static_cast<std::size_t>(limits.texts)) {
      refuse(413, key, ": ", places.size(), " texts, expected at most ", limits.texts);
    }
  } else {
    places.push_back(*found);
  }
  std::vector<std::string> texts;
  for (const Json& each : places) {
    const std::string_view value = each.text();
    total += value.size();
    if (total > static_cast<std::size_t>(limits.text)) {
      refuse(413, key, ": more than ", limits.text, " bytes of text in one request");
    }
    texts.push_back(cleaned(value));
  }
  return texts;
}

AlignmentLevel level_of(const Json& request) {
  return alignment_level(short_text(request, "level", "word", kLongestName));
}

std::optional<double> threshold_of(const Json& request) {
  const std::optional<Json> found = request.find("threshold");
  if (!found || found->is_null()) return std::nullopt;
  return found->number(0, 1);
}

std::optional<AttentionAsked> attention_of(const Json& request) {
  const std::optional<Json> found = request.find("attention");
  if (!found || found->is_null()) return std::nullopt;
  if (found->kind() == Json::Kind::kBoolean) return found->boolean() ? std::optional(AttentionAsked{}) : std::nullopt;
  found->allow_only({"layer", "head"});
  AttentionAsked made;
  if (const auto layer = found->find("layer")) made.layer = layer->integer(0, 1000);
  if (const auto head = found->find("head")) made.head = head->integer(-1, 1000);
  return made;
}

constexpr double kMostNumber = 1e6;  // of the lab: what is made of them stays finite

std::optional<double> number(const Json& request, std::string_view key, double least, double most) {
  const std::optional<Json> found = request.find(key);
  if (!found || found->is_null()) return std::nullopt;
  return found->number(least, most);
}

// An array of rows of the same width.
std::optional<NumberRows> rows_of(const Json& request, std::string_view key, std::int64_t most_rows,
                                  std::int64_t most_width) {
  const std::optional<Json> found = request.find(key);
  if (!found || found->is_null()) return std::nullopt;
  const std::vector<Json> rows = found->array();
  NumberRows made{.count = static_cast<std::int64_t>(rows.size())};
  if (rows.empty()) refuse(400, key, ": no rows, expected 1 to ", most_rows);
  if (made.count > most_rows) refuse(413, key, ": ", made.count, " rows, expected at most ", most_rows);
  for (const Json& each : rows) {
    const std::vector<Json> row = each.array();
    const auto width = static_cast<std::int64_t>(row.size());
    if (row.empty()) refuse(400, key, ": a row without numbers, expected 1 to ", most_width);
    if (width > most_width) refuse(413, key, ": a row of ", width, " numbers, expected at most ", most_width);
    if (made.width == 0) made.width = width;
    if (width != made.width) refuse(400, key, ": rows of ", made.width, " and of ", width, " numbers");
    for (const Json& number : row) {
      const bool flag = number.kind() == Json::Kind::kBoolean;
      made.numbers.push_back(flag ? (number.boolean() ? 1.0f : 0.0f)
                                  : static_cast<float>(number.number(-kMostNumber, kMostNumber)));
    }
  }
  return made;
}

PairsRequest pairs_of(const Json& request, const Limits& limits) {
  PairsRequest made;
  std::size_t total = 0;
  bool many = false;
  std::vector<std::string> sources = texts_of(request, "q", limits, total, made.many);
  std::vector<std::string> targets = texts_of(request, "translation", limits, total, many);
  if (many != made.many || sources.size() != targets.size()) {
    refuse(400, "q and translation: ", sources.size(), " and ", targets.size(),
           " texts, expected two texts or two arrays of the same length");
  }
  for (std::size_t i = 0; i < sources.size(); ++i) made.pairs.push_back({std::move(sources[i]), std::move(targets[i])});
  made.languages = languages_of(request);
  made.key = key_of(request);
  return made;
}

}  // namespace

TranslateRequest translate_request(std::string_view body, std::string_view type, const Limits& limits) {
  return reading(body, type, [&](const Json& request) {
    request.allow_only({"q", "source", "target", "model", "format", "alternatives", "beam", "alignment", "attention",
                        "level", "threshold", "stream", "trace", "api_key", "secret"});
    TranslateRequest made;
    std::size_t total = 0;
    made.texts = texts_of(request, "q", limits, total, made.many);
    made.languages = languages_of(request);
    const std::string format = short_text(request, "format", "text", kLongestName);
    if (format != "text" && format != "html") refuse(400, "format: ", json_quote(format), ", expected text or html");
    made.html = format == "html";
    made.alternatives = whole(request, "alternatives", 0, 0, limits.alternatives);
    made.beam = whole(request, "beam", std::min<std::int64_t>(5, limits.beam), 1, limits.beam);
    if (flag(request, "alignment")) made.alignment = {level_of(request), threshold_of(request)};
    made.attention = attention_of(request);
    made.stream = flag(request, "stream");
    made.trace = flag(request, "trace");
    made.key = key_of(request);
    if (made.html && (made.alignment || made.attention || made.stream)) {
      refuse(400, "format html goes without alignment, attention and stream");
    }
    if (made.trace && (made.html || made.stream || made.alignment || made.attention || made.many)) {
      refuse(400, "trace goes without format html, stream, alignment, attention and an array of texts");
    }
    if (made.stream && made.many) refuse(400, "stream: q is an array, expected one text");
    if (made.stream && (made.alternatives > 0 || made.alignment)) {
      refuse(400, "stream goes without alternatives and alignment");
    }
    if (made.stream && request.find("beam") && made.beam != 1) {
      refuse(400, "beam: ", made.beam, ", expected 1 with stream: a word that was sent cannot be taken back");
    }
    return made;
  });
}

EditRequest edit_request(std::string_view body, std::string_view type, const Limits& limits) {
  return reading(body, type, [&](const Json& request) {
    request.allow_only({"q", "source", "target", "model", "alternatives", "beam", "mute", "hide", "pin", "prefix",
                        "attention", "trace", "api_key"});
    EditRequest made;
    std::size_t total = 0;
    bool many = false;
    std::vector<std::string> texts = texts_of(request, "q", limits, total, many);  // an array may have none
    if (many) refuse(400, "q: an array, expected one text");
    made.text = std::move(texts[0]);
    if (made.text.find('\n') != std::string::npos) refuse(400, "q: a text of several lines, expected one line");
    made.languages = languages_of(request);
    made.alternatives = whole(request, "alternatives", 0, 0, limits.alternatives);
    made.beam = whole(request, "beam", std::min<std::int64_t>(5, limits.beam), 1, limits.beam);
    made.attention = attention_of(request);
    made.trace = flag(request, "trace");
    made.key = key_of(request);
    const auto each_of = [&](std::string_view key, const auto& read) {
      const std::optional<Json> found = request.find(key);
      if (!found || found->is_null()) return;
      const std::vector<Json> all = found->array();
      if (all.size() > static_cast<std::size_t>(limits.tokens)) {
        refuse(413, key, ": ", all.size(), " of them, expected at most ", limits.tokens);
      }
      for (const Json& each : all) read(each);
    };
    const auto optional_place = [](const Json& from, std::string_view key) {
      const std::optional<Json> found = from.find(key);
      return found && !found->is_null() ? found->integer(0, 1000) : -1;
    };
    each_of("mute", [&](const Json& each) {
      each.allow_only({"map", "layer", "head"});
      const std::string map = short_text(each, "map", "cross", kLongestName);
      WhatIf::Head head{.layer = each.at("layer").integer(0, 1000), .head = each.at("head").integer(0, 1000)};
      if (map == "encoder") {
        head.kind = LookKind::kEncoder;
      } else if (map == "decoder") {
        head.kind = LookKind::kDecoder;
      } else if (map != "cross") {
        refuse(400, "mute.map: ", json_quote(map), ", expected cross, encoder or decoder");
      }
      made.muted.push_back(head);
    });
    each_of("hide", [&](const Json& each) { made.hidden.push_back(each.integer(0, limits.tokens)); });
    each_of("pin", [&](const Json& each) {
      each.allow_only({"target", "source", "weights", "layer", "head"});
      EditRequest::Pin pin{.target = each.at("target").integer(0, 1'000'000)};
      if (const std::optional<Json> weights = each.find("weights")) {
        const std::vector<Json> all = weights->array();
        total += all.size() * sizeof(float);
        if (total > limits.body) refuse(413, "pin: too many weights");
        for (const Json& weight : all) pin.weights.push_back(static_cast<float>(weight.number(0, 1000)));
        if (all.empty() || each.find("source")) refuse(400, "pin: expected source, or weights and no source");
      } else {
        pin.source = each.at("source").integer(0, limits.tokens);
      }
      pin.layer = optional_place(each, "layer");
      pin.head = optional_place(each, "head");
      made.pins.push_back(std::move(pin));
    });
    each_of("prefix", [&](const Json& each) {
      if (each.text().size() > kLongestKey) refuse(400, "prefix: a piece of ", each.text().size(), " bytes");
      made.prefix.emplace_back(each.text());
    });
    return made;
  });
}

PairsRequest align_request(std::string_view body, std::string_view type, const Limits& limits) {
  return reading(body, type, [&](const Json& request) {
    request.allow_only({"q", "translation", "source", "target", "model", "level", "threshold", "api_key"});
    PairsRequest made = pairs_of(request, limits);
    made.alignment = {level_of(request), threshold_of(request)};
    return made;
  });
}

PairsRequest score_request(std::string_view body, std::string_view type, const Limits& limits) {
  return reading(body, type, [&](const Json& request) {
    request.allow_only({"q", "translation", "source", "target", "model", "per_token", "normalize", "api_key"});
    PairsRequest made = pairs_of(request, limits);
    made.per_token = flag(request, "per_token");
    made.normalize = flag(request, "normalize");
    return made;
  });
}

DetectRequest detect_request(std::string_view body, std::string_view type, const Limits& limits) {
  return reading(body, type, [&](const Json& request) {
    request.allow_only({"q", "api_key"});
    std::size_t total = 0;
    bool many = false;
    std::vector<std::string> texts = texts_of(request, "q", limits, total, many);
    if (many) refuse(400, "q: an array, expected one text");
    return DetectRequest{.text = std::move(texts[0]), .key = key_of(request)};
  });
}

AttendRequest attend_request(std::string_view body, std::string_view type, const Limits& limits) {
  return reading(body, type, [&](const Json& request) {
    request.allow_only({"line", "q", "k", "v", "sentence", "width", "seed", "scale", "temperature", "length",
                        "documents", "mask", "bias", "api_key"});
    AttendRequest made;
    made.line = short_text(request, "line", "scaled_dot", kLongestMechanism);
    made.q = rows_of(request, "q", kMostLabRows, kMostLabWidth);
    made.k = rows_of(request, "k", kMostLabRows, kMostLabWidth);
    made.v = rows_of(request, "v", kMostLabRows, kMostLabWidth);
    const std::optional<Json> sentence = request.find("sentence");
    if (sentence && !sentence->is_null()) {
      if (made.q || made.k || made.v) refuse(400, "sentence goes without q, k and v");
      if (sentence->text().size() > static_cast<std::size_t>(limits.text)) {
        refuse(413, "sentence: more than ", limits.text, " bytes");
      }
      made.sentence = cleaned(sentence->text());
    } else if (!made.q) {
      refuse(400, "q is missing: rows of numbers, and k and v with it; or a sentence");
    }
    made.width = whole(request, "width", made.width, 1, kMostLabWidth);
    made.seed = static_cast<std::uint64_t>(whole(request, "seed", 1, 0, std::numeric_limits<std::int64_t>::max()));
    made.scale = number(request, "scale", kLeastReal, kMostReal);
    made.temperature = number(request, "temperature", kLeastReal, kMostReal);
    if (request.find("length")) made.length = static_cast<std::int32_t>(whole(request, "length", 0, 0, kMostLabRows));
    if (const std::optional<Json> documents = request.find("documents"); documents && !documents->is_null()) {
      const std::vector<Json> all = documents->array();
      if (all.size() > static_cast<std::size_t>(kMostLabRows)) {
        refuse(413, "documents: ", all.size(), " numbers, expected at most ", kMostLabRows);
      }
      for (const Json& each : all) made.documents.push_back(static_cast<std::int32_t>(each.integer(-1, kMostLabRows)));
    }
    made.mask = rows_of(request, "mask", kMostLabRows, kMostLabRows);
    if (made.mask && std::any_of(made.mask->numbers.begin(), made.mask->numbers.end(),
                                 [](float each) { return each != 0 && each != 1; })) {
      refuse(400, "mask: expected true and false, or 1 and 0");
    }
    made.bias = rows_of(request, "bias", kMostLabRows, kMostLabRows);
    made.key = key_of(request);
    return made;
  });
}

}  // namespace regard::serve
