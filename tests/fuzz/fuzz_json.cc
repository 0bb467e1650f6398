// JSON of strangers.
#include "base/utf8.h"
#include "fuzz/target.h"
#include "io/json.h"

namespace regard {
namespace {

void look(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::kArray:
      for (const Json& each : value.array()) look(each);
      break;
    case Json::Kind::kObject:
      for (const auto& [key, each] : value.object()) {
        hold(value.find(key).has_value(), "a key is found");
        look(each);
      }
      break;
    case Json::Kind::kText:
      hold(utf8::valid(value.text()), "texts are UTF-8");
      break;
    default:
      taken([&] { value.integer(-5, 5); });
      taken([&] { value.number(); });
      taken([&] { value.natural(); });
      break;
  }
}

void fuzz_json(std::string_view bytes) {
  taken([&] {
    const Json value = Json::parse(bytes, "this");
    look(value);
    const std::string text = value.to_json();
    hold(Json::parse(text, "what was written").to_json() == text, "what is written reads as the same");
  });
  Json::parse(json_quote(bytes), "any bytes as a text");
}

const FuzzTarget target("json", fuzz_json);

}  // namespace
}  // namespace regard
