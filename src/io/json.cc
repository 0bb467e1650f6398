// Read by simdjson's DOM, which checks UTF-8 and numbers; then laid out as a flat list, parents before children, so
// that nothing of a library is kept and an error can name its place.
#include "io/json.h"

#include <fmt/format.h>

#if REGARD_SIMDJSON
#include <simdjson.h>
#endif

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/check.h"
#include "base/utf8.h"

namespace regard {

struct Json::Node {
  Kind kind = Kind::kNull;
  std::uint32_t parent = 0;
  std::uint32_t end = 0;    // the first one behind it and all it holds
  std::uint32_t count = 0;  // of what it holds directly
  std::uint32_t key_begin = 0, key_size = 0;
  union {
    bool boolean;
    std::int64_t integer;
    std::uint64_t natural;
    double number;
    struct {
      std::uint32_t begin, size;
    } text;
  };
  Node() : natural(0) {}
};

struct Json::Document {
  std::string what;
  std::vector<Node> nodes;
  std::string texts;  // those of keys and values, one after another

  std::string_view key(const Node& node) const { return std::string_view(texts).substr(node.key_begin, node.key_size); }

  std::string path(std::uint32_t index) const {
    std::vector<std::string> parts;
    while (index != 0) {
      const Node& node = nodes[index];
      if (nodes[node.parent].kind == Kind::kObject) {
        const std::string quoted = json_quote(key(node));  // it may hold anything
        parts.push_back((node.parent == 0 ? "" : ".") + quoted.substr(1, quoted.size() - 2));
      } else {
        std::uint32_t place = 0;
        for (std::uint32_t i = node.parent + 1; i != index; i = nodes[i].end) ++place;
        parts.push_back(fmt::format("[{}]", place));
      }
      index = node.parent;
    }
    std::string out;
    for (std::size_t i = parts.size(); i > 0; --i) out += parts[i - 1];
    return out;
  }
};

namespace {

template <class... Why>
[[noreturn]] void fail_text(std::string_view what, const Why&... why) {
  fail(ErrorKind::kFile, what, ": ", why...);
}

}  // namespace

#if REGARD_SIMDJSON

class Json::Reader {
 public:
  explicit Reader(Document& document) : document_(document) {}

  void add(simdjson::dom::element element, std::uint32_t parent, std::string_view key, int level) {
    using simdjson::dom::element_type;
    auto& nodes = document_.nodes;
    if (nodes.size() >= kMostValues) fail_text(document_.what, "more than ", kMostValues, " values");
    if (level > kMostLevels) fail_text(document_.what, "more than ", kMostLevels, " levels");
    const auto index = static_cast<std::uint32_t>(nodes.size());
    Node node;
    node.parent = parent;
    std::tie(node.key_begin, node.key_size) = keep(key);
    switch (element.type()) {
      case element_type::NULL_VALUE:
        break;
      case element_type::BOOL:
        node.kind = Kind::kBoolean;
        node.boolean = element.get_bool().value();
        break;
      case element_type::INT64:
        node.kind = Kind::kInteger;
        node.integer = element.get_int64().value();
        break;
      case element_type::UINT64:
        node.kind = Kind::kNatural;
        node.natural = element.get_uint64().value();
        break;
      case element_type::DOUBLE:
        node.kind = Kind::kNumber;
        node.number = element.get_double().value();
        break;
      case element_type::STRING:
        node.kind = Kind::kText;
        std::tie(node.text.begin, node.text.size) = keep(element.get_string().value());
        break;
      case element_type::ARRAY:
        node.kind = Kind::kArray;
        break;
      case element_type::OBJECT:
        node.kind = Kind::kObject;
        break;
    }
    nodes.push_back(node);
    std::uint32_t count = 0;
    if (node.kind == Kind::kArray) {
      const simdjson::dom::array elements = element.get_array().value();
      for (const simdjson::dom::element each : elements) {
        add(each, index, "", level + 1);
        ++count;
      }
    } else if (node.kind == Kind::kObject) {
      const simdjson::dom::object members = element.get_object().value();
      for (const auto& [name, each] : members) {
        add(each, index, name, level + 1);
        ++count;
      }
    }
    nodes[index].count = count;
    nodes[index].end = static_cast<std::uint32_t>(nodes.size());
    if (node.kind == Kind::kObject) refuse_twins(index);
  }

