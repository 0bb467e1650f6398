// From weights to alignments: with weights made by hand, then with models whose weights are anybody's guess.
#include "tasks/alignment.h"

#include <gtest/gtest.h>

#include "io/json.h"
#include "io/model_file.h"
#include "regard/random.h"
#include "support/error_of.h"
#include "support/files.h"
#include "tasks/align_pairs.h"
#include "tasks/train_translation.h"

namespace regard {
namespace {

// "ab c" in pieces "a", "b", "c", and "x yz" in pieces "x", "", "yz" of which the second stands for nothing.
Translator::Looked looked() {
  Translator::Looked made;
  made.source = {{5, 0, 1}, {6, 1, 2}, {7, 3, 4}};
  made.target = {{5, 0, 1}, {6, 2, 2}, {7, 2, 4}};
  made.weights = Tensor::of<float>({1, 2, 4, 4}, {
                                                     0.5f,  0.25f,  0.25f, 0,       // head 0: x
                                                     0,     0,      1,     0,       // nothing
                                                     0.25f, 0.125f, 0.5f,  0.125f,  // yz
                                                     0,     1,      0,     0,       // the end
                                                     0,     0,      0,     1,       // head 1
                                                     0,     0,      1,     0,       //
                                                     0,     0,      0.5f,  0.5f,    //
                                                     1,     0,      0,     0,       //
                                                 });
  return made;
}
PairUnits words() { return {.source = {{0, 2}, {3, 4}}, .target = {{0, 1}, {2, 4}}}; }

TEST(UnitWeights, AreSumsOverTheSourceAndMeansOverTheTarget) {
  const UnitWeights made = unit_weights(looked(), words(), {.layer = 0, .head = 0});
  EXPECT_EQ(made.weights, (std::vector<double>{0.75, 0.25, 0.375, 0.5}));
  EXPECT_EQ(made.end, (std::vector<double>{0, 0.125}));
  EXPECT_EQ(unit_weights(looked(), words(), {.layer = 0, .head = -1}).weights,
            (std::vector<double>{0.375, 0.125, 0.1875, 0.5}));
  const UnitWeights after = unit_weights(looked(), words(), {.layer = 0, .head = 0, .shift = 1});
  EXPECT_EQ(after.weights, (std::vector<double>{0, 1, 1, 0}));
}

TEST(UnitWeights, OneTokenOfSeveralUnitsIsShared) {
  Translator::Looked made;
  made.source = {{5, 0, 6}};  // 3 bytes of one unit, 1 of another, 2 between
  made.target = {{5, 0, 1}, {6, 1, 4}};
  made.weights = Tensor::of<float>({1, 1, 3, 2}, {0.5f, 0.5f, 1, 0, 0, 1});
  const UnitWeights weights = unit_weights(made, {.source = {{0, 3}, {5, 6}}, .target = {{0, 4}}}, {});
  // the mean of 0.5 (1 byte) and 1 (3 bytes) is 0.875
  EXPECT_EQ(weights.weights, (std::vector<double>{0.875 * 0.75, 0.875 * 0.25}));
  EXPECT_EQ(weights.end, (std::vector<double>{0.125}));
}

TEST(UnitWeights, PiecesAreTakenOneToOne) {
  PairUnits pieces{.source = {{0, 1}, {1, 2}, {3, 4}}, .target = {{0, 1}, {2, 2}, {2, 4}}};
  const UnitWeights made = unit_weights(looked(), pieces, {});
  EXPECT_EQ(made.weights, (std::vector<double>{0.25, 0.125, 0.125, 0, 0, 1, 0.125, 0.0625, 0.5}));
}

TEST(Alignment, EveryKindHasItsText) {
  const TextPair texts{"ab c", "x yz"};
  const AlignmentChoice choice{.layer = 0, .head = 0};
  const auto made = [&](const char* kind) {
    return alignment_text(looked(), words(), texts, alignment_settings(kind), choice);
  };
  EXPECT_EQ(made("hard"), "0-0 1-1");
  EXPECT_EQ(made("spans"), "0:2-0:1 3:4-2:4");
  EXPECT_EQ(made("0.375"), "0-0 0-1 1-1");
  EXPECT_EQ(made("1"), "");
  EXPECT_EQ(made("soft"), "0.75,0.25 0.375,0.5");
  for (const char* kind : {"", "har", "0", "-0.1", "1.1", "nan", "0.3x", "inf"}) {
    EXPECT_NE(error_of([&] { alignment_settings(kind); }).find("expected hard, soft"), std::string::npos) << kind;
  }
}

TEST(Alignment, SpansCountCharactersNotBytes) {
  Translator::Looked made;
  made.source = {{5, 0, 6}, {6, 6, 9}};
  made.target = {{5, 0, 2}, {6, 3, 4}};
  made.weights = Tensor::of<float>({1, 1, 3, 3}, {0, 1, 0, 1, 0, 0, 0, 0, 1});
  EXPECT_EQ(alignment_text(made, {.source = {{0, 6}, {6, 9}}, .target = {{0, 2}, {3, 4}}}, {"他们看", "é s"},
                           alignment_settings("spans"), {}),
            "0:2-2:3 2:3-0:1");
}

TEST(Agreed, IsLargeOnlyWhereBothAre) {
  const UnitWeights forward{.targets = 1, .sources = 3, .weights = {0.5, 0.5, 0}, .end = {0}};
  const UnitWeights backward{.targets = 3, .sources = 1, .weights = {0.5, 0.125, 0}, .end = {0, 0, 0}};
  const UnitWeights made = agreed(forward, backward);
  EXPECT_EQ(made.weights, (std::vector<double>{0.5, 0.2, 0}));
  EXPECT_EQ(turned(made).weights, made.weights);
  EXPECT_EQ(turned(made).targets, 3u);
  EXPECT_EQ(turned(turned(forward)).weights, forward.weights);
  EXPECT_NE(error_of([&] { agreed(forward, forward); }), "");
}

TEST(HardLinks, NothingLinksToNothing) {
  EXPECT_TRUE(hard_links({}).empty());
  EXPECT_TRUE(hard_links({.targets = 2, .sources = 0, .weights = {}, .end = {1, 1}}).empty());
  EXPECT_EQ(pharaoh(hard_links({.targets = 2, .sources = 2, .weights = {0, 0, 0.5, 0.5}, .end = {0, 0}})), "0-1");
  EXPECT_EQ(pharaoh(hard_links({.targets = 2, .sources = 1, .weights = {0.04, 0.05}, .end = {0, 0}}, 0.05)), "0-1");
  EXPECT_TRUE(links_above({.targets = 1, .sources = 1, .weights = {0}, .end = {1}}, 0).empty());
}

TEST(HardLinks, AreWithinRangeAndAtMostOneATargetUnit) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const RandomKey key(seed);
    UnitWeights weights{
        .targets = random_below(key, 0, 6), .sources = random_below(key, 1, 6), .weights = {}, .end = {}};
    for (std::size_t i = 0; i < weights.targets * weights.sources; ++i) {
      weights.weights.push_back(static_cast<double>(random_below(key, 2 + i, 4)) / 8);
    }
    weights.end.assign(weights.targets, 0.125);
    const Links hard = hard_links(weights);
    std::vector<int> links(weights.targets, 0);
    for (const Link& link : hard) {
      ASSERT_LT(static_cast<std::size_t>(link.source), weights.sources);
      ASSERT_LT(static_cast<std::size_t>(link.target), weights.targets);
      EXPECT_EQ(++links[static_cast<std::size_t>(link.target)], 1);
      for (std::size_t s = 0; s < weights.sources; ++s) {
        EXPECT_LE(weights.at(static_cast<std::size_t>(link.target), s),
                  weights.at(static_cast<std::size_t>(link.target), static_cast<std::size_t>(link.source)));
      }
    }
    Links before = links_above(weights, 0.0625);
    for (const double threshold : {0.125, 0.25, 0.375, 1.0}) {
      const Links above = links_above(weights, threshold);
      EXPECT_TRUE(std::includes(before.begin(), before.end(), above.begin(), above.end()));
      before = above;
    }
  }
}

