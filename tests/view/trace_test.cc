#include "view/trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "io/json.h"
#include "io/safetensors.h"
#include "regard/error.h"
#include "support/damage.h"
#include "support/error_of.h"
#include "support/folder.h"

namespace regard {
namespace {

Tensor numbers(const Shape& shape, float step) {
  Tensor out = Tensor::empty(shape);
  for (std::int64_t i = 0; i < out.size(); ++i) out.data<float>()[i] = static_cast<float>(i % 11) * step;
  return out;
}

TraceAxis words(const std::string& name, const std::string& text, std::vector<TraceToken> tokens) {
  return {.name = name, .text = text, .tokens = std::move(tokens)};
}

Trace translation() {
  TraceItem item{
      .title = "line 1",
      .axes = {words("source", "他们在看。",
                     {{"他们", 0, 6, 0}, {"在", 6, 9, 1}, {"看。", 9, 15, 2}, {"</s>", 15, 15, -1}}),
               words("target", "They look.", {{"They", 0, 4, 0}, {"look.", 5, 10, 1}, {"</s>", 10, 10, -1}})},
      .maps = {{.name = "cross",
                .rows = "target",
                .columns = "source",
                .weights = numbers({2, 3, 3, 4}, 0.1f),
                .norms = numbers({2, 3, 4}, 0.5f)},
               {.name = "decoder",
                .rows = "target",
                .columns = "target",
                .weights = numbers({1, 1, 3, 3}, 0.2f),
                .causal = true}},
      .choice = TraceChoice{.map = "cross", .layer = 1, .head = 2, .shift = 1},
      .log_probability = -1.25,
      .erasure = TraceErasure{.most = 3.5, .random = 0.1, .words = 1},
      .beam = TraceBeam{{{{"They", -1, -0.5}, {"It", -1, -1.5}}, {{"look.", 0, -1.0}, {"looks.", 1, -2.0}}}}};
  item.maps[0].weights.data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  return {{item}};
}

Trace picture_and_sound() {
  const TraceAxis caption = words("caption", "a dog", {{"a", 0, 1, 0}, {"dog", 2, 5, 1}});
  Trace trace{
      {{.axes = {caption,
                 {.name = "image",
                  .kind = TraceAxis::Kind::kGrid,
                  .rows = 2,
                  .columns = 3,
                  .picture = numbers({4, 6, 3}, 0.1f),
                  .height = 4,
                  .width = 6},
                 {.name = "regions",
                  .kind = TraceAxis::Kind::kBoxes,
                  .boxes = {{0, 0, 6, 4, "dog"}, {1.5, 1, 2, 3.25, ""}},
                  .height = 4,
                  .width = 6}},
        .maps = {{.name = "grid", .rows = "caption", .columns = "image", .weights = numbers({1, 1, 2, 6}, 0.1f)},
                 {.name = "boxes", .rows = "caption", .columns = "regions", .weights = numbers({1, 1, 2, 2}, 0.1f)}}},
       {.axes = {caption,
                 {.name = "sound",
                  .kind = TraceAxis::Kind::kFrames,
                  .frames = 5,
                  .first = 0.5,
                  .step = 0.1,
                  .sound = numbers({7}, -0.1f),
                  .rate = 16000,
                  .spectrum = numbers({5, 8}, 3)}},
        .maps = {{.name = "heard", .rows = "caption", .columns = "sound", .weights = numbers({1, 2, 2, 5}, 0.1f)}}}}};
  return trace;
}

TEST(Trace, WhatIsWrittenIsReadAndGivesTheSameBytes) {
  for (const Trace& trace : {Trace(), translation(), picture_and_sound()}) {
    const std::string bytes = trace.bytes();
    EXPECT_EQ(Trace::parse(bytes, "it").bytes(), bytes);
  }
  const TraceItem item = Trace::parse(translation().bytes(), "it").items.at(0);
  EXPECT_EQ(item.title, "line 1");
  EXPECT_EQ(item.axis("source").text, "他们在看。");
  EXPECT_EQ(item.axis("source").tokens[2].text, "看。");
  EXPECT_EQ(item.axis("source").tokens[2].begin, 9u);
  EXPECT_EQ(item.axis("source").tokens[2].end, 15u);
  EXPECT_EQ(item.axis("source").tokens[2].word, 2);
  const TraceMap& cross = item.map("cross");
  EXPECT_EQ(cross.rows, "target");
  EXPECT_EQ(cross.weights.shape(), (Shape{2, 3, 3, 4}));
  EXPECT_EQ(cross.weights.data<float>()[7], numbers({8}, 0.1f).data<float>()[7]);
  EXPECT_TRUE(std::isnan(cross.weights.data<float>()[5]));
  EXPECT_EQ(cross.norms.shape(), (Shape{2, 3, 4}));
  EXPECT_FALSE(cross.causal);
  EXPECT_TRUE(item.map("decoder").causal);
  EXPECT_FALSE(item.map("decoder").norms.defined());
  ASSERT_TRUE(item.choice && item.log_probability && item.erasure && item.beam);
  EXPECT_EQ(item.choice->map, "cross");
  EXPECT_EQ(item.choice->layer, 1);
  EXPECT_EQ(item.choice->head, 2);
  EXPECT_EQ(item.choice->shift, 1);
  EXPECT_EQ(*item.log_probability, -1.25);
  EXPECT_EQ(item.erasure->most, 3.5);
  EXPECT_EQ(item.beam->steps[1][1].text, "looks.");
  EXPECT_EQ(item.beam->steps[1][1].parent, 1);
}

TEST(Trace, PicturesBoxesAndFramesComeBack) {
  const Trace trace = Trace::parse(picture_and_sound().bytes(), "it");
  const TraceAxis &image = trace.items[0].axis("image"), &regions = trace.items[0].axis("regions"),
                  &sound = trace.items[1].axis("sound");
  EXPECT_EQ(image.size(), 6);
  EXPECT_EQ(image.label(5), "1,2");
  EXPECT_EQ(image.picture.shape(), (Shape{4, 6, 3}));
  EXPECT_EQ(regions.size(), 2);
  EXPECT_EQ(regions.label(0), "dog");
  EXPECT_EQ(regions.label(1), "1");
  EXPECT_EQ(regions.boxes[1].bottom, 3.25);
  EXPECT_EQ(sound.size(), 5);
  EXPECT_EQ(sound.label(3), "0.8 s");
  EXPECT_EQ(sound.rate, 16000);
  EXPECT_EQ(sound.spectrum.shape(), (Shape{5, 8}));
  EXPECT_EQ(sound.sound.data<float>()[1], -0.1f);
  EXPECT_THROW(sound.label(5), Error);
  EXPECT_EQ(error_of([&] { trace.items[1].map("cross"); }), "trace: there is no map 'cross', there is heard");
  EXPECT_EQ(error_of([&] { trace.items[1].axis("x"); }), "trace: there is no axis 'x'");
}

TEST(Trace, AFileIsWrittenAsAWholeAndRead) {
  const Folder folder;
  translation().write(folder / "a.trace");
  EXPECT_EQ(folder.read("a.trace"), translation().bytes());
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.trace"});
  EXPECT_EQ(Trace::read(folder / "a.trace").bytes(), translation().bytes());
  EXPECT_EQ(error_of([&] { Trace::read(folder / "b.trace"); }),
            "cannot read '" + folder / "b.trace" + "': No such file or directory");
}

// As another program would write it: plain safetensors, no digest.
std::string plain(const std::string& json, const std::vector<FileTensor>& tensors,
                  const std::string& format = "regard-trace 1.0") {
  std::string out = safetensors_header({{"format", format}, {"trace", json}}, tensors);
  for (const FileTensor& each : tensors) {
    out.append(reinterpret_cast<const char*>(each.bytes.data()), each.bytes.size());
  }
  return out;
}

std::string error_in(const std::string& bytes) {
  return error_of([&] { Trace::parse(bytes, "it"); });
}

TEST(Trace, FilesOfOthersAreRead) {
  const Tensor wide = numbers({1, 1, 2, 2}, 0.25f).to(DType::kF64), narrow = wide.to(DType::kBF16);
  const std::string pixels("\0\xff\x33", 3);
  FileTensor picture = file_bytes("pixels", pixels);
  picture.shape = {1, 1, 3};
  const Trace trace = Trace::parse(plain(R"({"items":[{"axes":[{"name":"a","kind":"tokens","tokens":["x","y"]},
                {"name":"p","kind":"grid","rows":1,"columns":2,"picture":"pixels"}],
                "maps":[{"name":"m","rows":"a","columns":"a","weights":"any name"},
                        {"name":"n","rows":"a","columns":"p","weights":"narrow"}],
                "choice":{"map":"m","layer":0}}]})",
                                         {file_tensor("any name", wide), file_tensor("narrow", narrow), picture}),
                                   "it");
  const TraceItem& item = trace.items[0];
  EXPECT_EQ(item.maps[0].weights.data<float>()[3], 0.75f);
  EXPECT_EQ(item.maps[1].weights.data<float>()[3], 0.75f);
  EXPECT_EQ(item.axis("a").tokens[1].text, "y");
  EXPECT_EQ(item.axis("a").tokens[1].word, -1);
  EXPECT_EQ(item.axis("p").picture.data<float>()[1], 1.0f);
  EXPECT_EQ(item.axis("p").picture.data<float>()[2], 0.2f);
  EXPECT_EQ(item.axis("p").width, 1);
  EXPECT_EQ(item.choice->head, -1);
}

