// What clients ask, as JSON and as forms. The first byte says which request, the second of which type its body is.
#include "base/utf8.h"
#include "fuzz/target.h"
#include "io/json.h"
#include "serve/request.h"

namespace regard::serve {
namespace {

void fuzz_request(std::string_view bytes) {
  Input input(bytes);
  const std::size_t which = input.below(6);
  const char* const types[] = {"application/json", "application/x-www-form-urlencoded; charset=utf-8", "", "text/html"};
  const std::string_view type = types[input.below(std::size(types))], body = input.rest();
  const Limits limits{.texts = 8, .text = 2000};
  try {
    switch (which) {
      case 0: {
        const TranslateRequest request = translate_request(body, type, limits);
        hold(request.texts.size() <= 8 && (request.many || request.texts.size() == 1), "texts are bounded");
        hold(request.beam >= 1 && request.beam <= limits.beam, "the beam is bounded");
        for (const std::string& each : request.texts) hold(utf8::valid(each), "texts are UTF-8");
        break;
      }
      case 1:
        hold(align_request(body, type, limits).pairs.size() <= 8, "pairs are bounded");
        break;
      case 2:
        hold(score_request(body, type, limits).pairs.size() <= 8, "pairs are bounded");
        break;
      case 3:
        hold(detect_request(body, type, limits).text.size() <= 2000, "texts are bounded");
        break;
      case 4: {
        const EditRequest request = edit_request(body, type, limits);
        hold(utf8::valid(request.text) && request.text.size() <= 2000, "texts are bounded");
        for (const EditRequest::Pin& each : request.pins) hold(each.target >= 0 && each.source >= 0, "places are ≥ 0");
        for (const std::int64_t each : request.hidden) hold(each >= 0, "places are ≥ 0");
        break;
      }
      default:
        attend_request(body, type, limits);
        break;
    }
  } catch (const Refusal& refusal) {
    hold(refusal.status() == 400 || refusal.status() == 413 || refusal.status() == 415, "a refusal has its status");
    Json::parse(json_quote(refusal.what()), "the words of a refusal");
  }
}

const FuzzTarget target("request", fuzz_request);

}  // namespace
}  // namespace regard::serve
