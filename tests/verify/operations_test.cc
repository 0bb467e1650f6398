// Every operation of the table against every promise: the gradient, the kernels, the bits, NaN, bad input.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <thread>

#include "base/check.h"
#include "base/float_mode.h"
#include "base/pool.h"
#include "kernels/target.h"
#include "support/cases.h"
#include "verify/checks.h"
#include "verify/table.h"

namespace regard::verify {
namespace {

bool fused(const std::string& target) { return target == "avx512" || target == "avx2"; }

class Operation : public testing::TestWithParam<std::string> {
 protected:
  const Row& row() const { return row_of(GetParam()); }
  // Of attend, which has hundreds, as many as REGARD_CASES says.
  std::vector<Case> some_cases() const {
    std::vector<Case> some;
    const std::size_t step = row().cases.size() / static_cast<std::size_t>(cases(static_cast<int>(row().cases.size())));
    for (std::size_t i = 0; i < row().cases.size();
         i += row().cases.size() < 100 ? 1 : std::max<std::size_t>(1, step)) {
      some.push_back(row().cases[i]);
    }
    return some;
  }
  std::vector<Case> all_cases() const {
    std::vector<Case> all = some_cases();
    all.insert(all.end(), row().large.begin(), row().large.end());
    return all;
  }
};

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Row& each : table()) all.emplace_back(name_of(each.op));
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Operation, testing::ValuesIn(names()), [](const auto& each) { return each.param; });

TEST(Table, HoldsTheOperationsWeKnowByName) {
  const std::vector<std::string> all = names();
  const std::set<std::string> known(all.begin(), all.end());
  EXPECT_EQ(known.size(), all.size()) << "two rows of one name";
  EXPECT_GE(all.size(), 38u);
  for (const char* name : {"matmul", "add", "divide", "tanh", "gelu", "softmax", "layer_norm", "embedding", "concat",
                           "mean", "dropout", "gru_cell", "recurrence", "linear_cross_entropy", "attend"}) {
    EXPECT_TRUE(known.contains(name)) << name;
  }
}

TEST(Table, AnUnknownOperationIsAnErrorThatListsTheKnown) {
  try {
    row_of("mathmul");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'mathmul'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("matmul, add"), std::string::npos);
  }
}

TEST_P(Operation, HasCasesOfEveryKind) {
  ASSERT_FALSE(row().cases.empty());
  ASSERT_FALSE(row().large.empty());
  ASSERT_FALSE(row().bad.empty());
  bool empty = false, one = false;
  std::set<std::string> seen;
  for (const Case& each : all_cases()) {
    EXPECT_TRUE(seen.insert(each.name).second) << "two cases are called " << each.name;
    for (const Input& input : each.inputs) {
      empty |= input.shape.size() == 0;
      for (int i = 0; i < input.shape.rank(); ++i) one |= input.shape[i] == 1;
    }
  }
  EXPECT_TRUE(empty) << "no case has a size of 0";
  EXPECT_TRUE(one) << "no case has a size of 1";
}

TEST_P(Operation, GradientMatchesFiniteDifferences) {
  std::int64_t checked = 0, skipped = 0;
  std::map<std::string, bool> has_gradient;
  for (const Case& each : some_cases()) {
    for (int seed = 2; seed <= cases(3); ++seed) {  // further numbers, beside those below
      const GradientReport report = check_gradient(each, draw(each, static_cast<std::uint64_t>(seed)));
      EXPECT_LE(report.worst, 1.0) << each.name << ", seed " << seed << ": " << report.where;
    }
    const Data data = draw(each);
    const GradientReport report = check_gradient(each, data);
    EXPECT_LE(report.worst, 1.0) << each.name << ": " << report.where;
    std::int64_t size = data.seed.size();
    for (const Tensor& input : data.inputs) size = std::min(size, std::max<std::int64_t>(input.size(), 0));
    if (size > 0 && !each.flat) {
      EXPECT_TRUE(report.any) << each.name << ": all gradients are zero";
    }
    checked += report.checked;
    skipped += report.skipped;
    const Result result = run(each, data, {.type = DType::kF64});
    for (std::size_t i = 0; i < each.inputs.size(); ++i) {
      bool& found = has_gradient[each.inputs[i].name];
      if (!result.gradients[i].defined()) continue;
      for (std::int64_t j = 0; j < result.gradients[i].size(); ++j) found |= result.gradients[i].data<double>()[j] != 0;
    }
  }
  EXPECT_GT(checked, 50);
  EXPECT_LE(static_cast<double>(skipped), 0.05 * static_cast<double>(checked)) << skipped << " of " << checked;
  for (const auto& [name, found] : has_gradient) EXPECT_TRUE(found) << name << " has no gradient in any case";
}

