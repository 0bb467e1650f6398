#include "view/canvas.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/error_of.h"
#include "support/folder.h"
#include "support/pixels.h"
#include "support/xml.h"

namespace regard {
namespace {

constexpr Color kWhite = {255, 255, 255}, kBlack = {0, 0, 0};

// How dark the pixels of a picture of one text are, in all and on the average from the left.
struct Ink {
  std::vector<std::uint8_t> rgb;
  double sum = 0;
  std::vector<std::size_t> widths;  // of what stands apart, from the left
};
Ink ink_of(const std::string& text) {
  Canvas picture(80, 40, kWhite);
  picture.text(40, 20, text, {.anchor = Anchor::kMiddle, .size = 24, .color = kBlack});
  const ReadPixels pixels = read_png(picture.png());
  Ink ink{.rgb = pixels.rgb, .widths = {}};
  bool apart = true;
  for (std::size_t x = 0; x < pixels.width; ++x) {
    double column = 0;
    for (std::size_t y = 0; y < pixels.height; ++y) column += 255 - pixels.at(x, y).red;
    ink.sum += column;
    if (column > 0 && apart) ink.widths.push_back(0);
    if (column > 0) ++ink.widths.back();
    apart = column == 0;
  }
  return ink;
}

Canvas some_of_all() {
  Canvas picture(100, 60, kWhite);
  picture.rectangle(10, 10, 20, 20, {200, 0, 0}, "cell");
  picture.rectangle(40, 10, 20, 20, Color{0, 0, 200}.with(0.5));
  picture.frame(70, 10, 20, 20, {0, 150, 0}, 4);
  picture.line(0, 50, 100, 50, kBlack, 4);
  picture.curve({{0, 40}, {30, 40}, {60, 55}, {100, 55}}, {120, 120, 0}, 1);
  picture.area({2, 2, 8, 2, 8, 8, 2, 8}, {0, 200, 200});
  Pixels pixels(1, 2);
  for (int i = 0; i < 2; ++i) {
    pixels.at(0, static_cast<std::size_t>(i))[i] = 255;
    pixels.at(0, static_cast<std::size_t>(i))[3] = 255;
  }
  picture.image(10, 34, 20, 10, pixels, true);
  picture.text(50, 38, "<a & \"b\">看", {.anchor = Anchor::kMiddle, .size = 10, .color = kBlack, .angle = -20});
  return picture;
}

void expect_all(const ReadPixels& pixels, double scale) {
  const auto at = [&](double x, double y) {
    return pixels.at(static_cast<std::size_t>(x * scale), static_cast<std::size_t>(y * scale));
  };
  using Pixel = ReadPixels::Pixel;
  EXPECT_EQ(at(20, 20), (Pixel{200, 0, 0}));
  EXPECT_EQ(at(5, 20), (Pixel{255, 255, 255}));
  EXPECT_NEAR(at(50, 20).red, 127, 2);  // half of it shines through
  EXPECT_NEAR(at(50, 20).blue, 227, 2);
  EXPECT_EQ(at(80, 20), (Pixel{255, 255, 255}));  // inside the frame
  EXPECT_EQ(at(70, 20), (Pixel{0, 150, 0}));
  EXPECT_EQ(at(3, 50), (Pixel{0, 0, 0}));
  EXPECT_EQ(at(5, 5), (Pixel{0, 200, 200}));
  EXPECT_EQ(at(12, 36), (Pixel{255, 0, 0}));  // the left pixel of the image, sharp up to the middle
  EXPECT_EQ(at(19, 36), (Pixel{255, 0, 0}));
  EXPECT_EQ(at(21, 36), (Pixel{0, 255, 0}));
}

TEST(Canvas, TheSameShapesGiveTheSameBytes) {
  ASSERT_TRUE(can_draw());
  EXPECT_EQ(some_of_all().svg(), some_of_all().svg());
  EXPECT_EQ(some_of_all().png(), some_of_all().png());
  EXPECT_EQ(some_of_all().pdf(), some_of_all().pdf());
}

TEST(Canvas, PngShowsEveryShapeWhereItIs) {
  const ReadPixels pixels = read_png(some_of_all().png(4));
  ASSERT_EQ(pixels.width, 400u);
  ASSERT_EQ(pixels.height, 240u);
  expect_all(pixels, 4);
}

TEST(Canvas, PdfOpensElsewhereAndShowsTheSame) {
  const Folder folder;
  const std::string path = folder.write("a.pdf", some_of_all().pdf());
  ASSERT_EQ(std::system(("pdftoppm -r 288 -singlefile " + path + " " + folder / "a").c_str()), 0);
  const ReadPixels pixels = read_ppm(folder.read("a.ppm"));
  ASSERT_EQ(pixels.width, 400u);
  expect_all(pixels, 4);
}

TEST(Canvas, PdfHasNoDateOfToday) {
  const std::string pdf = some_of_all().pdf();
  EXPECT_NE(pdf.find("/CreationDate (20000101"), std::string::npos);
}

TEST(Canvas, SvgIsWellFormedAndTextStaysText) {
  const std::string svg = some_of_all().svg();
  EXPECT_EQ(wrong_in_xml(svg), "");
  EXPECT_NE(svg.find(">&lt;a &amp; &quot;b&quot;&gt;看</text>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("class=\"cell\""), std::string::npos);
  EXPECT_NE(svg.find("data:image/png;base64,"), std::string::npos);
}

TEST(Canvas, ChineseIsDrawnWithItsOwnGlyphs) {
  const Ink look = ink_of("看"), book = ink_of("书"), unknown = ink_of("\uE123"), other = ink_of("\uE124");
  EXPECT_GT(look.sum, 20000);
  EXPECT_NE(look.rgb, book.rgb);
  EXPECT_NE(look.rgb, unknown.rgb);
  // What no font has is drawn as a box with its number: of all that are drawn so, most pixels are alike.
  const auto unlike = [](const Ink& a, const Ink& b) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.rgb.size(); i += 3) count += a.rgb[i] != b.rgb[i] ? 1u : 0u;
    return count;
  };
  EXPECT_LT(unlike(unknown, other) * 3, unlike(look, unknown));
}

