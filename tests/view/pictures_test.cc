#include "view/pictures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "support/error_of.h"
#include "support/pixels.h"
#include "support/traces.h"
#include "support/xml.h"
#include "view/choose.h"
#include "view/show.h"

namespace regard {
namespace {

Trace trace_of(TraceItem item) {
  Trace trace;
  trace.items.push_back(std::move(item));
  return trace;
}

// A map with these weights between numbered words.
Shown numbered(std::int64_t rows, std::int64_t columns,
               const std::function<float(std::int64_t, std::int64_t)>& weight) {
  Shown map{.title = "numbers"};
  std::vector<std::string> left, above;
  for (std::int64_t i = 0; i < rows; ++i) left.push_back("row" + std::to_string(i));
  for (std::int64_t i = 0; i < columns; ++i) above.push_back("c" + std::to_string(i));
  map.rows = words_axis("rows", left);
  map.columns = words_axis("columns", above);
  map.weights = Tensor::empty({rows, columns});
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    map.weights.data<float>()[i] = weight(i / columns, i % columns);
  }
  return map;
}

// Nothing is cut off at the edges.
std::string beyond_the_edge(const Canvas& picture) {
  const auto outside = [&](double x, double y) {
    return x < -0.5 || y < -0.5 || x > picture.width() + 0.5 || y > picture.height() + 0.5;
  };
  for (const Figure& shape : picture.shapes()) {
    bool bad = false;
    for (std::size_t i = 0; i < shape.points.size(); i += 2) bad = bad || outside(shape.points[i], shape.points[i + 1]);
    if (shape.kind == Figure::Kind::kText) {
      const double turn = shape.angle * 3.14159265 / 180, part = static_cast<int>(shape.anchor) / 2.0;
      const auto end = [&](double along) {
        bad = bad || outside(shape.x + along * std::cos(turn), shape.y + along * std::sin(turn));
      };
      end(-part * shape.width);
      end((1 - part) * shape.width);
    } else if (shape.points.empty()) {
      bad = outside(shape.x, shape.y) || outside(shape.x + shape.width, shape.y + shape.height);
    }
    if (bad) return std::string(shape.role) + " '" + shape.text + "'";
  }
  return "";
}

const std::vector<View> kAll = {View::kMatrix, View::kLines, View::kHeads, View::kRow, View::kText, View::kEntropy};

std::vector<std::pair<TraceItem, std::vector<View>>> samples() {
  std::vector<View> image = kAll, sound = kAll;
  image.push_back(View::kImage);
  sound.push_back(View::kSound);
  TraceItem boxes = picture_item();
  std::swap(boxes.maps[0], boxes.maps[1]);
  TraceItem bare = picture_item();  // only the size of the picture is known
  for (TraceAxis& axis : bare.axes) axis.picture = Tensor();
  TraceItem silent = sound_item();
  silent.axes[1].sound = silent.axes[1].spectrum = Tensor();
  TraceItem wordy = sentence_item();
  wordy.title = std::string(3000, 'x');
  for (TraceToken& token : wordy.axes[1].tokens) token.text = std::string(500, 'w');
  return {{sentence_item(), kAll}, {hebrew_item(), kAll}, {picture_item(), image}, {boxes, image},
          {bare, image},           {sound_item(), sound}, {silent, sound},         {wordy, kAll}};
}

TEST(Pictures, EveryViewOfEverySampleFitsItsFrame) {
  for (const auto& [item, views] : samples()) {
    const Trace trace = trace_of(item);
    for (const View view : views) {
      for (const Theme theme : {Theme::kLight, Theme::kDark}) {
        const Canvas picture = picture_of(trace, {.view = view, .theme = theme});
        EXPECT_EQ(beyond_the_edge(picture), "") << item.title.substr(0, 20) << " view " << static_cast<int>(view);
        EXPECT_EQ(wrong_in_xml(picture.svg()), "");
        EXPECT_LE(picture.width(), 1300);
      }
    }
  }
}

TEST(MatrixPicture, HasACellAWeightAndALabelARowAndColumn) {
  Shown map = numbered(3, 4, [](auto row, auto column) { return row == column ? 0.5F : 0.125F; });
  map.links = {{0, 0}, {2, 3}, {7, 7}};  // the last is not there
  const Canvas picture = matrix_picture(map);
  EXPECT_EQ(picture.count("cell"), 12u);
  EXPECT_EQ(picture.count("label"), 7u);
  EXPECT_EQ(picture.count("link"), 2u);
  EXPECT_EQ(picture.count("erasure"), 0u);
  map.erasure = TraceErasure{.most = 4.21, .random = 1.302, .words = 3};
  const std::string svg = matrix_picture(map).svg();
  EXPECT_NE(svg.find("4.210 without the 3 words looked at most, by 1.302 without others"), std::string::npos) << svg;
}

TEST(MatrixPicture, PixelsHaveTheColoursOfTheWeights) {
  for (const Theme theme : {Theme::kLight, Theme::kDark}) {
    const Shown map = numbered(2, 3, [](auto row, auto column) {
      return row == 1 && column == 2 ? std::nanf("") : static_cast<float>(row * 3 + column) / 4;
    });
    const Canvas picture = matrix_picture(map, {.theme = theme});
    const ReadPixels pixels = read_png(picture.png(2));
    std::size_t cell = 0;
    for (const Figure& shape : picture.shapes()) {
      if (shape.role != "cell") continue;
      const auto at = [](double from, double size) { return static_cast<std::size_t>((from + size / 2) * 2); };
      const auto pixel = pixels.at(at(shape.x, shape.width), at(shape.y, shape.height));
      const Color wanted = cell == 5 ? inks(theme).missing : weight_color(theme, static_cast<double>(cell) / 4);
      EXPECT_EQ(pixel, (ReadPixels::Pixel{wanted.red, wanted.green, wanted.blue})) << cell;
      ++cell;
    }
    EXPECT_EQ(cell, 6u);
    EXPECT_NE(picture.svg().find(">not known</text>"), std::string::npos);
  }
}

TEST(MatrixPicture, LightnessRisesOrFallsWithTheWeight) {
  for (const Theme theme : {Theme::kLight, Theme::kDark}) {
    double before = theme == Theme::kLight ? 1000 : -1;
    for (int i = 0; i <= 20; ++i) {
      const Color color = weight_color(theme, i / 20.0);
      const double light = 0.299 * color.red + 0.587 * color.green + 0.114 * color.blue;
      if (theme == Theme::kLight) {
        EXPECT_LT(light, before);
      } else {
        EXPECT_GT(light, before);
      }
      before = light;
    }
  }
  EXPECT_GT(difference_color(Theme::kLight, -1).blue, difference_color(Theme::kLight, -1).red + 80);
  EXPECT_GT(difference_color(Theme::kLight, 1).red, difference_color(Theme::kLight, 1).blue + 80);
}

TEST(MatrixPicture, ALargeMapIsAnImageThatLosesNoPeak) {
  const Shown map =
      numbered(3000, 2500, [](auto row, auto column) { return row == 1777 && column == 2222 ? 1.0F : 0.0F; });
  const Canvas picture = matrix_picture(map);
  EXPECT_EQ(picture.count("cell"), 0u);
  ASSERT_EQ(picture.count("map"), 1u);
  EXPECT_LT(picture.count("label"), 260u);
  const Color peak = weight_color(Theme::kLight, 1);
  std::size_t found = 0;
  for (const Figure& shape : picture.shapes()) {
    for (std::size_t i = 0; shape.role == "map" && i < shape.pixels.bytes.size(); i += 4) {
      if (shape.pixels.bytes[i] != peak.red || shape.pixels.bytes[i + 2] != peak.blue) continue;
      ++found;
      EXPECT_EQ(i / 4 / shape.pixels.columns, 1777 * shape.pixels.rows / 3000);
      EXPECT_EQ(i / 4 % shape.pixels.columns, 2222 * shape.pixels.columns / 2500);
    }
  }
  EXPECT_EQ(found, 1u);
  EXPECT_LT(picture.svg().size(), 300'000u);
}

TEST(LinesPicture, DrawsWhatIsHeavyThick) {
  const Shown map = numbered(2, 2, [](auto row, auto column) { return row == column ? 1.0F : row == 0 ? 0.3F : 0.0F; });
  const Canvas picture = lines_picture(map);
  std::vector<double> strokes;
  for (const Figure& shape : picture.shapes()) {
    if (shape.role == "link") strokes.push_back(shape.stroke);
  }
  ASSERT_EQ(strokes.size(), 3u);  // nothing of no weight; the heaviest last, on top
  EXPECT_LT(strokes[0], strokes[1] / 2);
  EXPECT_EQ(strokes[1], strokes[2]);
}

TEST(HeadsPicture, HasAMapAHead) {
  const Trace trace = trace_of(sentence_item());
  EXPECT_EQ(picture_of(trace, {.view = View::kHeads}).count("map"), 8u);
  EXPECT_EQ(picture_of(trace, {.view = View::kEntropy}).count("cell"), 8u);
}

TEST(RowPicture, SaysWhoLooksWhere) {
  const Trace trace = trace_of(sentence_item());
  const Canvas picture = picture_of(trace, {.choice = {.layer = 0, .head = 0}, .view = View::kRow, .token = "reading"});
  EXPECT_NE(picture.svg().find(">reading → 看 (0.634)</text>"), std::string::npos) << picture.svg();
  EXPECT_EQ(picture.count("bar"), 5u);
  EXPECT_EQ(picture.count("word"), 5u);
}

TEST(TextPicture, TextKeepsItsBlanksAndTokensTheirPlaces) {
  TraceAxis axis{.name = "a", .text = "He looks."};
  axis.tokens = {{"▁He", 0, 2, 0}, {"▁look", 2, 7, 1}, {"s", 7, 8, 1}, {".", 8, 9, 2}, {"<end>", 9, 9, -1}};
  std::string joined;
  std::int64_t next = 0;
  for (const TokenPart& part : text_parts(axis)) {
    joined += part.text + "|";
    if (part.token >= 0) {
      EXPECT_EQ(part.token, next++);
    }
  }
  EXPECT_EQ(joined, "He| |look|s|.| |<end>|");
  EXPECT_EQ(next, 5);
}

TEST(ImagePicture, WeightsLieOverTheirPlaces) {
  TraceAxis grid{.name = "g", .kind = TraceAxis::Kind::kGrid, .rows = 2, .columns = 2, .height = 8, .width = 8};
  const std::vector<double> over = over_picture(grid, {1, 0, 0, 0}, 8, 8);
  EXPECT_EQ(over[0], 1);        // the corner
  EXPECT_EQ(over[7], 0);        // the other
  EXPECT_EQ(over[9 * 7], 0);    // the last
  EXPECT_GT(over[3], over[4]);  // falls bilinearly in between
  EXPECT_GT(over[4], 0);
  const TraceItem item = picture_item();
  const std::vector<double> boxes = over_picture(item.axis("regions"), {0.9, 0.1}, 64, 64);
  EXPECT_EQ(boxes[20 * 64 + 40], 0.9);
  EXPECT_EQ(boxes[50 * 64 + 3], 0.1);
  EXPECT_EQ(boxes[10 * 64 + 3], 0);
}

TEST(ImagePicture, TheWordThatLooksAtTheSquareKeepsItsColour) {
  const Canvas picture = picture_of(trace_of(picture_item()), {.view = View::kImage});
  ASSERT_EQ(picture.count("map"), 5u);  // the picture, and one a word
  std::vector<const Figure*> maps;
  for (const Figure& shape : picture.shapes()) {
    if (shape.role == "map") maps.push_back(&shape);
  }
  const auto colour = [&](std::size_t which, double x, double y) {  // how far it is from grey
    Pixels pixels = maps[which]->pixels;
    const std::uint8_t* at = pixels.at(static_cast<std::size_t>(y * static_cast<double>(pixels.rows)),
                                       static_cast<std::size_t>(x * static_cast<double>(pixels.columns)));
    return std::abs(at[0] - at[2]);
  };
  EXPECT_GT(colour(2, 0.625, 0.375), 150);  // "square" at the square
  EXPECT_LT(colour(2, 0.1, 0.9), 30);       // and not at the grass
  EXPECT_LT(colour(4, 0.625, 0.3), 60);     // "grass" the other way round
  EXPECT_GT(colour(4, 0.1, 0.9), 60);
}

TEST(SoundPicture, HasAWaveASpectrumAndTimes) {
  const Canvas picture = picture_of(trace_of(sound_item()), {.view = View::kSound});
  EXPECT_EQ(picture.count("wave"), 1u);
  EXPECT_EQ(picture.count("spectrum"), 1u);
  EXPECT_EQ(picture.count("time"), 7u);
  EXPECT_NE(picture.svg().find(">1.20 s</text>"), std::string::npos);
}

TEST(Pictures, ViewsThatDoNotFitSaySo) {
  const Trace trace = trace_of(sentence_item());
  EXPECT_EQ(error_of([&] { picture_of(trace, {.view = View::kImage}); }),
            "the columns, 'source', are not a grid or boxes over a picture: no view of an image");
  EXPECT_EQ(error_of([&] { picture_of(trace, {.view = View::kSound}); }),
            "the columns, 'source', are not frames of a sound: no view of a sound");
  EXPECT_EQ(error_of([&] { picture_of(trace, {.view = View::kDifference}); }),
            "a difference needs a second trace (--with)");
}

// Whatever a stranger's trace holds, every view is drawn or refused with a text.
TEST(Pictures, HostileTracesEndInAPictureOrAnError) {
  constexpr float kBad[] = {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            3e38F,
                            -3e38F,
                            1e-45F};
  std::vector<TraceItem> items;
  for (const auto& [item, views] : samples()) {
    for (const float bad : kBad) {
      TraceItem all = item, some = item;
      for (TraceItem* each : {&all, &some}) {
        for (TraceMap& map : each->maps) {
          map.weights = map.weights.clone();
          for (std::int64_t i = 0; i < map.weights.size(); i += each == &all ? 1 : 3)
            map.weights.data<float>()[i] = bad;
        }
      }
      items.push_back(all);
      items.push_back(some);
    }
  }
  for (const auto& [rows, columns] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 0}, {0, 3}, {3, 0}, {1, 1}, {1, 500}, {500, 1}}) {
    for (const auto& [layers, heads] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {0, 1}, {1, 0}}) {
      const Shown map = numbered(rows, columns, [](auto, auto) { return 0.5F; });
      TraceItem item{.axes = {map.rows, map.columns}, .maps = {}};
      item.maps.push_back({.name = "m",
                           .rows = "rows",
                           .columns = "columns",
                           .weights = Tensor::zeros({layers, heads, rows, columns})});
      items.push_back(item);
      TraceAxis grid{
          .name = "columns", .kind = TraceAxis::Kind::kGrid, .rows = columns == 0 ? 0 : 1, .columns = columns};
      item.axes[1] = grid;
      items.push_back(item);
      item.axes[1] = {.name = "columns", .kind = TraceAxis::Kind::kFrames, .frames = columns, .first = NAN, .step = -1};
      items.push_back(item);
    }
  }
  std::size_t drawn = 0, refused = 0;
  for (const TraceItem& item : items) {
    const Trace trace = trace_of(item);
    for (const View view : {View::kMatrix, View::kLines, View::kHeads, View::kRow, View::kImage, View::kSound,
                            View::kText, View::kEntropy, View::kDifference}) {
      for (const ShowFormat format : {ShowFormat::kSvg, ShowFormat::kTxt, ShowFormat::kHtml, ShowFormat::kJson}) {
        if (format == ShowFormat::kHtml && view != View::kMatrix) continue;  // it has no views
        try {
          const std::string bytes = show(trace, {.view = view, .other = &trace}, format);
          if (format == ShowFormat::kSvg) {
            EXPECT_EQ(wrong_in_xml(bytes), "");
          }
          ++drawn;
        } catch (const Error& error) {
          EXPECT_NE(error.kind(), ErrorKind::kInternal) << error.what();
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(drawn, 1000u);
  EXPECT_GT(refused, 100u);
}

}  // namespace
}  // namespace regard