TEST_P(Operation, ReferenceMatchesTheScalarFormula) {
  for (const Case& each : some_cases()) {
    const Data data = draw(each);
    const Worst worst = compare(run(each, data, {.type = DType::kF64}), exact(each, data), kReferenceBound);
    EXPECT_TRUE(worst.good()) << each.name << ": " << worst.where;
  }
}

TEST_P(Operation, KernelsMatchTheReferenceOnEveryTarget) {
  ASSERT_FALSE(targets().empty());
  for (const Case& each : some_cases()) {
    for (int seed = 1; seed <= cases(5); ++seed) {
      const Data data = draw(each, static_cast<std::uint64_t>(seed));
      const Exact terms = exact(each, data);
      const Result reference = run(each, data, {.type = DType::kF64});
      for (const std::string& name : targets()) {
        const TargetScope scope(name);
        const Worst worst = compare(run(each, data), reference, terms, kKernelBound);
        EXPECT_TRUE(worst.good()) << each.name << " on " << name << ", seed " << seed << ": " << worst.where;
      }
    }
  }
}

TEST_P(Operation, GradientsAddUp) {
  for (const Case& each : some_cases()) {
    const Data data = draw(each);
    const Exact terms = exact(each, data);
    const Result reference = run(each, data, {.type = DType::kF64});
    for (const DType type : {DType::kF64, DType::kF32}) {
      const Result thrice = run(each, data, {.type = type, .passes = 3});
      const double bound = type == DType::kF32 ? kKernelBound : kReferenceBound;
      const Worst worst = compare(thrice, reference, terms, bound, 3);
      EXPECT_TRUE(worst.good()) << each.name << " in " << to_text(type) << ": " << worst.where;
    }
  }
}

TEST_P(Operation, BitsDependNeitherOnTargetNorOnThreads) {
  for (const Case& each : all_cases()) {
    const Data data = draw(each);
    Result first;
    for (const std::string& name : targets()) {
      const TargetScope scope(name);
      Result here;
      for (const int threads : {1, 2, 3}) {
        const ThreadLimit limit(threads);
        const Result result = run(each, data);
        if (threads == 1) here = result;
        EXPECT_EQ(difference(here, result), "") << each.name << " on " << name << ", 1 and " << threads << " threads";
      }
      if (!fused(name)) continue;
      if (!first.output.defined()) first = here;
      EXPECT_EQ(difference(first, here), "") << each.name << " on " << name;
    }
  }
}

TEST_P(Operation, BitsDoNotDependOnWhatMemoryHeldBefore) {
  for (const Case& each : some_cases()) {
    const Data data = draw(each);
    for (const std::string& name : targets()) {
      const TargetScope scope(name);
      const Result plain = run(each, data);
      EXPECT_EQ(difference(plain, run(each, data)), "") << each.name << " on " << name << ", once more";
      EXPECT_EQ(difference(plain, run(each, data, {.poison = true})), "") << each.name << " on " << name;
    }
  }
}