// A model that learned next to nothing, to see what is written where.
class Models : public testing::Test {
 protected:
  static std::string train(const Folder& folder, const std::string& name, const char* pair = "zh-en") {
    ModelSettings model = preset(name);
    model.hidden = 16;
    model.embedding = 16;
    model.ffn = 16;
    model.heads = 2;
    if (model.family == "transformer") {
      model.encoder_layers = 1;
      model.decoder_layers = 3;
    }
    TranslationSettings settings;
    settings.tokenizer = "words";
    settings.stop_after = "2u";
    settings.valid_every = "2u";
    settings.best_by = "loss";
    const std::string path = folder / (name + pair);
    train_translation({.builtin = pair, .builtin_lines = 60, .builtin_tests = 5}, model, settings, {.path = path}, {});
    return path;
  }
  const Folder folder_;
};

TEST_F(Models, TheChoiceIsStoredAndNothingElseChanges) {
  const std::string path = train(folder_, "transformer-tiny");
  const auto weights = [&] {
    const ModelFile file = load_model(disk(), path);
    std::string all;
    for (const FileTensor* each : file.weights()) {
      all += each->name;
      all.append(reinterpret_cast<const char*>(each->bytes.data()), each->bytes.size());
    }
    return all + file.tokenizer("source").bytes + file.tokenizer("target").bytes;
  };
  const std::string before = read_file(disk(), path), weights_before = weights();
  const AttentionShape shape = Translator(path).attention_shape();
  EXPECT_EQ(choice_of(Translator(path)), usual_choice(shape));
  EXPECT_EQ(usual_choice(shape), (AlignmentChoice{.layer = shape.layers - 1, .head = -1, .shift = 0}));
  EXPECT_EQ(usual_choice({.layers = 1, .heads = 1}), (AlignmentChoice{.layer = 0, .head = 0, .shift = 0}));
  EXPECT_EQ(all_choices({.layers = 1, .heads = 1}).size(), 2u);  // the mean of one head is that head
  EXPECT_EQ(all_choices(shape).size(), static_cast<std::size_t>(shape.layers * (shape.heads + 1) * 2));

  const AlignmentChoice choice{.layer = 2, .head = 1, .shift = 1};
  store_choice(path, choice);
  const Translator translator(path);
  EXPECT_EQ(choice_of(translator), choice);
  AlignmentSettings settings;
  settings.head = -1;
  EXPECT_EQ(choice_of(translator, settings), (AlignmentChoice{.layer = 2, .head = -1, .shift = 1}));
  EXPECT_EQ(weights(), weights_before);
  const std::string once = read_file(disk(), path);
  store_choice(path, choice);
  EXPECT_EQ(read_file(disk(), path), once);
  EXPECT_NE(once, before);
  EXPECT_EQ(Json::parse(translator.config(), "config").at("task").text(), "translate");

  settings.layer = 3;
  EXPECT_NE(error_of([&] { choice_of(translator, settings); }).find("layer 3, the model has 3"), std::string::npos);
  store_choice(path, {.layer = 0, .head = 2});
  EXPECT_NE(error_of([&] { choice_of(Translator(path)); }).find("head 2, the model has 2"), std::string::npos);
}

