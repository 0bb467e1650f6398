#include "view/show.h"

#include <gtest/gtest.h>

#include <cstring>

#include "io/json.h"
#include "support/error_of.h"
#include "support/traces.h"
#include "view/page.h"

namespace regard {
namespace {

Trace sentence() {
  Trace trace;
  trace.items = {sentence_item()};
  return trace;
}

TEST(Choose, NamesWhatIsNotThere) {
  const Trace trace = sentence();
  const auto error = [&](const MapChoice& choice) { return error_of([&] { choose(trace, choice); }); };
  EXPECT_EQ(error({.layer = 2}), "no layer 2 in map 'cross': it has 2 layers, 0 to 1");
  EXPECT_EQ(error({.head = 4}), "no head 4 in map 'cross': it has 4 heads, 0 to 3");
  EXPECT_EQ(error({.item = 1}), "no item 1: the trace has 1 item");
  EXPECT_EQ(error({.map = "self"}), "no map 'self' in the trace: it has 'cross', 'decoder'");
  EXPECT_EQ(error({.map = "encoder"}),
            "no map 'encoder' in the trace: it has 'cross', 'decoder' (--trace-maps all writes more)");
  EXPECT_EQ(error({.norms = true}),
            "map 'cross' has no norms of values: --norms needs a trace that holds them (--trace-maps norms)");
  EXPECT_EQ(
      error({.rollout = true}),
      "map 'cross' cannot be rolled out: no map of the trace is over 'source' alone (--trace-maps all writes that "
      "of an encoder)");
  EXPECT_EQ(error_of([] { choose({}, {}); }), "the trace has no items");
}

TEST(Choose, TakesTheHeadThatWasAskedForAndSaysSo) {
  const Trace trace = sentence();
  const Shown one = choose(trace, {.layer = 0, .head = 1});
  EXPECT_EQ(one.note, "cross, layer 0, head 1 · rows: target, columns: source");
  const float* all = trace.items[0].maps[0].weights.data<float>();
  EXPECT_EQ(std::memcmp(one.weights.data<float>(), all + 30, 30 * sizeof(float)), 0);
  EXPECT_EQ(choose(trace, {}).note, "cross, layer 1, mean of heads · rows: target, columns: source");
  EXPECT_EQ(choose(trace, {.map = "decoder", .rollout = true}).note,
            "decoder, rollout of 2 layers · rows: target, columns: target");
  EXPECT_EQ(choose(trace, {.map = "decoder", .norms = true}).note,
            "decoder, layer 1, mean of heads, by norms of values · rows: target, columns: target");
}

TEST(Choose, WordsStandForTheirPieces) {
  Trace trace = sentence();
  trace.items[0].axes[1].tokens[2].word = 1;  // "are" and "reading"
  const Shown map = choose(trace, {.words = true});
  EXPECT_EQ(map.rows.size(), 5);
  EXPECT_EQ(map.weights[0], 5);
  EXPECT_EQ(choose_all(trace, {.words = true}).shape(), (Shape{2, 4, 5, 5}));
}

TEST(Choose, ADifferenceWithItselfIsZero) {
  const Trace trace = sentence();
  const Shown map = choose_difference(trace, trace, {});
  EXPECT_TRUE(map.difference);
  for (std::int64_t i = 0; i < map.weights.size(); ++i) EXPECT_EQ(map.weights.data<float>()[i], 0);
  Trace other;
  other.items = {hebrew_item()};
  EXPECT_EQ(error_of([&] { choose_difference(trace, other, {}); }),
            "the difference of maps of [6, 5] and [4, 4]: expected as many rows and columns");
}

TEST(Choose, ARowIsFoundByItsWordOrNumber) {
  Trace trace = sentence();
  trace.items[0].axes[1].tokens[3].text = "▁a";
  const Shown map = choose(trace, {});
  EXPECT_EQ(row_number(map, "reading"), 2);
  EXPECT_EQ(row_number(map, "a"), 3);
  EXPECT_EQ(row_number(map, "5"), 5);
  EXPECT_EQ(error_of([&] { row_number(map, "6"); }), "no row 6: 'target' has 6, 0 to 5");
  EXPECT_EQ(error_of([&] { row_number(map, "see"); }), "no row 'see': the rows are 'target', and none is called so");
}

TEST(Show, EndingsAndViewsAreNamedInErrors) {
  EXPECT_EQ(format_of_ending("a/b.svg"), ShowFormat::kSvg);
  EXPECT_EQ(error_of([] { format_of_ending("b.gif"); }),
            "'b.gif': the format is told by the ending: .svg, .png, .pdf, .html, .txt, .json, .npy");
  EXPECT_NE(error_of([] { format_of_ending(".svg"); }), "");
  EXPECT_EQ(error_of([] { view_of("map"); }),
            "unknown view 'map': known are matrix, lines, heads, row, image, sound, text, entropy, difference");
  EXPECT_EQ(error_of([] { show(sentence(), {.view = View::kHeads}, ShowFormat::kTxt); }),
            "the view 'heads' is a picture: name a file of it, as in -o map.svg");
}

TEST(Show, JsonHoldsTheSameNumbers) {
  const Trace trace = sentence();
  const Json json = Json::parse(show(trace, {.choice = {.layer = 0, .head = 0}}, ShowFormat::kJson), "the view");
  EXPECT_EQ(json.at("rows").array()[2].text(), "reading");
  EXPECT_EQ(json.at("columns").array()[2].text(), "看");
  const auto weights = json.at("weights").array();
  ASSERT_EQ(weights.size(), 6u);
  const float* all = trace.items[0].maps[0].weights.data<float>();
  for (std::size_t row = 0; row < 6; ++row) {
    const auto line = weights[row].array();
    for (std::size_t column = 0; column < 5; ++column) {
      EXPECT_EQ(static_cast<float>(line[column].number()), all[row * 5 + column]);
    }
  }
  EXPECT_EQ(json.at("erasure").at("words").integer(), 3);
}

TEST(Show, NpyIsNumPysFormat) {
  const std::string bytes = npy(Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(bytes.starts_with(std::string("\x93NUMPY\1\0", 8)));
  EXPECT_EQ(bytes.size() % 64, 24u);
  EXPECT_NE(bytes.find("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"), std::string::npos);
  float last = 0;
  std::memcpy(&last, bytes.data() + bytes.size() - 4, 4);
  EXPECT_EQ(last, 6);
  EXPECT_NE(npy(Tensor::zeros({4})).find("'shape': (4, )"), std::string::npos);
  EXPECT_NE(show(sentence(), {.view = View::kHeads}, ShowFormat::kNpy).find("(2, 4, 6, 5)"), std::string::npos);
}

TEST(Show, ALongMapAsTextTellsTheHeaviestOfEveryRow) {
  TraceItem item;
  std::vector<std::string> words;
  for (int i = 0; i < 300; ++i) words.push_back("w" + std::to_string(i));
  item.axes = {words_axis("text", words)};
  item.maps.push_back({.name = "self", .rows = "text", .columns = "text", .weights = diagonal_weights(1, 1, 300, 300)});
  Trace trace;
  trace.items = {item};
  const std::string out = show(trace, {}, ShowFormat::kTxt);
  EXPECT_NE(out.find("\n17 w17 →  17 w17 0.933  16 w16 0.033  18 w18 0.033\n"), std::string::npos)
      << out.substr(0, 500);
}

TEST(Page, TextCannotLeaveItsPlace) {
  Trace trace = sentence();
  const std::string bad = "</script><script>alert(1)</script><!--";
  trace.items[0].title = bad;
  trace.items[0].axes[0].tokens[1].text = bad;
  trace.items[0].axes[0].name = bad;
  trace.items[0].maps[0].columns = bad;
  trace.items[0].maps[0].name = bad;
  const std::string html = page(trace, {});
  EXPECT_EQ(html.find("alert(1)</script>"), std::string::npos);
  EXPECT_EQ(html.find("<!--"), std::string::npos);
  std::size_t scripts = 0;
  for (std::size_t at = html.find("<script"); at != std::string::npos; at = html.find("<script", at + 1)) ++scripts;
  EXPECT_EQ(scripts, 2u);
  EXPECT_EQ(html.find("http:"), std::string::npos);
  EXPECT_EQ(html.find("https:"), std::string::npos);
}

Json data_of(const std::string& html) {
  const std::string open = "id=\"data\">";
  const std::size_t begin = html.find(open) + open.size();
  return Json::parse(html.substr(begin, html.find("</script>", begin) - begin), "the data of the page");
}

TEST(Page, WeightsAreThereToAHundredThousandth) {
  const Trace trace = sentence();
  const Json data = data_of(page(trace, {.layer = 0, .head = 2}));
  const Json plane = data.at("maps").array()[0].at("planes").array()[0];  // the one that was asked for comes first
  EXPECT_EQ(plane.at("layer").integer(), 0);
  EXPECT_EQ(plane.at("head").integer(), 2);
  const double low = plane.at("low").number(), high = plane.at("high").number();
  const std::string_view text = plane.at("data").text();
  ASSERT_EQ(text.size(), 80u);  // 60 bytes
  const auto value = [](char letter) {
    return static_cast<std::uint32_t>(
        std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/").find(letter));
  };
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const std::uint32_t group =
        value(text[i]) << 18 | value(text[i + 1]) << 12 | value(text[i + 2]) << 6 | value(text[i + 3]);
    for (int shift = 16; shift >= 0; shift -= 8) bytes += static_cast<char>(group >> shift & 0xFF);
  }
  const float* all = trace.items[0].maps[0].weights.data<float>() + 2 * 30;
  for (std::size_t i = 0; i < 30; ++i) {
    const auto cell = static_cast<unsigned char>(bytes[2 * i]) | static_cast<unsigned char>(bytes[2 * i + 1]) << 8;
    EXPECT_NEAR(low + cell / 65534.0 * (high - low), static_cast<double>(all[i]), 1e-5);
  }
  EXPECT_EQ(data.at("first").at("layer").integer(), 0);
  EXPECT_EQ(data.at("maps").array()[1].at("planes").array().size(),
            2u + 8 + 1 + 2 + 8);  // means, heads, rollout, norms
}

TEST(Page, ALargeTraceStaysAPageOfAFewMegabytes) {
  TraceItem item;
  std::vector<std::string> words(1500, "w");
  item.axes = {words_axis("text", words)};
  item.maps.push_back(
      {.name = "self", .rows = "text", .columns = "text", .weights = Tensor::zeros({2, 8, 1500, 1500})});
  Trace trace;
  trace.items = {item};
  const std::string html = page(trace, {});
  EXPECT_LT(html.size(), 12'000'000u);
  const Json data = data_of(html);
  EXPECT_NE(data.at("note").text(), "");
  const Json plane = data.at("maps").array()[0].at("planes").array()[0];
  EXPECT_EQ(plane.at("rows").integer(), 512);
  EXPECT_EQ(plane.at("tiles").array().size(), 36u);
  EXPECT_EQ(plane.at("top").at("columns").text().size(), 1500u * 8 * 4 * 4 / 3);
}

}  // namespace
}  // namespace regard