TEST_P(Operation, ItemsDoNotDependOnTheirNeighbours) {
  for (const Case& each : all_cases()) {
    const std::int64_t count = each.items();
    if (count == 0) continue;
    const Data data = draw(each);
    const Result whole = run(each, data);
    for (const Items items :
         {Items{0, 1}, Items{count / 2, count / 2 + 1}, Items{count - 1, count}, Items{count / 3, count}}) {
      const Result part = run(each, data, {.items = items});
      const auto where = [&] { return text(each.name, ", items ", items.begin, "…", items.end, " of ", count); };
      if (each.output_batched) {
        EXPECT_TRUE(same_bits(part.output, whole.output.slice(0, items.begin, items.end).clone())) << where();
      }
      for (std::size_t i = 0; i < each.inputs.size(); ++i) {
        if (!each.inputs[i].batched) continue;
        EXPECT_TRUE(same_bits(part.gradients[i], whole.gradients[i].slice(0, items.begin, items.end).clone()))
            << where() << ", gradient of " << each.inputs[i].name;
      }
    }
  }
}

TEST_P(Operation, ParametersGetTheBitsOfVariables) {
  for (const Case& each : all_cases()) {
    const Data data = draw(each);
    Parameters parameters;
    add_parameters(data, parameters);
    Result expected = run(each, data);
    for (std::size_t i = 0; i < data.inputs.size(); ++i) {  // what nothing reached is zeros for a parameter
      if (!expected.gradients[i].defined()) expected.gradients[i] = Tensor::zeros(data.inputs[i].shape());
    }
    EXPECT_EQ(difference(expected, run(each, parameters, data.seed)), "") << each.name;
  }
}

