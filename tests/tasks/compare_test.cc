// Mechanisms side by side, with very little training.
#include "tasks/compare.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <stop_token>

#include "data/corpus.h"
#include "io/json.h"
#include "support/error_of.h"
#include "support/folder.h"
#include "support/occurrences.h"
#include "tasks/local_cost.h"

namespace regard {
namespace {

CompareSettings tiny(const std::string& folder, const std::string& mechanisms) {
  CompareSettings settings;
  settings.mechanisms = compared_mechanisms(mechanisms);
  settings.budget = "6u";
  settings.lines = 100;
  settings.tests = 10;
  settings.folder = folder;
  settings.model.hidden = settings.model.embedding = 16;
  settings.training.longest_text = 20;
  settings.training.batch_tokens = 200;
  return settings;
}

// Everything but what depends on the clock.
std::string numbers(const Comparison& found) {
  std::string out;
  for (const Compared& each : found.all) {
    out += text(each.mechanism, " ", each.where, " ", each.loss, " ", each.bleu, " ", each.chrf, " ",
                each.aer.value_or(-1), " ", each.entropy.value_or(-1), " ", each.parameters, " ", each.updates, " ",
                each.course.size(), "\n");
  }
  return out;
}

TEST(Compare, SplitsListsAtSemicolons) {
  EXPECT_EQ(compared_mechanisms(" none;dot | local_m:5 ; ;additive"),
            (std::vector<std::string>{"none", "dot | local_m:5", "additive"}));
  EXPECT_NE(error_of([] { compared_mechanisms(" ; "); }).find("no mechanism"), std::string::npos);
}

TEST(Compare, WritesATableAndPlotsAndDoesNotTrainTwice) {
  const Folder folder;
  const CompareSettings settings =
      tiny(folder / "c", "none; uniform; dot | local_m:3; general | local_p:3; dot | hard");
  const Comparison found = compare_translation(settings, {}, {});
  ASSERT_EQ(found.all.size(), 5u);
  EXPECT_FALSE(found.all[0].aer.has_value());  // nobody looks
  EXPECT_EQ(found.all[0].where, "none");
  for (std::size_t i = 1; i < 5; ++i) {
    const Compared& each = found.all[i];
    SCOPED_TRACE(each.mechanism);
    EXPECT_EQ(each.where, "cross");
    EXPECT_GE(each.aer.value(), 0);
    EXPECT_LE(each.aer.value(), 1);
    EXPECT_EQ(each.updates, 6);
    EXPECT_GE(each.course.size(), 6u);
    EXPECT_GT(each.memory, 4 * each.parameters);  // weights, gradients and more
    EXPECT_TRUE(each.bleu_beyond.has_value());
  }
  EXPECT_NEAR(found.all[1].entropy.value(), 1, 1e-5) << "uniform";
  for (const Compared& each : found.all) {
    SCOPED_TRACE(each.mechanism);
    EXPECT_GT(each.steps.value(), 6);
    EXPECT_EQ(each.steps, found.all[0].steps) << "all read word by word";
    EXPECT_EQ(each.place_error.has_value(), each.mechanism.find("local_p") != std::string::npos);
  }
  EXPECT_GT(found.all[1].flops.value(), found.all[0].flops.value()) << "none looks at nothing";
  EXPECT_LT(found.all[2].flops.value(), found.all[1].flops.value()) << "local_m sees less";
  EXPECT_GT(found.all[3].place_error.value(), 0);
  EXPECT_LT(found.all[3].place_error.value(), 60);
  EXPECT_NEAR(found.all[4].entropy.value(), 0, 1e-9) << "hard reads one key";
  const Json json = Json::parse(folder.read("c/compare.json"), "compare.json");
  EXPECT_EQ(json.at("mechanisms").array().size(), 5u);
  EXPECT_EQ(occurrences(folder.read("c/compare.md"), "\n| `"), 5u);
  EXPECT_EQ(json.at("mechanisms").array()[3].at("place_error").number(), found.all[3].place_error.value());
  EXPECT_NE(folder.read("c/compare.md").find("| Mflop | steps | updates | \\|p−gold\\| |"), std::string::npos);
  EXPECT_NE(folder.read("c/compare.md").find("| `dot \\| hard` | cross |"), std::string::npos);
  EXPECT_NE(folder.read("c/lengths.svg").find("trained up to here"), std::string::npos);
  EXPECT_EQ(folder.read("c/time.svg").find("<svg"), 0u);

  int updates = 0;
  CompareSettings more = settings;  // and one more
  more.mechanisms.push_back("additive");
  const Comparison again = compare_translation(more, {.on_update = [&](const UpdateReport&) { ++updates; }}, {});
  EXPECT_EQ(updates, 6);
  EXPECT_EQ(numbers(again).find(numbers(found)), 0u);
}

TEST(Compare, AStoppedComparisonGoesOnToTheSameNumbers) {
  const Folder folder;
  const Comparison whole = compare_translation(tiny(folder / "whole", "dot; additive"), {}, {});
  const CompareSettings settings = tiny(folder / "parts", "dot; additive");
  std::stop_source stop;
  int updates = 0;
  CompareEvents events;
  events.on_update = [&](const UpdateReport&) {
    if (++updates == 9) stop.request_stop();  // in the midst of the second
  };
  const std::string error = error_of([&] { compare_translation(settings, events, {.cancel = stop.get_token()}); });
  EXPECT_EQ(error, "compare: stopped in 'additive'; the same command goes on");
  updates = -100;
  const Comparison rest = compare_translation(settings, events, {});
  EXPECT_EQ(updates, -97);
  EXPECT_EQ(numbers(rest), numbers(whole));
}

TEST(Compare, PutsLinesWhereTheyMakeSense) {
  const Folder folder;
  CompareSettings settings =
      tiny(folder / "t", "scaled_dot | sparsemax; relative:4; random_synth:200; general | local_p:4");
  settings.model = CompareSettings::compared_model("transformer-tiny");
  settings.model.hidden = settings.model.ffn = 16;
  settings.model.heads = 2;
  settings.model.encoder_layers = settings.model.decoder_layers = 1;
  settings.budget = "2u";
  const Comparison found = compare_translation(settings, {}, {});
  EXPECT_EQ(found.all[0].where, "encoder decoder cross");
  EXPECT_EQ(found.all[1].where, "encoder decoder");
  EXPECT_EQ(found.all[2].where, "encoder decoder");
  EXPECT_EQ(found.all[3].where, "encoder cross");
  settings.where = CompareWhere::kCross;
  settings.folder = folder / "cross";
  settings.mechanisms = {"relative:4"};
  EXPECT_EQ(compare_translation(settings, {}, {}).all[0].where, "cross");
}

TEST(Compare, MistakesAreToldBeforeAnythingIsTrained) {
  const Folder folder;
  const auto mistake = [&](const CompareSettings& settings) {
    return error_of(
        [&] { compare_translation(settings, {.on_update = [](const UpdateReport&) { ADD_FAILURE(); }}, {}); });
  };
  EXPECT_NE(mistake(tiny(folder / "a", "dot; addative")).find("did you mean 'additive'?"), std::string::npos);
  EXPECT_NE(mistake(tiny(folder / "a", "dot; dot")).find("is there twice"), std::string::npos);
  CompareSettings settings = tiny(folder / "a", "none");
  settings.model = CompareSettings::compared_model("transformer-tiny");
  EXPECT_EQ(mistake(settings), "compare: 'none' is for recurrent models, this one is a transformer");
  settings = tiny(folder / "a", "dot");
  settings.where = CompareWhere::kSelf;
  EXPECT_NE(mistake(settings).find("has no self-attention"), std::string::npos);
  settings = tiny(folder / "a", "dot");
  settings.budget = "3e";
  EXPECT_NE(mistake(settings).find("expected a time or a number of updates"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  settings = tiny(folder / "a", "dot");
  settings.budget = "1u";
  compare_translation(settings, {}, {});
  settings.model.hidden = 24;
  EXPECT_EQ(mistake(settings), "compare: '" + (folder / "a") +
                                   "' holds a comparison with other settings: model.hidden is 16 there and 24 here; "
                                   "choose another --out");
}

TEST(Compare, OnlyLinesThatLookAtAPartCanBeCheaper) {
  EXPECT_TRUE(looks_at_a_part("general | local_p:5"));
  EXPECT_TRUE(looks_at_a_part("dot | causal & window:5"));
  EXPECT_FALSE(looks_at_a_part("dot | causal"));
  EXPECT_NE(error_of([] { cheaper_from("dot", {}, {}); }).find("looks at all keys"), std::string::npos);
  for (const char* line :
       {"general | local_p:2", "additive | local_m:2", "dot | window:1"}) {  // which is a matter of time
    const std::optional<std::int64_t> from = cheaper_from(line, {.heads = 2, .width = 8, .longest = 64}, {});
    EXPECT_TRUE(!from || *from == 16 || *from == 32 || *from == 64) << line;
  }
}

}  // namespace
}  // namespace regard