TEST(Trace, ANewerMajorVersionIsRefusedAndANewerMinorIsRead) {
  EXPECT_EQ(error_in(plain(R"({"items":[]})", {}, "regard-trace 2.0")),
            "it has format 2.0, this version of Regard reads 1.x at most; a newer Regard is needed");
  EXPECT_EQ(error_in(plain(R"({"items":[],"more":1})", {}, "regard-trace 1.7")), "");
  EXPECT_EQ(error_in(plain(R"({"items":[],"more":1})", {})), "it: unknown key \"more\"");
  EXPECT_EQ(error_in(plain(R"({"items":[]})", {}, "regard-model 1.0")),
            "it is not a regard-trace file: it says \"regard-model 1.0\"");
  EXPECT_EQ(error_in(safetensors_header({}, {})), "it is not a trace: there is no \"format\" in its metadata");
  EXPECT_EQ(error_in(safetensors_header({{"format", "regard-trace 1.0"}}, {})),
            "it is not a trace: there is no \"trace\" in its metadata");
  EXPECT_EQ(error_in(safetensors_header({{"format", "regard-trace 1.0"}, {"trace", "{}"}, {"x", ""}}, {})),
            "it: unknown key \"x\" in its metadata");
  EXPECT_EQ(error_in(safetensors_header({{"format", "regard-trace 1.0"}, {"trace", "{}"}, {"digest", "00"}}, {})),
            "it is damaged: its digest is not where it should be");
}

