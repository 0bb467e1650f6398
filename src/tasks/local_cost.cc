#include "tasks/local_cost.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>

#include "attention/line.h"
#include "base/check.h"
#include "regard/autograd/tape.h"
#include "regard/nn/attention_layer.h"

namespace regard {
namespace {

constexpr std::int64_t kShortest = 16;
constexpr int kTries = 5;

// One attention of so many queries and keys, forward.
class Timed {
 public:
  Timed(const std::string& line, const LocalCost& cost, std::int64_t length)
      : layer_(Builder(parameters_, RandomKey(1)), line,
               {.heads = cost.heads,
                .groups = cost.heads,
                .width = cost.width,
                .values = cost.width,
                .query_token = cost.heads * cost.width,
                .key_token = cost.heads * cost.width,
                .hidden = cost.width}),
        rows_(random({1, cost.heads, length, cost.width})),
        tokens_(random({1, length, cost.heads * cost.width})) {}

  double seconds() {
    tape_.reset();
    const Var rows = tape_.constant(rows_), tokens = tape_.constant(tokens_);
    const auto begin = std::chrono::steady_clock::now();
    layer_(rows, rows, rows, {.query_tokens = tokens, .key_tokens = tokens, .draws = false});
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  static Tensor random(const Shape& shape) {
    const Tensor made = Tensor::empty(shape);
    for (std::int64_t i = 0; i < made.size(); ++i) {
      made.data<float>()[i] = uniform(RandomKey(2), static_cast<std::uint64_t>(i)) - 0.5f;
    }
    return made;
  }

  Parameters parameters_;
  AttentionLayer layer_;
  Tensor rows_, tokens_;
  Tape tape_;
};

}  // namespace

bool looks_at_a_part(std::string_view line) {
  const Line parsed = parse_line(line);
  return std::any_of(parsed.scopes.begin(), parsed.scopes.end(), [](const Term& scope) {
    return scope.name == "local_m" || scope.name == "local_p" || scope.name == "window";
  });
}

std::optional<std::int64_t> cheaper_from(std::string_view line, const LocalCost& cost, const Context& context) {
  check(looks_at_a_part(line), "cheaper_from: \"", line, "\" looks at all keys, expected local_m, local_p or window");
  const ContextScope scope(context);
  Line whole = parse_line(line);
  whole.scopes = {{.name = "global"}};
  std::optional<std::int64_t> least;
  for (std::int64_t length = kShortest; length <= cost.longest; length *= 2) {
    stop_if_asked(context);
    Timed part(std::string(line), cost, length), all(to_text(whole), cost, length);
    double mine = std::numeric_limits<double>::max(), theirs = mine;
    for (int i = 0; i < kTries; ++i) {  // in turns, so that what else goes on meets both
      mine = std::min(mine, part.seconds());
      theirs = std::min(theirs, all.seconds());
    }
    if (mine >= theirs) {
      least.reset();
    } else if (!least) {
      least = length;
    }
  }
  return least;
}

}  // namespace regard