 private:
  std::pair<std::uint32_t, std::uint32_t> keep(std::string_view text) {
    const auto begin = static_cast<std::uint32_t>(document_.texts.size());
    document_.texts += text;
    return {begin, static_cast<std::uint32_t>(text.size())};
  }

  void refuse_twins(std::uint32_t index) {
    keys_.clear();
    const auto& nodes = document_.nodes;
    for (std::uint32_t i = index + 1; i < nodes[index].end; i = nodes[i].end) keys_.push_back(document_.key(nodes[i]));
    std::sort(keys_.begin(), keys_.end());
    const auto twin = std::adjacent_find(keys_.begin(), keys_.end());
    if (twin != keys_.end()) fail_text(document_.what, "the key ", json_quote(*twin), " stands twice");
  }

  Document& document_;
  std::vector<std::string_view> keys_;
};

Json Json::parse(std::string_view source, std::string_view what) {
  auto document = std::make_shared<Document>();
  document->what = what;
  if (source.size() > kMostBytes) {
    fail_text(what, source.size(), " bytes of JSON, at most ", kMostBytes, " are read");
  }
  simdjson::dom::parser parser;
  // One level more for simdjson, whose count begins elsewhere: the reader counts exactly.
  auto error = parser.allocate(std::max<std::size_t>(source.size(), 64), kMostLevels + 2);
  simdjson::dom::element root;
  if (!error) error = parser.parse(source.data(), source.size(), true).get(root);
  if (error == simdjson::DEPTH_ERROR) fail_text(what, "more than ", kMostLevels, " levels");
  if (error) fail_text(what, "not JSON: ", simdjson::error_message(error));
  Reader(*document).add(root, 0, "", 1);
  return Json(std::move(document), 0);
}

#else

Json Json::parse(std::string_view, std::string_view what) {
  fail_text(what, "built without simdjson: JSON is not read");
}

#endif

const Json::Node& Json::node() const { return document_->nodes[index_]; }
Json::Kind Json::kind() const { return node().kind; }

void Json::wrong(const std::string& expected) const {
  const Kind mine = kind();
  std::string got = mine == Kind::kArray ? "an array" : mine == Kind::kObject ? "an object" : to_json();
  if (mine == Kind::kText && text().size() > 40) got = json_quote(text().substr(0, 40)) + "…";
  const std::string path = document_->path(index_);
  fail(ErrorKind::kFile, document_->what, ": ", path, path.empty() ? "" : ": ", got, ", expected ", expected);
}

void Json::expect(Kind kind, const char* name) const {
  if (node().kind != kind) wrong(name);
}

std::vector<Json> Json::array() const {
  expect(Kind::kArray, "an array");
  std::vector<Json> all;
  all.reserve(node().count);
  for (std::uint32_t i = index_ + 1; i < node().end; i = document_->nodes[i].end) all.push_back(Json(document_, i));
  return all;
}

std::vector<std::pair<std::string_view, Json>> Json::object() const {
  expect(Kind::kObject, "an object");
  std::vector<std::pair<std::string_view, Json>> all;
  all.reserve(node().count);
  for (std::uint32_t i = index_ + 1; i < node().end; i = document_->nodes[i].end) {
    all.emplace_back(document_->key(document_->nodes[i]), Json(document_, i));
  }
  return all;
}

std::string_view Json::text() const {
  expect(Kind::kText, "a text");
  return std::string_view(document_->texts).substr(node().text.begin, node().text.size);
}

bool Json::boolean() const {
  expect(Kind::kBoolean, "true or false");
  return node().boolean;
}

double Json::number(double least, double most) const {
  const Node& it = node();
  const double value = it.kind == Kind::kNumber    ? it.number
                       : it.kind == Kind::kInteger ? static_cast<double>(it.integer)
                       : it.kind == Kind::kNatural ? static_cast<double>(it.natural)
                                                   : std::nan("");
  if (!(value >= least && value <= most)) {
    const bool any = least == std::numeric_limits<double>::lowest() && most == std::numeric_limits<double>::max();
    wrong(any ? "a number" : fmt::format("a number from {} to {}", least, most));
  }
  return value;
}

std::int64_t Json::integer(std::int64_t least, std::int64_t most) const {
  if (node().kind != Kind::kInteger || node().integer < least || node().integer > most) {
    wrong(fmt::format("a whole number from {} to {}", least, most));
  }
  return node().integer;
}

std::uint64_t Json::natural() const {
  const Node& it = node();
  if (it.kind == Kind::kNatural) return it.natural;
  if (it.kind != Kind::kInteger || it.integer < 0) wrong("a whole number from 0 to 18446744073709551615");
  return static_cast<std::uint64_t>(it.integer);
}

std::optional<Json> Json::find(std::string_view key) const {
  expect(Kind::kObject, "an object");
  for (std::uint32_t i = index_ + 1; i < node().end; i = document_->nodes[i].end) {
    if (document_->key(document_->nodes[i]) == key) return Json(document_, i);
  }
  return std::nullopt;
}

Json Json::at(std::string_view key) const {
  if (auto found = find(key)) return *found;
  const std::string path = document_->path(index_);
  fail(ErrorKind::kFile, document_->what, ": ", path, path.empty() ? "" : ": ", "there is no ", json_quote(key));
}

void Json::allow_only(std::initializer_list<std::string_view> keys) const {
  for (const auto& [key, value] : object()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      const std::string path = document_->path(index_);
      fail(ErrorKind::kFile, document_->what, ": ", path, path.empty() ? "" : ": ", "unknown key ", json_quote(key));
    }
  }
}