// One item: an axis "a" of two tokens, then what is told.
std::string with(const std::string& axes, const std::string& maps = "", const std::string& more = "") {
  static const Tensor two = numbers({1, 1, 2, 2}, 0.1f), wrong = numbers({1, 1, 2, 3}, 0.1f), flat = numbers({4}, 0.3f);
  static const Tensor infinite = Tensor::of({1, 1, 2, 2}, {0.0f, std::numeric_limits<float>::infinity(), 0.0f, 0.0f});
  static const Tensor less = Tensor::of({1, 1, 2}, {-1.0f, 0.0f}), loud = Tensor::of({2}, {0.0f, 1.5f});
  static const Tensor bright = Tensor::of({1, 1, 3}, {0.0f, 0.0f, 1.5f}), five = numbers({1, 1, 1, 1, 2}, 1);
  static const Tensor whole = Tensor::of<std::int32_t>({1, 1, 2, 2}, {1, 2, 3, 4});
  std::string json =
      R"({"items":[{"axes":[{"name":"a","kind":"tokens","text":"é b","tokens":[["é",0,2,0],["b",3,4,1]]})";
  if (!axes.empty()) json += "," + axes;
  return plain(json + "],\"maps\":[" + maps + "]" + more + "}]}",
               {file_tensor("two", two), file_tensor("wrong", wrong), file_tensor("flat", flat),
                file_tensor("infinite", infinite), file_tensor("less", less), file_tensor("loud", loud),
                file_tensor("bright", bright), file_tensor("five", five), file_tensor("whole", whole)});
}

