// Traces to be drawn: a sentence and its translation, a picture, a sound, words from the right to the left.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "view/trace.h"

namespace regard {

inline TraceAxis words_axis(const std::string& name, const std::vector<std::string>& words,
                            const std::string& between = " ") {
  TraceAxis axis{.name = name};
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) axis.text += between;
    const std::size_t begin = axis.text.size();
    axis.text += words[i];
    axis.tokens.push_back({words[i], begin, axis.text.size(), static_cast<std::int64_t>(i)});
  }
  return axis;
}

// Every head looks along the diagonal, each less sharply than the one before.
inline Tensor diagonal_weights(std::int64_t layers, std::int64_t heads, std::int64_t rows, std::int64_t columns) {
  Tensor weights = Tensor::empty({layers, heads, rows, columns});
  float* to = weights.data<float>();
  for (std::int64_t map = 0; map < layers * heads; ++map) {
    for (std::int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      const double middle = (static_cast<double>(row) + 0.5) * static_cast<double>(columns) / static_cast<double>(rows);
      const auto weight = [&](std::int64_t column) {
        const double gap = static_cast<double>(column) + 0.5 - middle;
        return std::exp(-gap * gap / (0.3 + 0.7 * static_cast<double>(map)));
      };
      for (std::int64_t column = 0; column < columns; ++column) sum += weight(column);
      for (std::int64_t column = 0; column < columns; ++column) *to++ = static_cast<float>(weight(column) / sum);
    }
  }
  return weights;
}

inline TraceItem sentence_item() {
  TraceItem item{.title = "他们在看书 。", .axes = {}, .maps = {}};
  item.axes = {words_axis("source", {"他们", "在", "看", "书", "。"}, ""),
               words_axis("target", {"They", "are", "reading", "a", "book", "."})};
  item.maps.push_back(
      {.name = "cross", .rows = "target", .columns = "source", .weights = diagonal_weights(2, 4, 6, 5)});
  item.maps.push_back({.name = "decoder",
                       .rows = "target",
                       .columns = "target",
                       .weights = diagonal_weights(2, 4, 6, 6),
                       .norms = Tensor::of<float>(
                           {2, 4, 6}, std::initializer_list<float>{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4,
                                                                   5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2,
                                                                   3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6})});
  item.erasure = TraceErasure{.most = 4.21, .random = 1.302, .words = 3};
  item.log_probability = -3.5;
  return item;
}

inline TraceItem hebrew_item() {
  TraceItem item{.title = "הם קוראים ספר", .axes = {}, .maps = {}};
  item.axes = {words_axis("source", {"הם", "קוראים", "ספר", "مرحبا"}),
               words_axis("target", {"they", "read", "books", "看"})};
  item.maps.push_back(
      {.name = "cross", .rows = "target", .columns = "source", .weights = diagonal_weights(1, 1, 4, 4)});
  return item;
}

// A red square on green; "square" looks at it, "grass" elsewhere.
inline TraceItem picture_item() {
  TraceItem item{.title = "a red square on grass", .axes = {}, .maps = {}};
  TraceAxis grid{.name = "picture", .kind = TraceAxis::Kind::kGrid, .rows = 4, .columns = 4, .height = 64, .width = 64};
  grid.picture = Tensor::empty({64, 64, 3});
  for (std::int64_t y = 0; y < 64; ++y) {
    for (std::int64_t x = 0; x < 64; ++x) {
      const bool square = y >= 16 && y < 32 && x >= 32 && x < 48;
      float* to = grid.picture.data<float>() + (y * 64 + x) * 3;
      to[0] = square ? 0.9F : 0.2F, to[1] = square ? 0.1F : 0.6F, to[2] = 0.1F;
    }
  }
  TraceAxis boxes = grid;
  boxes.name = "regions";
  boxes.kind = TraceAxis::Kind::kBoxes;
  boxes.rows = boxes.columns = 0;
  boxes.boxes = {{32, 16, 48, 32, "square"}, {0, 40, 64, 64, "grass"}};
  item.axes = {words_axis("caption", {"a", "square", "on", "grass"}), grid, boxes};
  Tensor weights = Tensor::zeros({1, 1, 4, 16});
  float* to = weights.data<float>();
  for (int column = 0; column < 16; ++column) {
    to[column] = to[2 * 16 + column] = 1.0F / 16;
    to[16 + column] = column == 6 ? 0.85F : 0.01F;
    to[3 * 16 + column] = column >= 8 ? 0.12F : 0.005F;
  }
  item.maps.push_back({.name = "looks", .rows = "caption", .columns = "picture", .weights = weights});
  item.maps.push_back({.name = "regions",
                       .rows = "caption",
                       .columns = "regions",
                       .weights = Tensor::of<float>({1, 1, 4, 2}, {0.5F, 0.5F, 0.9F, 0.1F, 0.5F, 0.5F, 0.1F, 0.9F})});
  return item;
}

// Three tones one after another; letters look at them in their order.
inline TraceItem sound_item() {
  TraceItem item{.title = "do re mi", .axes = {}, .maps = {}};
  TraceAxis frames{.name = "frames", .kind = TraceAxis::Kind::kFrames, .frames = 60, .first = 0, .step = 0.02};
  frames.rate = 8000;
  frames.sound = Tensor::empty({9600});
  for (std::int64_t i = 0; i < 9600; ++i) {
    const double time = static_cast<double>(i) / 8000, part = std::fmod(time, 0.4);
    const double tone = 220 * (1 + static_cast<double>(i / 3200) * 0.25);
    frames.sound.data<float>()[i] = static_cast<float>(0.8 * std::sin(6.2831853 * tone * time) * std::exp(-4 * part));
  }
  frames.spectrum = Tensor::zeros({60, 20});
  for (std::int64_t t = 0; t < 60; ++t) frames.spectrum.data<float>()[t * 20 + 4 + 5 * (t / 20)] = 1;
  item.axes = {words_axis("letters", {"d", "o", "r", "e", "m", "i"}), frames};
  item.maps.push_back(
      {.name = "hears", .rows = "letters", .columns = "frames", .weights = diagonal_weights(1, 1, 6, 60)});
  return item;
}

}  // namespace regard