TEST_P(Operation, FourThreadsAtOnceGetTheBitsOfOne) {
  constexpr int kThreads = 4, kRounds = 5;
  std::vector<Data> data;
  std::vector<Result> serial;
  std::deque<Parameters> parameters;
  const std::vector<Case> cases = all_cases();
  for (const Case& each : cases) {
    data.push_back(draw(each));
    add_parameters(data.back(), parameters.emplace_back());
    serial.push_back(run(each, parameters.back(), data.back().seed));
  }
  std::vector<std::vector<std::string>> trouble(kThreads);
  std::vector<std::thread> workers;
  for (std::size_t worker = 0; worker < kThreads; ++worker) {
    workers.emplace_back([&, worker] {
      for (int round = 0; round < kRounds; ++round) {
        for (std::size_t i = 0; i < cases.size(); ++i) {
          const std::string where = difference(serial[i], run(cases[i], parameters[i], data[i].seed));
          if (!where.empty()) trouble[worker].push_back(cases[i].name + ": " + where);
        }
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (const auto& list : trouble) EXPECT_TRUE(list.empty()) << list.front();
}

TEST_P(Operation, FrozenInputsGetNoGradientAndChangeNoOther) {
  for (const Case& each : some_cases()) {
    const Data data = draw(each);
    const Result all = run(each, data);
    const std::size_t count = each.inputs.size();
    for (std::size_t one = 0; one < count; ++one) {
      for (const bool only : {false, true}) {  // one frozen, or all but one
        Setting setting;
        setting.frozen.assign(count, only);
        setting.frozen[one] = !only;
        const Result result = run(each, data, setting);
        EXPECT_TRUE(same_bits(result.output, all.output)) << each.name;
        for (std::size_t i = 0; i < count; ++i) {
          if (setting.frozen[i]) {
            EXPECT_FALSE(result.gradients[i].defined()) << each.name << ": " << each.inputs[i].name << " is frozen";
          } else {
            EXPECT_TRUE(same_bits(result.gradients[i], all.gradients[i])) << each.name << ": " << each.inputs[i].name;
          }
        }
      }
    }
  }
}

// NaN comes out exactly where the scalar formula has it. Of gradients it may reach more, never less (a product with an
// exact zero keeps it), but never those of another item of the batch.
TEST_P(Operation, NanReachesWhatDependsOnItAndNoOtherItem) {
  const auto hidden = [](const Tensor& got, const std::vector<double>& expected, bool exactly) -> std::string {
    for (std::int64_t i = 0; i < got.size(); ++i) {
      const double want = expected[static_cast<std::size_t>(i)];
      const float have = got.data<float>()[i];
      if (exactly ? std::isnan(have) != std::isnan(want) : std::isnan(want) && !std::isnan(have)) {
        return text(i, ": got ", have, ", expected ", want);
      }
    }
    return "";
  };
  for (const Case& each : some_cases()) {
    std::int64_t size = 0;
    for (const Input& input : each.inputs) size += input.shape.size();
    if (size > 3000) continue;
    const Data clean = draw(each);
    const std::size_t count = each.inputs.size();
    for (std::size_t input = 0; input <= count; ++input) {  // the last turn: the seed
      const bool is_seed = input == count,
                 batched = is_seed ? each.items() > 0 && each.output_batched : each.inputs[input].batched;
      const Tensor& source = is_seed ? clean.seed : clean.inputs[input];
      if (source.size() == 0) continue;
      for (const std::int64_t at : {std::int64_t{0}, source.size() / 2, source.size() - 1}) {
        Data data = clean;
        Tensor& poisoned = is_seed ? data.seed : data.inputs[input];
        poisoned = poisoned.clone();
        poisoned.data<float>()[at] = std::numeric_limits<float>::quiet_NaN();
        const Exact expected = exact(each, data);
        for (const std::string& name : targets()) {
          const TargetScope scope(name);
          const Result got = run(each, data);
          const std::string what =
              text(each.name, " on ", name, ", NaN in ", is_seed ? "the seed" : each.inputs[input].name, '[', at, ']');
          EXPECT_EQ(hidden(got.output, expected.output, true), "") << what << ": output";
          for (std::size_t i = 0; i < count; ++i) {
            if (!got.gradients[i].defined()) continue;
            EXPECT_EQ(hidden(got.gradients[i], expected.gradients[i], false), "")
                << what << ": gradient of " << each.inputs[i].name;
          }
          if (!batched) continue;
          const Result untouched = run(each, clean);
          const std::int64_t item = at / (source.size() / source[0]);
          const auto others_agree = [&](const Tensor& a, const Tensor& b) {
            return same_bits(a.slice(0, 0, item).clone(), b.slice(0, 0, item).clone()) &&
                   same_bits(a.slice(0, item + 1, a[0]).clone(), b.slice(0, item + 1, b[0]).clone());
          };
          for (std::size_t i = 0; i < count; ++i) {
            if (!each.inputs[i].batched) continue;
            EXPECT_TRUE(others_agree(got.gradients[i], untouched.gradients[i]))
                << what << ": gradient of " << each.inputs[i].name;
          }
        }
      }
    }
  }
}

TEST_P(Operation, BadInputIsAnErrorThatSaysWhatWasExpectedAndGot) {
  Tape tape;
  for (const BadInput& bad : row().bad) {
    try {
      bad.call(tape);
      ADD_FAILURE() << bad.name << ": nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput) << bad.name << ": " << error.what();
      for (const std::string& word : bad.words) {
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
            << bad.name << ": '" << word << "' is not in: " << error.what();
      }
    }
  }
  const Case& after = row().cases.front();  // the tape and the pool can still be used
  const Data data = draw(after);
  EXPECT_EQ(difference(run(after, data), run(after, data)), "");
}

TEST_P(Operation, LeavesTheCallersFloatModeAlone) {
  const std::uint64_t before = float_mode();
  std::vector<std::uint64_t> modes = {before};
#if defined(__x86_64__)
  modes.push_back(kComputeMode);
  modes.push_back(0x1f80 | 0x6000);  // towards zero
#endif
  for (const Case& each : all_cases()) {
    const Data data = draw(each);
    const Result plain = run(each, data);
    for (const std::uint64_t mode : modes) {
      set_float_mode(mode);
      const Result result = run(each, data);
      const std::uint64_t after = float_mode();
      set_float_mode(before);
      constexpr std::uint64_t kFlags = 0x3f;  // arithmetic sets them
      EXPECT_EQ(after & ~kFlags, mode & ~kFlags) << each.name;
      EXPECT_EQ(difference(plain, result), "") << each.name << " in mode " << mode;
    }
  }
}

}  // namespace
}  // namespace regard::verify