TEST(Trace, WrongAxesAreRefusedInOneLine) {
  const auto token = [](const std::string& it) {
    return R"({"name":"b","kind":"tokens","text":"é b","tokens":[)" + it + "]}";
  };
  const auto grid = [](const std::string& it) { return R"({"name":"b","kind":"grid",)" + it + "}"; };
  const auto boxes = [](const std::string& it) { return R"({"name":"b","kind":"boxes",)" + it + "}"; };
  const auto frames = [](const std::string& it) { return R"({"name":"b","kind":"frames",)" + it + "}"; };
  ASSERT_EQ(error_in(with(token(R"(["é",0,2,0])"))), "");
  const std::pair<std::string, const char*> bad[] = {
      {R"({"name":"a","kind":"tokens","tokens":[]})", "it: items[0].axes[1]: the name \"a\" stands twice"},
      {R"({"name":"","kind":"tokens","tokens":[]})",
       "it: items[0].axes[1]: a name \"\", expected 1 to 64 bytes without blanks and dots"},
      {R"({"name":"b.c","kind":"tokens","tokens":[]})",
       "it: items[0].axes[1]: a name \"b.c\", expected 1 to 64 bytes without blanks and dots"},
      {R"({"name":3,"kind":"tokens","tokens":[]})", "it: items[0].axes[1].name: 3, expected a text"},
      {R"({"kind":"tokens","tokens":[]})", "it: items[0].axes[1]: there is no \"name\""},
      {R"({"name":"b","kind":"words","tokens":[]})",
       "it: items[0].axes[1].kind: \"words\", expected tokens, grid, boxes or frames"},
      {R"({"name":"b","kind":"tokens","tokens":[],"more":1})", "it: items[0].axes[1]: unknown key \"more\""},
      {R"({"name":"b","kind":"tokens"})", "it: items[0].axes[1]: there is no \"tokens\""},
      {"7", "it: items[0].axes[1]: 7, expected an object"},
      {token("7"), "it: items[0].axes[1].tokens[0]: 7, expected an array"},
      {token(R"(["é",0])"), "it: items[0].axes[1].tokens[0]: an array, expected a text or [text, begin, end, word]"},
      {token(R"(["é",0,2,0,0])"),
       "it: items[0].axes[1].tokens[0]: an array, expected a text or [text, begin, end, word]"},
      {token(R"(["é",-1,2,0])"),
       "it: items[0].axes[1].tokens[0][1]: -1, expected a whole number from 0 to 9223372036854775807"},
      {token(R"(["é",0,1.5,0])"),
       "it: items[0].axes[1].tokens[0][2]: 1.5, expected a whole number from 0 to 9223372036854775807"},
      {token(R"(["é",0,5,0])"), "it: items[0].axes[1].tokens[0]: bytes 0 to 5 of a text of 4"},
      {token(R"(["é",3,2,0])"), "it: items[0].axes[1].tokens[0]: bytes 3 to 2 of a text of 4"},
      {token(R"(["é",0,1,0])"), "it: items[0].axes[1].tokens[0]: bytes 0 to 1 cut a letter in two"},
      {token(R"(["é",0,2,-2])"), "it: items[0].axes[1].tokens[0]: word -2, expected -1 to below 5"},
      {token(R"(["é",0,2,5])"), "it: items[0].axes[1].tokens[0]: word 5, expected -1 to below 5"},
      {token(R"([1,0,2,0])"), "it: items[0].axes[1].tokens[0][0]: 1, expected a text"},
      {grid(R"("rows":0,"columns":1)"),
       "it: items[0].axes[1]: a grid of 0 × 1, expected 1 to 65536 and at most 16777216 cells"},
      {grid(R"("rows":65536,"columns":65536)"),
       "it: items[0].axes[1]: a grid of 65536 × 65536, expected 1 to 65536 and at most 16777216 cells"},
      {grid(R"("rows":9223372036854775807,"columns":2)"),
       "it: items[0].axes[1]: a grid of 9223372036854775807 × 2, expected 1 to 65536 and at most 16777216 cells"},
      {grid(R"("rows":1,"columns":1,"height":3)"), "it: items[0].axes[1]: a picture of 0 × 3 pixels"},
      {grid(R"("rows":1,"columns":1,"height":3,"width":70000)"),
       "it: items[0].axes[1]: a picture of 70000 × 3 pixels, expected at most 65536"},
      {grid(R"("rows":1,"columns":1,"picture":"flat")"),
       "it: items[0].axes[1]: the picture: f32 [4], expected f32 [0, 0, 3]"},
      {grid(R"("rows":1,"columns":1,"height":2,"width":1,"picture":"bright")"),
       "it: items[0].axes[1]: the picture: f32 [1, 1, 3], expected f32 [2, 1, 3]"},
      {grid(R"("rows":1,"columns":1,"picture":"bright")"), "it: items[0].axes[1]: a pixel that is not from 0 to 1"},
      {grid(R"("rows":1,"columns":1,"picture":"gone")"), "it: there is no tensor \"gone\""},
      {grid(R"("rows":1,"columns":1,"picture":"five")"),
       "it: tensor \"five\" F32 [1, 1, 1, 1, 2]: expected rank 4 at most"},
      {boxes(R"("boxes":[])"),
       "it: items[0].axes[1]: a picture of 0 × 0 pixels, expected at most 65536 and at least 1"},
      {boxes(R"("height":3,"width":3,"boxes":[[0,0,1]])"),
       "it: items[0].axes[1].boxes[0]: an array, expected [left, top, right, bottom, text]"},
      {boxes(R"("height":3,"width":3,"boxes":[[0,0,1,4]])"),
       "it: items[0].axes[1].boxes[0]: from 0, 0 to 1, 4 in a picture of 3 × 3"},
      {boxes(R"("height":3,"width":3,"boxes":[[2,0,1,1]])"),
       "it: items[0].axes[1].boxes[0]: from 2, 0 to 1, 1 in a picture of 3 × 3"},
      {frames(R"("frames":-1,"step":1)"), "it: items[0].axes[1]: -1 frames, expected 0 to 16777216"},
      {frames(R"("frames":1)"), "it: items[0].axes[1]: there is no \"step\""},
      {frames(R"("frames":1,"step":0)"),
       "it: items[0].axes[1]: frames begin at 0 s and are 0 s apart, expected at most "
       "1000000000 and more than 0 between them"},
      {frames(R"("frames":1,"step":1,"rate":-1)"), "it: items[0].axes[1]: a rate of -1, expected 0 to 10000000"},
      {frames(R"("frames":1,"step":1,"sound":"loud")"), "it: items[0].axes[1]: a sound without a rate"},
      {frames(R"("frames":1,"step":1,"rate":8000,"sound":"loud")"),
       "it: items[0].axes[1]: a sample that is not from -1 to 1"},
      {frames(R"("frames":1,"step":1,"rate":8000,"sound":"two")"),
       "it: items[0].axes[1]: the sound is f32 [1, 1, 2, 2], expected f32 [samples]"},
      {frames(R"("frames":1,"step":1,"spectrum":"flat")"),
       "it: items[0].axes[1]: the spectrum is f32 [4], expected f32 [times, bands]"},
  };
  for (const auto& [axis, why] : bad) EXPECT_EQ(error_in(with(axis)), why) << axis;
}