void Json::write(JsonWriter& out) const {
  const Node& it = node();
  switch (it.kind) {
    case Kind::kNull:
      out.raw("null");
      return;
    case Kind::kBoolean:
      out.value(it.boolean);
      return;
    case Kind::kInteger:
      out.value(it.integer);
      return;
    case Kind::kNatural:
      out.value(it.natural);
      return;
    case Kind::kNumber:
      out.value(it.number);
      return;
    case Kind::kText:
      out.value(text());
      return;
    case Kind::kArray:
      out.begin_array();
      for (const Json& each : array()) each.write(out);
      out.end_array();
      return;
    case Kind::kObject:
      out.begin_object();
      for (const auto& [key, each] : object()) {
        out.key(key);
        each.write(out);
      }
      out.end_object();
      return;
  }
}

std::string Json::to_json() const {
  JsonWriter out;
  write(out);
  return out.text();
}

namespace {

// As json_quote, behind what is there.
void quote(std::string_view text, std::string& out) {
  out += '"';
  std::size_t begin = 0, at = 0;  // what is between them needs no change and goes as a whole
  while (at < text.size()) {
    const auto letter = static_cast<unsigned char>(text[at]);
    const bool plain = letter >= 0x20 && letter != '"' && letter != '\\';
    if (plain && letter < 0x80) {
      ++at;
      continue;
    }
    const utf8::Letter whole = utf8::read(text, at);
    if (plain && whole.valid) {
      at += whole.length;
      continue;
    }
    out += text.substr(begin, at - begin);
    if (!whole.valid) {
      out += "\xef\xbf\xbd";
    } else if (letter == '"' || letter == '\\') {
      out += '\\';
      out += text[at];
    } else if (letter == '\n') {
      out += "\\n";
    } else if (letter == '\t') {
      out += "\\t";
    } else {
      out += fmt::format("\\u{:04x}", static_cast<int>(letter));
    }
    begin = ++at;
  }
  out += text.substr(begin);
  out += '"';
}

}  // namespace

void JsonWriter::next() {
  if (comma_) out_ += ',';
  comma_ = true;
}

JsonWriter& JsonWriter::begin_object() { return open('{'); }
JsonWriter& JsonWriter::end_object() { return close('}'); }
JsonWriter& JsonWriter::begin_array() { return open('['); }
JsonWriter& JsonWriter::end_array() { return close(']'); }

JsonWriter& JsonWriter::open(char bracket) {
  next();
  out_ += bracket;
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  next();
  quote(name, out_);
  out_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  next();
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  next();
  quote(text, out_);
  return *this;
}
JsonWriter& JsonWriter::value(bool flag) { return raw(flag ? "true" : "false"); }
JsonWriter& JsonWriter::value(std::int64_t number) {
  const fmt::format_int digits(number);
  return raw({digits.data(), digits.size()});
}
JsonWriter& JsonWriter::value(std::uint64_t number) {
  const fmt::format_int digits(number);
  return raw({digits.data(), digits.size()});
}
JsonWriter& JsonWriter::value(double number) {
  if (number == 0 && std::signbit(number)) return raw("-0.0");  // "-0" is a whole number, which has no sign at 0
  return raw(std::isfinite(number) ? fmt::format("{}", number) : "null");
}

std::string json_quote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  quote(text, out);
  return out;
}

}  // namespace regard