TEST(Canvas, HebrewAndArabicRunFromTheRight) {
  // Alef is wide and vav narrow: alef comes first in the text and stands on the right.
  const Ink alef_first = ink_of("או"), vav_first = ink_of("וא");
  ASSERT_EQ(alef_first.widths.size(), 2u);
  ASSERT_EQ(vav_first.widths.size(), 2u);
  EXPECT_LT(alef_first.widths[0] * 2, alef_first.widths[1]);
  EXPECT_GT(vav_first.widths[0], vav_first.widths[1] * 2);
  // Arabic letters join: the word is not the sum of its letters.
  EXPECT_LT(text_width("سلام", 20),
            text_width("س", 20) + text_width("ل", 20) + text_width("ا", 20) + text_width("م", 20) - 2);
}

TEST(Canvas, TurnedTextRunsUpwards) {
  Canvas picture(40, 100, kWhite);
  picture.text(20, 90, "HHHH", {.size = 16, .color = kBlack, .angle = -90});
  const ReadPixels pixels = read_png(picture.png(1));
  bool left = false, inside = false;
  for (std::size_t y = 0; y < 100; ++y) {
    for (std::size_t x = 0; x < 40; ++x) {
      if (pixels.at(x, y).red > 128) continue;
      if (x < 8 || x > 32 || y > 92) left = true;
      if (y < 60) inside = true;
    }
  }
  EXPECT_TRUE(inside);
  EXPECT_FALSE(left);
}

TEST(Canvas, LongTextIsCutToItsWidth) {
  Canvas picture(100, 20, kWhite);
  picture.text(0, 10, "看看看看看看看看看看看看看看看看", {.size = 10, .color = kBlack, .width = 60});
  ASSERT_EQ(picture.shapes().size(), 1u);
  const Figure& text = picture.shapes()[0];
  EXPECT_TRUE(text.text.ends_with("看…")) << text.text;
  EXPECT_LE(text.width, 60);
  EXPECT_GT(text.width, 40);
  EXPECT_EQ(fitted("abc", 10, 0), "…");
}

TEST(Canvas, TextThatIsNoTextHarmsNothing) {
  EXPECT_EQ(shown("a\nb\tc"), "a b c");
  EXPECT_EQ(shown("\xFF\x01\u202E|"), "\uFFFD\uFFFD\uFFFD|");
  Canvas picture(100, 20, kWhite);
  picture.text(0, 10, std::string("\0\xC3(\x1B[31m", 8), {.color = kBlack});
  EXPECT_EQ(wrong_in_xml(picture.svg()), "");
  EXPECT_FALSE(picture.png().empty());
  EXPECT_FALSE(picture.pdf().empty());
}

TEST(Canvas, HugeAndEmptyPicturesAreDrawn) {
  Canvas huge(1, 1, kWhite);
  huge.resize(100000, 10);
  EXPECT_LE(read_png(huge.png()).width, 16385u);
  const Canvas none(0, 0, kWhite);
  EXPECT_EQ(read_png(none.png()).width, 1u);
}

TEST(Png, PixelsComeBack) {
  Pixels pixels(3, 5);
  for (std::size_t i = 0; i < pixels.bytes.size(); ++i) {
    pixels.bytes[i] = i % 4 == 3 ? 255 : static_cast<std::uint8_t>(i * 37);
  }
  const ReadPixels read = read_png(png(pixels));
  ASSERT_EQ(read.width, 5u);
  ASSERT_EQ(read.height, 3u);
  for (std::size_t y = 0; y < 3; ++y) {
    for (std::size_t x = 0; x < 5; ++x) EXPECT_EQ(read.at(x, y).green, pixels.at(y, x)[1]);
  }
  EXPECT_NE(error_of([] { png(Pixels()); }), "");
}

TEST(Base64, IsThatOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("\xFF\xFE\xFD\xFC"), "//79/A==");
}

}  // namespace
}  // namespace regard