TEST_F(Models, WithoutAttentionThereIsNoAlignment) {
  const Translator translator(train(folder_, "gru"));
  const Translator::Result result{.text = "They", .tokens = translator.target().encode("They")};
  EXPECT_NE(error_of([&] { alignment_text(translator, "他们", result, {}); }).find("without attention"),
            std::string::npos);
}

TEST_F(Models, AlignmentsOfPairsAreThoseOfResults) {
  const Translator forward(train(folder_, "luong")), backward(train(folder_, "luong", "en-zh"));
  const std::vector<TextPair> pairs = {{"他们在看。", "They are watching."},
                                       {"", "Nothing comes from nothing."},
                                       {"没有", ""},
                                       {"他们 在 看 。", "They are watching ."},
                                       {"他们在看。", std::string(200, 'a') + " b"}};
  for (const char* kind : {"hard", "soft", "spans", "0.1"}) {
    for (const AlignmentLevel level : {AlignmentLevel::kWord, AlignmentLevel::kCharacter, AlignmentLevel::kPiece}) {
      AlignPairsSettings settings{.alignment = alignment_settings(kind)};
      settings.alignment.level = level;
      const auto aligned = PairAligner(forward, nullptr, settings).align(pairs);
      ASSERT_EQ(aligned.size(), pairs.size());
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const Translator::Result result{.text = pairs[i].target, .tokens = forward.target().encode(pairs[i].target)};
        EXPECT_EQ(aligned[i].text, alignment_text(forward, pairs[i].source, result, settings.alignment));
        EXPECT_FALSE(aligned[i].too_long);
      }
      settings.separate = true;
      if (settings.alignment.kind == AlignmentKind::kSoft) {
        EXPECT_NE(error_of([&] { PairAligner(forward, &backward, settings); }).find("two models"), std::string::npos);
      } else {
        EXPECT_EQ(PairAligner(forward, &backward, settings).align(pairs).size(), pairs.size());
      }
    }
  }
  const auto some = PairAligner(forward, &backward, {.longest = 4}).align(pairs);
  EXPECT_TRUE(some[1].too_long);  // five words and a mark
  EXPECT_TRUE(some[1].text.empty());
  EXPECT_FALSE(some[3].too_long);
  EXPECT_EQ(some[3].text, PairAligner(forward, &backward, {}).align(pairs)[3].text);
}

