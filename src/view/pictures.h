// Pictures of attention: one map of a trace, or all of its layers and heads.
//
//     const Shown map = ...;                               // view/choose.h
//     matrix_picture(map).svg()                            // rows × columns, a cell is a weight
//
// However large a map is, a picture stays below about 1,100 points: cells that would be smaller than a few points
// become pixels of an image, and each pixel shows the heaviest of the cells that fall on it. Labels that would overlap
// are left out. A weight that is not a number has a colour of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "view/canvas.h"
#include "view/trace.h"

namespace regard {

struct Shown {
  std::string title = {}, note = {};  // "cross, layer 2, head 3"; what else is to be said
  TraceAxis rows = {}, columns = {};
  Tensor weights = {};      // f32 [rows, columns], dense
  bool difference = false;  // of two maps: around 0
  std::optional<TraceErasure> erasure = {};
  std::vector<std::pair<std::int64_t, std::int64_t>> links = {};  // row, column: cells to be marked
};

struct PictureSettings {
  Theme theme = Theme::kLight;
};

Canvas matrix_picture(const Shown& map, const PictureSettings& settings = {});
Canvas lines_picture(const Shown& map, const PictureSettings& settings = {});  // columns left, rows right

// weights [layers, heads, rows, columns]; `map` says what they are of, its own weights are not looked at.
Canvas heads_picture(const Shown& map, const Tensor& weights, const PictureSettings& settings = {});
// [layers, heads], in nats
Canvas entropy_picture(const Shown& map, const Tensor& entropy, const PictureSettings& settings = {});

Canvas row_picture(const Shown& map, std::int64_t row, const PictureSettings& settings = {});
// The text of the columns: by one row, or by the mean of all.
Canvas text_picture(const Shown& map, std::optional<std::int64_t> row, const PictureSettings& settings = {});

// Over the picture of the columns (a grid or boxes): of one row, or of the first 60 as a sheet.
Canvas image_picture(const Shown& map, std::optional<std::int64_t> row, const PictureSettings& settings = {});
Canvas sound_picture(const Shown& map, const PictureSettings& settings = {});  // columns are frames

// "erasure: without the 3 words looked at most −4.210, without others −1.302"
std::string erasure_text(const TraceErasure& erasure);
std::string weight_text(double value);  // three digits; "?" if it is not finite

// The same as what a terminal or an HTML page needs: the largest and the sum over rows.
std::vector<double> mean_row(const Tensor& weights);  // over rows [rows, columns]; what is not finite is left out
std::vector<double> row_of(const Tensor& weights, std::int64_t row);

// The text of an axis of tokens, cut at them; what stands between two is its own part without number.
struct TokenPart {
  std::string text;
  std::int64_t token = -1;
};
std::vector<TokenPart> text_parts(const TraceAxis& axis);

// The picture of an axis, its longer side `most` pixels.
Pixels photo(const TraceAxis& axis, std::size_t most);

// A grid or boxes, as weights of the pixels of a picture: [height, width] bilinearly between the middles of cells.
std::vector<double> over_picture(const TraceAxis& axis, const std::vector<double>& weights, std::size_t height,
                                 std::size_t width);

}  // namespace regard