TEST(Trace, WrongMapsAreRefusedInOneLine) {
  const auto map = [](const std::string& it) { return R"({"name":"m","rows":"a","columns":"a",)" + it + "}"; };
  const std::string good = map(R"("weights":"two")");
  ASSERT_EQ(error_in(with("", good)), "");
  const std::string other = R"({"name":"b","kind":"tokens","tokens":["x","y"]})";
  const std::pair<std::string, const char*> bad[] = {
      {map(R"("weights":"wrong")"), "it: items[0].maps[0]: weights: f32 [1, 1, 2, 3], expected f32 [1, 1, 2, 2]"},
      {map(R"("weights":"flat")"),
       "it: items[0].maps[0]: weights are f32 [4], expected f32 [layers, heads, rows, "
       "columns], 1 to 4096 layers and heads"},
      {map(R"("weights":"infinite")"), "it: items[0].maps[0]: an infinite weight"},
      {map(R"("weights":"whole")"), "it: tensor \"whole\" I32 [1, 1, 2, 2]: expected F32, F64, BF16 or U8"},
      {map(R"("weights":"gone")"), "it: there is no tensor \"gone\""},
      {map(R"("weights":7)"), "it: items[0].maps[0].weights: 7, expected a text"},
      {map(R"("norms":"two")"), "it: items[0].maps[0]: there is no \"weights\""},
      {map(R"("weights":"two","norms":"two")"), "it: the tensor \"two\" is named twice"},
      {map(R"("weights":"two","norms":"flat")"), "it: items[0].maps[0]: norms: f32 [4], expected f32 [1, 1, 2]"},
      {map(R"("weights":"two","norms":"less")"), "it: items[0].maps[0]: a norm that is not a finite number from 0"},
      {map(R"("weights":"two","causal":1)"), "it: items[0].maps[0].causal: 1, expected true or false"},
      {map(R"("weights":"two","head":1)"), "it: items[0].maps[0]: unknown key \"head\""},
      {R"({"name":"m","rows":"a","columns":"c","weights":"two"})", "it: items[0].maps[0]: there is no axis \"c\""},
      {R"({"name":"m","rows":"a","columns":"b","weights":"two","causal":true})",
       "it: items[0].maps[0]: a causal map of \"a\" over \"b\", expected one axis"},
      {R"({"name":"m","rows":"a","columns":"a","weights":"two"},{"name":"m","rows":"a","columns":"a","weights":"infinite"})",
       "it: items[0].maps[1]: the name \"m\" stands twice"},
  };
  for (const auto& [maps, why] : bad) EXPECT_EQ(error_in(with(other, maps)), why) << maps;
}