TEST_F(Models, JoinedTextIsReadAsItIsWrittenAndCountedAsItWasCut) {
  const Translator translator(train(folder_, "luong"));
  const std::vector<TextPair> cut = {{"他们 在看 。", "They are watching , too ."}};
  const JoinedText source = joined(cut[0].source), target = joined(cut[0].target);
  ASSERT_EQ(source.text + target.text, "他们在看。They are watching, too.");
  const Translator::Result result{.text = target.text, .tokens = translator.target().encode(target.text)};
  const Links links = hard_links(
      unit_weights(translator.look(source.text, result), {source.words, target.words}, choice_of(translator)));
  EXPECT_EQ(PairAligner(translator, nullptr, {.join = true}).align(cut)[0].text, pharaoh(links));
  const PairUnits given{words_of(cut[0].source, WordCut::kBlanks), words_of(cut[0].target, WordCut::kBlanks)};
  EXPECT_EQ(
      PairAligner(translator, nullptr, {.alignment = alignment_settings("spans"), .join = true}).align(cut)[0].text,
      span_text(links, given, cut[0]));
  AlignPairsSettings pieces{.join = true};
  pieces.alignment.level = AlignmentLevel::kPiece;
  EXPECT_NE(error_of([&] { PairAligner(translator, nullptr, pieces); }).find("as words"), std::string::npos);
}

TEST_F(Models, TwoDirectionsAreSymmetrized) {
  const Translator forward(train(folder_, "luong")), backward(train(folder_, "luong", "en-zh"));
  const std::vector<TextPair> pairs = {{"他们 在 看 。", "They are watching ."}};
  const std::vector<TextPair> other = {{pairs[0].target, pairs[0].source}};
  const Links ahead = parse_links(PairAligner(forward, nullptr, {}).align(pairs)[0].text, "ahead");
  const Links back = turned(parse_links(PairAligner(backward, nullptr, {}).align(other)[0].text, "back"));
  for (const Symmetry how :
       {Symmetry::kIntersection, Symmetry::kUnion, Symmetry::kGrowDiag, Symmetry::kGrowDiagFinalAnd}) {
    EXPECT_EQ(PairAligner(forward, &backward, {.symmetry = how, .separate = true}).align(pairs)[0].text,
              pharaoh(symmetrized(how, ahead, back)));
  }
}

}  // namespace
}  // namespace regard
