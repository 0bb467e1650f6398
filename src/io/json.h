// JSON, read strictly and written the same on every machine.
//
//     const Json config = Json::parse(text, "config of 'zh-en.model'");
//     const std::int64_t width = config.at("width").integer(1, 65536);
//
// What is read may come from a stranger: at most 32 levels, no key twice, no number that does not fit what is asked
// for. Errors name the place: "config of 'zh-en.model': layers[2].width: 1.5, expected a whole number from 1 to 65536".
//
//     JsonWriter out;
//     out.begin_object().key("width").value(512).end_object();
//     out.text();                                            // {"width":512}
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace regard {

class Json {  // a place in a document, which lives as long as any place in it
 public:
  static constexpr int kMostLevels = 32;
  static constexpr std::size_t kMostBytes = 64 << 20;
  static constexpr std::size_t kMostValues = 4'000'000;

  static Json parse(std::string_view text, std::string_view what);  // `what` names the text in errors

  enum class Kind : std::uint8_t { kNull, kBoolean, kInteger, kNatural, kNumber, kText, kArray, kObject };
  Kind kind() const;  // kNatural: a whole number of 2⁶³ and more; kNumber: one with a point or an exponent
  bool is_null() const { return kind() == Kind::kNull; }

  std::vector<Json> array() const;
  std::vector<std::pair<std::string_view, Json>> object() const;  // in the order of the text
  std::string_view text() const;
  bool boolean() const;
  double number(double least = std::numeric_limits<double>::lowest(),
                double most = std::numeric_limits<double>::max()) const;
  std::int64_t integer(std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  std::uint64_t natural() const;  // 0 … 2⁶⁴ − 1

  Json at(std::string_view key) const;  // of an object; throws if it is not there
  std::optional<Json> find(std::string_view key) const;
  void allow_only(std::initializer_list<std::string_view> keys) const;  // throws if an object has another one
  [[noreturn]] void wrong(const std::string& expected) const;           // throws: place, what is there, what is not
  std::string to_json() const;                                          // without blanks

 private:
  struct Node;
  struct Document;
  class Reader;
  Json(std::shared_ptr<const Document> document, std::uint32_t index) : document_(std::move(document)), index_(index) {}
  const Node& node() const;
  void expect(Kind kind, const char* name) const;
  void write(class JsonWriter& out) const;

  std::shared_ptr<const Document> document_;
  std::uint32_t index_;
};

// What follows what is the caller's business.
class JsonWriter {
 public:
  // Behind what is there already, with room for so many bytes in all.
  explicit JsonWriter(std::string before = "", std::size_t room = 0) : out_(std::move(before)) { out_.reserve(room); }
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(int number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(std::uint64_t number);
  JsonWriter& value(double number);        // the shortest text that reads as the same number; null if it is not finite
  JsonWriter& raw(std::string_view json);  // as it is
  const std::string& text() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void next();
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  std::string out_;
  bool comma_ = false;
};

std::string json_quote(std::string_view text);  // with its quotes; bytes that are not UTF-8 become U+FFFD

}  // namespace regard