TEST(Trace, WrongChoicesNumbersAndBeamsAreRefusedInOneLine) {
  const std::string map = R"({"name":"m","rows":"a","columns":"a","weights":"two"})";
  ASSERT_EQ(error_in(with("", map, R"(,"choice":{"map":"m","layer":0,"head":0,"shift":1},"beam":[[["a",-1,0]]])")), "");
  const std::pair<const char*, const char*> bad[] = {
      {R"("choice":{"map":"n","layer":0})", "it: items[0].choice: there is no map \"n\""},
      {R"("choice":{"map":"m","layer":1})",
       "it: items[0].choice: layer 1, head -1, shift 0, expected a layer below 1, a "
       "head from -1 to below 1, shift 0 or 1"},
      {R"("choice":{"map":"m","layer":0,"head":1})",
       "it: items[0].choice: layer 0, head 1, shift 0, expected a layer "
       "below 1, a head from -1 to below 1, shift 0 or 1"},
      {R"("choice":{"map":"m","layer":0,"shift":2})",
       "it: items[0].choice: layer 0, head -1, shift 2, expected a layer "
       "below 1, a head from -1 to below 1, shift 0 or 1"},
      {R"("choice":7)", "it: items[0].choice: 7, expected an object"},
      {R"("log_probability":null)", "it: items[0].log_probability: null, expected a number"},
      {R"("erasure":{"most":1,"random":1})", "it: items[0].erasure: there is no \"words\""},
      {R"("erasure":{"most":1,"random":1,"words":-1})", "it: items[0].erasure: -1 words"},
      {R"("beam":7)", "it: items[0].beam: 7, expected an array"},
      {R"("beam":[7])", "it: items[0].beam[0]: 7, expected an array"},
      {R"("beam":[[["a",-1]]])", "it: items[0].beam[0][0]: an array, expected [text, parent, score]"},
      {R"("beam":[[["a",0,1]]])", "it: items[0].beam[0][0]: goes on from row 0, expected -1 to below 0"},
      {R"("beam":[[["a",-1,1]],[["b",1,1]]])", "it: items[0].beam[1][0]: goes on from row 1, expected -1 to below 1"},
      {R"("title":7)", "it: items[0].title: 7, expected a text"},
      {R"("more":7)", "it: items[0]: unknown key \"more\""},
  };
  for (const auto& [more, why] : bad) EXPECT_EQ(error_in(with("", map, std::string(",") + more)), why) << more;
  EXPECT_EQ(error_in(plain("[]", {})), "it: an array, expected an object");
  EXPECT_EQ(error_in(plain("{}", {})), "it: there is no \"items\"");
  EXPECT_EQ(error_in(plain(R"({"items":{}})", {})), "it: items: an object, expected an array");
  EXPECT_EQ(error_in(plain(R"({"items":[{"maps":[]}]})", {})), "it: items[0]: there is no \"axes\"");
  EXPECT_EQ(error_in(plain("{", {})).substr(0, 13), "it: not JSON:");
}

