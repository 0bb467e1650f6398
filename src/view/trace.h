// A trace: weights, and what their rows and columns are. Everything that shows attention reads one; any program that
// can write safetensors can write one (docs/trace.md).
//
//     const Trace trace = Trace::parse(bytes, "'a.trace'");
//     const TraceMap& map = trace.items[0].maps[0];                // "cross": rows are target, columns source
//     map.weights                                                 // f32 [layers, heads, rows, columns]
//     trace.items[0].axis(map.columns).tokens[3].text             // "看"
//
// An item is one example: a sentence and its translation, a picture and its caption. Its axes are what one can look at,
// its maps who looked where. Read as if by a stranger's hand: every number has a range, every name a place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"
#include "regard/tensor/tensor.h"

namespace regard {

struct TraceToken {
  std::string text;                // what is shown
  std::size_t begin = 0, end = 0;  // bytes of the axis' text; equal: it stands for no text, as the end does
  std::int64_t word = -1;          // which word of the text it belongs to; −1: none
};

struct TraceBox {
  double left = 0, top = 0, right = 0, bottom = 0;  // pixels of the picture
  std::string text = {};
};

// What rows or columns are. Which of the fields count is said by the kind.
struct TraceAxis {
  enum class Kind : std::uint8_t { kTokens, kGrid, kBoxes, kFrames };
  std::string name;  // "source"
  Kind kind = Kind::kTokens;

  std::string text = {};                // of tokens
  std::vector<TraceToken> tokens = {};  //
  std::int64_t rows = 0, columns = 0;   // of a grid: row after row, each cell as large as the others
  std::vector<TraceBox> boxes = {};     //
  Tensor picture = {};                  // of a grid or boxes: f32 [height, width, 3], 0 … 1; may be empty, then
  std::int64_t height = 0, width = 0;   // the picture's size in pixels is all that is known
  std::int64_t frames = 0;              //
  double first = 0, step = 0;           // seconds: where the first frame begins, how far apart they are
  Tensor sound = {};                    // of frames: f32 [samples], −1 … 1; may be empty
  double rate = 0;                      // samples in a second
  Tensor spectrum = {};                 // of frames: f32 [times, bands], over the time of all frames; may be empty

  std::int64_t size() const;                // rows or columns of a map over it
  std::string label(std::int64_t i) const;  // "看", "2,3", "dog", "0.25 s"
};

struct TraceMap {
  std::string name;           // "cross", "encoder", "decoder"
  std::string rows, columns;  // names of axes: who looked, at what
  Tensor weights;             // f32 [layers, heads, rows, columns]; a NaN means that it is not known
  Tensor norms = {};          // f32 [layers, heads, columns]: lengths of the values that were read; may be empty
  bool causal = false;        // row i sees columns 0 … i alone
};

// Which of all layers and heads the writer thinks shows the alignment. head −1: the mean of the heads.
struct TraceChoice {
  std::string map;
  std::int64_t layer = 0, head = -1, shift = 0;
};

// Does the map matter? The source words that a target word looked at most are taken away, then as many others.
struct TraceErasure {
  double most = 0, random = 0;  // how far the log-probability of the translation falls
  std::int64_t words = 0;       // that were taken away
};

// A search with a beam, step after step: what each row wrote and from which row of the step before it went on.
struct TraceBeam {
  struct Row {
    std::string text;
    std::int64_t parent = -1;
    double score = 0;
  };
  std::vector<std::vector<Row>> steps;
};

struct TraceItem {
  std::string title = {};
  std::vector<TraceAxis> axes;
  std::vector<TraceMap> maps;
  std::optional<TraceChoice> choice = {};
  std::optional<double> log_probability = {};
  std::optional<TraceErasure> erasure = {};
  std::optional<TraceBeam> beam = {};

  const TraceAxis& axis(std::string_view name) const;  // throw if there is none
  const TraceMap& map(std::string_view name) const;
};

// An item as it stands in a file, checked and written once. Its numbers stay the item's, which has to live as long.
struct TraceRecord {
  TraceRecord() = default;
  TraceRecord(const TraceItem& item, std::size_t number);  // an Error if something does not fit together

  std::string json;                    // as a part of the text that the header quotes
  std::vector<FileTensor> tensors;     // by name
  std::uint64_t header = 0, data = 0;  // bytes that it adds to a file, at most
};
void write_trace(const std::string& path, std::span<TraceRecord> records);  // numbered from 0; as a whole or not at all

struct Trace {
  static constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;  // that are read

  std::vector<TraceItem> items;

  static Trace parse(std::string bytes, const std::string& what);  // `what` names the bytes in errors
  static Trace read(const std::string& path);
  std::string bytes() const;                  // of the file; the same trace gives the same bytes
  void write(const std::string& path) const;  // as a whole or not at all
};

}  // namespace regard