TEST(Trace, AnItemHasAThousandAxesAndNoMore) {
  const auto many = [](int count) {
    Trace trace{{{.axes = {}, .maps = {}}}};
    for (int i = 0; i < count; ++i) trace.items[0].axes.push_back(words("a" + std::to_string(i), "", {}));
    return trace.bytes();
  };
  EXPECT_EQ(Trace::parse(many(1000), "it").items[0].axes.size(), 1000u);
  EXPECT_EQ(error_of([&] { many(1001); }), "a trace: items[0]: 1001 axes, expected at most 1000");
}

TEST(Trace, WhatCouldNotBeReadIsNotWritten) {
  Trace wrong = translation();
  wrong.items[0].maps[0].columns = "nowhere";
  EXPECT_EQ(error_of([&] { wrong.bytes(); }), "a trace: items[0].maps[0]: there is no axis \"nowhere\"");
  wrong = translation();
  wrong.items[0].log_probability = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_of([&] { wrong.bytes(); }), "a trace: items[0]: the log-probability is not finite");
  wrong = translation();
  wrong.items[0].axes[0].text = "\xff";
  EXPECT_EQ(error_of([&] { wrong.bytes(); }), "a trace: items[0].axes[0]: the text is no UTF-8");
  wrong = translation();
  wrong.items[0].maps[0].weights = wrong.items[0].maps[0].weights.transpose(0, 1);
  EXPECT_NE(error_of([&] { wrong.bytes(); }), "");
}

TEST(Trace, DamageIsFound) {
  const std::string good = translation().bytes();
  expect_damage_is_refused(good, picture_and_sound().bytes(),
                           [](const std::string& bytes) { Trace::parse(bytes, "it"); });
  for (std::size_t length = 0; length < good.size(); ++length) {
    ASSERT_TRUE(refused(good.substr(0, length), [](const std::string& bytes) { Trace::parse(bytes, "it"); })) << length;
  }
}

TEST(Trace, ForgeriesDoNoHarm) {
  const auto load = [](const std::string& bytes) { EXPECT_NE(Trace::parse(bytes, "it").bytes(), ""); };
  expect_no_harm_from_forgeries(translation().bytes(), picture_and_sound().bytes(), load);
  expect_no_harm_from_forgeries(picture_and_sound().bytes(), translation().bytes(), load);
  // Files without a digest: what is damaged in their numbers cannot be seen, in their header it is read or refused.
  const std::string map = R"({"name":"m","rows":"a","columns":"a","weights":"two"})";
  const std::string good = with("", map, R"(,"choice":{"map":"m","layer":0,"head":0,"shift":1},"beam":[[["a",-1,0]]])");
  Chance chance(23);
  for (int i = 0; i < cases(10'000); ++i) {
    std::string bytes = good;
    for (std::size_t flips = 1 + chance.below(3); flips > 0; --flips) flip(bytes, chance.below(8 * good.size()));
    refused(bytes, load);
  }
}

}  // namespace
}  // namespace regard
