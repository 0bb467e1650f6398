// The file of a trace, docs/trace.md. What can be wrong with the numbers of a trace is looked for in one place,
// `Checker`, by whoever reads one and by whoever writes one: what was written can be read.
#include "view/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/pool.h"
#include "base/utf8.h"
#include "io/file.h"
#include "io/json.h"
#include "io/sealed.h"
#include "kernels/elementwise.h"

namespace regard {
namespace {

constexpr Format kFormat{.name = "regard-trace", .major = 1, .minor = 0};
constexpr const char* kKinds[] = {"tokens", "grid", "boxes", "frames"};

constexpr std::size_t kMostNameBytes = 64;
constexpr std::size_t kMostNames = 1000;       // axes of an item, and maps: each map looks for its axes
constexpr std::int64_t kMostSide = 65'536;     // pixels, cells of a grid
constexpr std::int64_t kMostPlaces = 1 << 24;  // rows or columns of a map
constexpr std::int64_t kMostHeads = 4096;      // and layers
constexpr double kMostSeconds = 1e9, kMostRate = 1e7;

using Kind = TraceAxis::Kind;

// Between two letters, or at an end.
bool is_border(std::string_view text, std::size_t at) {
  return at == text.size() || (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
}

constexpr float kMost = std::numeric_limits<float>::max();

// Looks at the values of a tensor. `known`: not-a-number is allowed as well.
bool all_within(const Tensor& tensor, float least, float most, bool known) {
  const float* const values = tensor.data<float>();
  if (least == -kMost && most == kMost && all_finite(values, static_cast<std::size_t>(tensor.size()))) return true;
  return std::all_of(values, values + tensor.size(),
                     [&](float value) { return (value >= least && value <= most) || (known && std::isnan(value)); });
}

// Spelt only where something is wrong: items[0].axes[1].tokens[3].
struct Place {
  const Place* within;
  const char* list;                        // empty: the number alone
  std::size_t number = std::string::npos;  // npos: none
};
std::string to_text(const Place& place) {
  std::string out = place.within == nullptr ? "" : to_text(*place.within);
  if (place.list[0] != '\0') (out += out.empty() ? "" : ".") += place.list;
  if (place.number != std::string::npos) out += fmt::format("[{}]", place.number);
  return out;
}
struct Quoted {
  explicit Quoted(std::string_view given) : text(given) {}
  std::string_view text;
};
std::string to_text(const Quoted& quoted) { return json_quote(quoted.text); }

class Checker {
 public:
  Checker(ErrorKind kind, std::string what) : kind_(kind), what_(std::move(what)) {}

  void operator()(const TraceItem& one, std::size_t number) const { item(one, Place{nullptr, "items", number}); }
  void operator()(const Trace& trace) const {
    for (std::size_t i = 0; i < trace.items.size(); ++i) (*this)(trace.items[i], i);
  }

 private:
  template <class... Why>
  void expect(bool condition, const Place& place, const Why&... why) const {
    if (!condition) fail(kind_, what_, ": ", place, ": ", why...);
  }

  template <class Named>
  void names(const std::vector<Named>& all, const Place& place, const char* list) const {
    expect(all.size() <= kMostNames, place, all.size(), " ", list, ", expected at most ", kMostNames);
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string& name = all[i].name;
      const Place at{&place, list, i};
      const bool good = std::all_of(name.begin(), name.end(), [](char c) {
        return static_cast<unsigned char>(c) > ' ' && c != '.' && c != 0x7f;
      });
      expect(!name.empty() && name.size() <= kMostNameBytes && good && utf8::valid(name), at, "a name ", Quoted(name),
             ", expected 1 to ", kMostNameBytes, " bytes without blanks and dots");
      expect(seen.insert(name).second, at, "the name ", Quoted(name), " stands twice");
    }
  }

  void f32(const Tensor& tensor, const Place& place, const char* field, const Shape& shape) const {
    expect(tensor.dtype() == DType::kF32 && tensor.is_dense() && tensor.shape() == shape, place, field, ": ", tensor,
           ", expected f32 ", shape);
  }

  void tokens(const TraceAxis& axis, const Place& place) const {
    expect(utf8::valid(axis.text), place, "the text is no UTF-8");
    const auto words = static_cast<std::int64_t>(axis.text.size() + axis.tokens.size());
    for (std::size_t i = 0; i < axis.tokens.size(); ++i) {
      const TraceToken& token = axis.tokens[i];
      const Place at{&place, "tokens", i};
      expect(utf8::valid(token.text), at, "the text is no UTF-8");
      expect(token.begin <= token.end && token.end <= axis.text.size(), at, "bytes ", token.begin, " to ", token.end,
             " of a text of ", axis.text.size());
      expect(is_border(axis.text, token.begin) && is_border(axis.text, token.end), at, "bytes ", token.begin, " to ",
             token.end, " cut a letter in two");
      expect(token.word >= -1 && token.word < words, at, "word ", token.word, ", expected -1 to below ", words);
    }
  }

  void picture(const TraceAxis& axis, const Place& place) const {
    const bool boxes = axis.kind == Kind::kBoxes;  // which mean nothing without a size
    expect(axis.height >= (boxes ? 1 : 0) && axis.height <= kMostSide && axis.width >= (boxes ? 1 : 0) &&
               axis.width <= kMostSide,
           place, "a picture of ", axis.width, " × ", axis.height, " pixels, expected at most ", kMostSide,
           boxes ? " and at least 1" : "");
    expect((axis.height == 0) == (axis.width == 0), place, "a picture of ", axis.width, " × ", axis.height, " pixels");
    if (!axis.picture.defined()) return;
    f32(axis.picture, place, "the picture", {axis.height, axis.width, 3});
    expect(all_within(axis.picture, 0, 1, false), place, "a pixel that is not from 0 to 1");
  }

  void grid(const TraceAxis& axis, const Place& place) const {
    expect(axis.rows >= 1 && axis.rows <= kMostSide && axis.columns >= 1 && axis.columns <= kMostSide &&
               axis.rows * axis.columns <= kMostPlaces,
           place, "a grid of ", axis.rows, " × ", axis.columns, ", expected 1 to ", kMostSide, " and at most ",
           kMostPlaces, " cells");
    picture(axis, place);
  }

  void boxes(const TraceAxis& axis, const Place& place) const {
    picture(axis, place);
    const auto width = static_cast<double>(axis.width), height = static_cast<double>(axis.height);
    for (std::size_t i = 0; i < axis.boxes.size(); ++i) {
      const TraceBox& box = axis.boxes[i];
      const Place at{&place, "boxes", i};
      expect(utf8::valid(box.text), at, "the text is no UTF-8");
      expect(0 <= box.left && box.left <= box.right && box.right <= width && 0 <= box.top && box.top <= box.bottom &&
                 box.bottom <= height,
             at, "from ", box.left, ", ", box.top, " to ", box.right, ", ", box.bottom, " in a picture of ", axis.width,
             " × ", axis.height);
    }
  }

  void frames(const TraceAxis& axis, const Place& place) const {
    expect(axis.frames >= 0 && axis.frames <= kMostPlaces, place, axis.frames, " frames, expected 0 to ", kMostPlaces);
    expect(std::abs(axis.first) <= kMostSeconds && axis.step > 0 && axis.step <= kMostSeconds, place,
           "frames begin at ", axis.first, " s and are ", axis.step, " s apart, expected at most ", kMostSeconds,
           " and more than 0 between them");
    expect(axis.rate >= 0 && axis.rate <= kMostRate, place, "a rate of ", axis.rate, ", expected 0 to ", kMostRate);
    if (axis.sound.defined()) {
      expect(axis.rate > 0, place, "a sound without a rate");
      expect(axis.sound.rank() == 1, place, "the sound is ", axis.sound, ", expected f32 [samples]");
      f32(axis.sound, place, "the sound", {axis.sound[0]});
      expect(all_within(axis.sound, -1, 1, false), place, "a sample that is not from -1 to 1");
    }
    if (axis.spectrum.defined()) {
      expect(axis.spectrum.rank() == 2, place, "the spectrum is ", axis.spectrum, ", expected f32 [times, bands]");
      f32(axis.spectrum, place, "the spectrum", {axis.spectrum[0], axis.spectrum[1]});
      expect(all_within(axis.spectrum, -kMost, kMost, false), place, "the spectrum has a value that is not finite");
    }
  }

  void map(const TraceItem& item, const TraceMap& map, const Place& place) const {
    std::int64_t sizes[2] = {};
    for (const auto& [which, name] : {std::pair(0, &map.rows), std::pair(1, &map.columns)}) {
      const auto found = std::find_if(item.axes.begin(), item.axes.end(),
                                      [&, wanted = name](const TraceAxis& axis) { return axis.name == *wanted; });
      expect(found != item.axes.end(), place, "there is no axis ", Quoted(*name));
      sizes[which] = found->size();
    }
    const Tensor& w = map.weights;
    expect(w.defined() && w.rank() == 4 && w[0] >= 1 && w[0] <= kMostHeads && w[1] >= 1 && w[1] <= kMostHeads, place,
           "weights are ", w, ", expected f32 [layers, heads, rows, columns], 1 to ", kMostHeads, " layers and heads");
    f32(w, place, "weights", {w[0], w[1], sizes[0], sizes[1]});
    expect(all_within(w, -kMost, kMost, true), place, "an infinite weight");
    expect(!map.causal || map.rows == map.columns, place, "a causal map of ", Quoted(map.rows), " over ",
           Quoted(map.columns), ", expected one axis");
    if (!map.norms.defined()) return;
    f32(map.norms, place, "norms", {w[0], w[1], sizes[1]});
    expect(all_within(map.norms, 0, kMost, true), place, "a norm that is not a finite number from 0");
  }

  void item(const TraceItem& item, const Place& place) const {
    expect(utf8::valid(item.title), place, "the title is no UTF-8");
    names(item.axes, place, "axes");
    names(item.maps, place, "maps");
    for (std::size_t i = 0; i < item.axes.size(); ++i) {
      const TraceAxis& axis = item.axes[i];
      const Place at{&place, "axes", i};
      switch (axis.kind) {
        case Kind::kTokens:
          tokens(axis, at);
          break;
        case Kind::kGrid:
          grid(axis, at);
          break;
        case Kind::kBoxes:
          boxes(axis, at);
          break;
        case Kind::kFrames:
          frames(axis, at);
          break;
      }
    }
    for (std::size_t i = 0; i < item.maps.size(); ++i) {
      map(item, item.maps[i], Place{&place, "maps", i});
    }
    if (item.choice) {
      const TraceChoice& choice = *item.choice;
      const auto found = std::find_if(item.maps.begin(), item.maps.end(),
                                      [&](const TraceMap& each) { return each.name == choice.map; });
      expect(found != item.maps.end(), Place{&place, "choice"}, "there is no map ", Quoted(choice.map));
      const std::int64_t layers = found->weights[0], heads = found->weights[1];
      expect(choice.layer >= 0 && choice.layer < layers && choice.head >= -1 && choice.head < heads &&
                 (choice.shift == 0 || choice.shift == 1),
             Place{&place, "choice"}, "layer ", choice.layer, ", head ", choice.head, ", shift ", choice.shift,
             ", expected a layer below ", layers, ", a head from -1 to below ", heads, ", shift 0 or 1");
    }
    if (item.log_probability) {
      expect(std::isfinite(*item.log_probability), place, "the log-probability is not finite");
    }
    if (item.erasure) {
      expect(std::isfinite(item.erasure->most) && std::isfinite(item.erasure->random), Place{&place, "erasure"},
             "a number that is not finite");
      expect(item.erasure->words >= 0, Place{&place, "erasure"}, item.erasure->words, " words");
    }
    if (item.beam) beam(*item.beam, Place{&place, "beam"});
  }

  void beam(const TraceBeam& beam, const Place& place) const {
    std::int64_t before = 0;
    for (std::size_t step = 0; step < beam.steps.size(); ++step) {
      const Place steps{&place, "", step};
      for (std::size_t i = 0; i < beam.steps[step].size(); ++i) {
        const TraceBeam::Row& row = beam.steps[step][i];
        const Place at{&steps, "", i};
        expect(utf8::valid(row.text), at, "the text is no UTF-8");
        expect(row.parent >= -1 && row.parent < before, at, "goes on from row ", row.parent, ", expected -1 to below ",
               before);
        expect(std::isfinite(row.score), at, "the score is not finite");
      }
      before = static_cast<std::int64_t>(beam.steps[step].size());
    }
  }

  ErrorKind kind_;
  std::string what_;
};

// Tensors of the file by name. Each may be named once: a small file cannot become a large trace.
class Tensors {
 public:
  explicit Tensors(const Safetensors& file) : file_(file) {}

  Tensor take(const Json& name) {
    const FileTensor& found = file_.at(name.text());
    if (!taken_.insert(found.name).second) {
      fail(ErrorKind::kFile, file_.what(), ": the tensor ", json_quote(found.name), " is named twice");
    }
    if (found.shape.size() > 4) fail(ErrorKind::kFile, file_.what(), ": tensor ", found, ": expected rank 4 at most");
    switch (found.type) {
      case FileType::kF32:
        return tensor_of(found);
      case FileType::kF64:
      case FileType::kBF16:
        return tensor_of(found).to(DType::kF32);
      case FileType::kU8:
        return from_bytes(found);
      case FileType::kI8:
      case FileType::kI32:
      case FileType::kI64:
        break;
    }
    fail(ErrorKind::kFile, file_.what(), ": tensor ", found, ": expected F32, F64, BF16 or U8");
  }

 private:
  static Tensor from_bytes(const FileTensor& found) {  // as pixels are kept: 255 is 1
    Shape shape;
    for (const std::int64_t size : found.shape) shape = shape.plus(size);
    Tensor out = Tensor::empty(shape);
    for (std::size_t i = 0; i < found.bytes.size(); ++i) {
      out.data<float>()[i] = static_cast<float>(std::to_integer<int>(found.bytes[i])) / 255;
    }
    return out;
  }

  const Safetensors& file_;
  std::set<std::string_view> taken_;
};

// Of files of this version, what is unknown is a mistake; of newer ones, it is new.
class Reader {
 public:
  Reader(const Safetensors& file, bool newer) : tensors_(file), newer_(newer) {}

  Trace trace(const Json& json) {
    known(json, {"items"});
    Trace made;
    for (const Json& each : json.at("items").array()) made.items.push_back(item(each));
    return made;
  }

 private:
  void known(const Json& json, std::initializer_list<std::string_view> keys) const {
    if (!newer_) json.allow_only(keys);
  }

  static std::size_t place(const Json& json) {
    return static_cast<std::size_t>(json.integer(0, std::numeric_limits<std::int64_t>::max()));
  }

  static std::vector<Json> list(const Json& json, std::size_t least, std::size_t most, const char* fields) {
    std::vector<Json> all = json.array();
    if (all.size() < least || all.size() > most) json.wrong(fields);
    return all;
  }

  static TraceToken token(const Json& json) {
    if (json.kind() == Json::Kind::kText) return {.text = std::string(json.text())};
    const std::vector<Json> all = list(json, 3, 4, "a text or [text, begin, end, word]");
    TraceToken made{.text = std::string(all[0].text()), .begin = place(all[1]), .end = place(all[2])};
    if (all.size() == 4) made.word = all[3].integer();
    return made;
  }

  static TraceBox box(const Json& json) {
    const std::vector<Json> all = list(json, 4, 5, "[left, top, right, bottom, text]");
    TraceBox made{.left = all[0].number(), .top = all[1].number(), .right = all[2].number(), .bottom = all[3].number()};
    if (all.size() == 5) made.text = all[4].text();
    return made;
  }

  void picture(const Json& json, TraceAxis& made) {
    if (const auto name = json.find("picture")) {
      made.picture = tensors_.take(*name);
      if (made.picture.rank() == 3) {
        made.height = made.picture[0];
        made.width = made.picture[1];
      }
    }
    if (const auto height = json.find("height")) made.height = height->integer();
    if (const auto width = json.find("width")) made.width = width->integer();
  }

  TraceAxis axis(const Json& json) {
    TraceAxis made{.name = std::string(json.at("name").text())};
    const Json kind = json.at("kind");
    const auto* const found = std::find(std::begin(kKinds), std::end(kKinds), kind.text());
    if (found == std::end(kKinds)) kind.wrong("tokens, grid, boxes or frames");
    made.kind = static_cast<Kind>(found - std::begin(kKinds));
    switch (made.kind) {
      case Kind::kTokens:
        known(json, {"name", "kind", "text", "tokens"});
        if (const auto text = json.find("text")) made.text = text->text();
        for (const Json& each : json.at("tokens").array()) made.tokens.push_back(token(each));
        break;
      case Kind::kGrid:
        known(json, {"name", "kind", "rows", "columns", "height", "width", "picture"});
        made.rows = json.at("rows").integer();
        made.columns = json.at("columns").integer();
        picture(json, made);
        break;
      case Kind::kBoxes:
        known(json, {"name", "kind", "boxes", "height", "width", "picture"});
        for (const Json& each : json.at("boxes").array()) made.boxes.push_back(box(each));
        picture(json, made);
        break;
      case Kind::kFrames:
        known(json, {"name", "kind", "frames", "first", "step", "sound", "rate", "spectrum"});
        made.frames = json.at("frames").integer();
        if (const auto first = json.find("first")) made.first = first->number();
        made.step = json.at("step").number();
        if (const auto name = json.find("sound")) made.sound = tensors_.take(*name);
        if (const auto rate = json.find("rate")) made.rate = rate->number();
        if (const auto name = json.find("spectrum")) made.spectrum = tensors_.take(*name);
        break;
    }
    return made;
  }

  TraceMap map(const Json& json) {
    known(json, {"name", "rows", "columns", "weights", "norms", "causal"});
    TraceMap made{.name = std::string(json.at("name").text()),
                  .rows = std::string(json.at("rows").text()),
                  .columns = std::string(json.at("columns").text()),
                  .weights = tensors_.take(json.at("weights"))};
    if (const auto norms = json.find("norms")) made.norms = tensors_.take(*norms);
    if (const auto causal = json.find("causal")) made.causal = causal->boolean();
    return made;
  }

  static TraceBeam beam(const Json& json) {
    TraceBeam made;
    for (const Json& step : json.array()) {
      made.steps.emplace_back();
      for (const Json& row : step.array()) {
        const std::vector<Json> all = list(row, 3, 3, "[text, parent, score]");
        made.steps.back().push_back({std::string(all[0].text()), all[1].integer(), all[2].number()});
      }
    }
    return made;
  }

  TraceItem item(const Json& json) {
    known(json, {"title", "axes", "maps", "choice", "log_probability", "erasure", "beam"});
    TraceItem made;
    if (const auto title = json.find("title")) made.title = title->text();
    for (const Json& each : json.at("axes").array()) made.axes.push_back(axis(each));
    for (const Json& each : json.at("maps").array()) made.maps.push_back(map(each));
    if (const auto choice = json.find("choice")) {
      known(*choice, {"map", "layer", "head", "shift"});
      made.choice = TraceChoice{.map = std::string(choice->at("map").text()), .layer = choice->at("layer").integer()};
      if (const auto head = choice->find("head")) made.choice->head = head->integer();
      if (const auto shift = choice->find("shift")) made.choice->shift = shift->integer();
    }
    if (const auto number = json.find("log_probability")) made.log_probability = number->number();
    if (const auto erasure = json.find("erasure")) {
      known(*erasure, {"most", "random", "words"});
      made.erasure = TraceErasure{.most = erasure->at("most").number(),
                                  .random = erasure->at("random").number(),
                                  .words = erasure->at("words").integer()};
    }
    if (const auto steps = json.find("beam")) made.beam = beam(*steps);
    return made;
  }

  Tensors tensors_;
  bool newer_;
};

std::string prefix_of(std::size_t number) { return fmt::format("{}.", number); }  // of the names of an item's tensors

// The JSON of an item, and the tensors it names.
class Writer {
 public:
  Writer(const TraceItem& one, std::size_t number) { item(one, prefix_of(number)); }

  std::vector<FileTensor> tensors;
  const std::string& json() const { return out_.text(); }

 private:
  void tensor(const char* key, const Tensor& value, std::string name) {
    if (!value.defined()) return;
    out_.key(key).value(name);
    tensors.push_back(file_tensor(std::move(name), value));
  }

  void axis(const TraceAxis& axis, const std::string& prefix) {
    out_.begin_object().key("name").value(axis.name);
    out_.key("kind").value(kKinds[static_cast<std::size_t>(axis.kind)]);
    const std::string own = prefix + axis.name;
    switch (axis.kind) {
      case Kind::kTokens:
        out_.key("text").value(axis.text).key("tokens").begin_array();
        for (const TraceToken& each : axis.tokens) {
          out_.begin_array().value(each.text).value(std::uint64_t{each.begin}).value(std::uint64_t{each.end});
          out_.value(each.word).end_array();
        }
        out_.end_array();
        break;
      case Kind::kGrid:
        out_.key("rows").value(axis.rows).key("columns").value(axis.columns);
        break;
      case Kind::kBoxes:
        out_.key("boxes").begin_array();
        for (const TraceBox& each : axis.boxes) {
          out_.begin_array().value(each.left).value(each.top).value(each.right).value(each.bottom);
          out_.value(each.text).end_array();
        }
        out_.end_array();
        break;
      case Kind::kFrames:
        out_.key("frames").value(axis.frames).key("first").value(axis.first).key("step").value(axis.step);
        if (axis.rate > 0) out_.key("rate").value(axis.rate);
        tensor("sound", axis.sound, own + ".sound");
        tensor("spectrum", axis.spectrum, own + ".spectrum");
        break;
    }
    if (axis.kind == Kind::kGrid || axis.kind == Kind::kBoxes) {
      out_.key("height").value(axis.height).key("width").value(axis.width);
      tensor("picture", axis.picture, own + ".picture");
    }
    out_.end_object();
  }

  void item(const TraceItem& item, const std::string& prefix) {
    out_.begin_object();
    if (!item.title.empty()) out_.key("title").value(item.title);
    out_.key("axes").begin_array();
    for (const TraceAxis& each : item.axes) axis(each, prefix);
    out_.end_array().key("maps").begin_array();
    for (const TraceMap& each : item.maps) {
      out_.begin_object().key("name").value(each.name).key("rows").value(each.rows);
      out_.key("columns").value(each.columns);
      tensor("weights", each.weights, prefix + each.name);
      tensor("norms", each.norms, prefix + each.name + ".norms");
      if (each.causal) out_.key("causal").value(true);
      out_.end_object();
    }
    out_.end_array();
    if (item.choice) {
      out_.key("choice").begin_object().key("map").value(item.choice->map).key("layer").value(item.choice->layer);
      out_.key("head").value(item.choice->head).key("shift").value(item.choice->shift).end_object();
    }
    if (item.log_probability) out_.key("log_probability").value(*item.log_probability);
    if (item.erasure) {
      out_.key("erasure").begin_object().key("most").value(item.erasure->most);
      out_.key("random").value(item.erasure->random).key("words").value(item.erasure->words).end_object();
    }
    if (item.beam) {
      out_.key("beam").begin_array();
      for (const auto& step : item.beam->steps) {
        out_.begin_array();
        for (const TraceBeam::Row& row : step) {
          out_.begin_array().value(row.text).value(row.parent).value(row.score).end_array();
        }
        out_.end_array();
      }
      out_.end_array();
    }
    out_.end_object();
  }

  JsonWriter out_{"", 2048};  // room for a sentence of 20 words and its translation
};

struct File {
  std::string header;
  std::vector<FileTensor> tensors;
};

File file_of(std::span<TraceRecord> records) {
  // By their numbers as texts: so tensors are in the order of a file when they are put behind each other.
  std::vector<std::pair<std::string, std::size_t>> order;
  for (std::size_t i = 0; i < records.size(); ++i) order.emplace_back(prefix_of(i), i);
  std::sort(order.begin(), order.end());
  File made;
  for (const auto& [prefix, i] : order) {
    std::move(records[i].tensors.begin(), records[i].tensors.end(), std::back_inserter(made.tensors));
  }
  std::string json = "\"trace\":\"{\\\"items\\\":[";
  std::size_t room = json.size() + 3;
  for (const TraceRecord& each : records) room += each.json.size() + 1;
  json.reserve(room);
  for (const TraceRecord& each : records) (json += each.json) += ',';
  if (!records.empty()) json.pop_back();
  json += "]}\"";
  made.header = sealed_header(kFormat, {}, made.tensors, json);
  return made;
}

std::vector<TraceRecord> records_of(const Trace& trace) {
  std::vector<TraceRecord> made(trace.items.size());
  parallel(made.size(), [&](std::size_t i) { made[i] = TraceRecord(trace.items[i], i); });
  return made;
}

}  // namespace

std::int64_t TraceAxis::size() const {
  switch (kind) {
    case Kind::kTokens:
      return static_cast<std::int64_t>(tokens.size());
    case Kind::kGrid:
      return rows * columns;
    case Kind::kBoxes:
      return static_cast<std::int64_t>(boxes.size());
    case Kind::kFrames:
      return frames;
  }
  return 0;
}

std::string TraceAxis::label(std::int64_t i) const {
  check(i >= 0 && i < size(), "trace: there is no place ", i, " on axis '", name, "' of ", size());
  const auto at = static_cast<std::size_t>(i);
  switch (kind) {
    case Kind::kTokens:
      return tokens[at].text;
    case Kind::kGrid:
      return fmt::format("{},{}", i / columns, i % columns);
    case Kind::kBoxes:
      return boxes[at].text.empty() ? fmt::format("{}", i) : boxes[at].text;
    case Kind::kFrames:
      // Rounded to what one reads, so that 0.1 · 3 is no 0.30000000000000004.
      return fmt::format("{:.6g} s", first + step * static_cast<double>(i));
  }
  return "";
}

const TraceAxis& TraceItem::axis(std::string_view name) const {
  for (const TraceAxis& each : axes) {
    if (each.name == name) return each;
  }
  fail(ErrorKind::kInput, "trace: there is no axis '", name, "'");
}

const TraceMap& TraceItem::map(std::string_view name) const {
  for (const TraceMap& each : maps) {
    if (each.name == name) return each;
  }
  std::string all;
  for (const TraceMap& each : maps) all += (all.empty() ? "" : ", ") + each.name;
  fail(ErrorKind::kInput, "trace: there is no map '", name, "', there is ", all.empty() ? "none" : all);
}

TraceRecord::TraceRecord(const TraceItem& item, std::size_t number) {
  Checker(ErrorKind::kInput, "a trace")(item, number);
  Writer writer(item, number);
  json = json_quote(writer.json());
  json.pop_back();
  json.erase(0, 1);
  tensors = std::move(writer.tensors);
  in_file_order(tensors);
  constexpr std::uint64_t kDescribed = 160;  // of a tensor, without its name
  header = json.size() + 1;
  for (const FileTensor& each : tensors) {
    header += kDescribed + each.name.size();
    data += each.bytes.size();
  }
}

Trace Trace::parse(std::string bytes, const std::string& what) {
  const auto refuse = [&](const auto&... why) { fail(ErrorKind::kFile, what, why...); };
  if (bytes.size() > kMostBytes) refuse(": ", bytes.size(), " bytes, at most ", kMostBytes, " are read");
  const bool sealed = !digest_of(bytes).empty();  // as Regard writes it; others need not
  const Safetensors file =
      sealed ? parse_sealed(std::move(bytes), what, kFormat).content : Safetensors::parse(std::move(bytes), what);
  const auto& metadata = file.metadata();
  const auto format = metadata.find("format"), json = metadata.find("trace");
  if (format == metadata.end()) refuse(" is not a trace: there is no \"format\" in its metadata");
  const FormatVersion version = version_of(format->second, what, kFormat);
  const bool newer = version.minor > kFormat.minor;
  for (const auto& [key, value] : metadata) {
    if (key == "digest" && !sealed) refuse(" is damaged: its digest is not where it should be");
    if (!newer && key != "digest" && key != "format" && key != "trace") {
      refuse(": unknown key ", json_quote(key), " in its metadata");
    }
  }
  if (json == metadata.end()) refuse(" is not a trace: there is no \"trace\" in its metadata");
  Trace made = Reader(file, newer).trace(Json::parse(json->second, what));
  Checker(ErrorKind::kFile, what)(made);
  return made;
}

Trace Trace::read(const std::string& path) {
  const Files::Result size = disk().size(path);
  if (size.error != 0) fail_file("read", path, size.error);
  if (static_cast<std::uint64_t>(size.value) > kMostBytes) {  // before there is memory for it
    fail(ErrorKind::kFile, "'", path, "': ", size.value, " bytes, at most ", kMostBytes, " are read");
  }
  return parse(read_file(disk(), path), "'" + path + "'");
}

std::string Trace::bytes() const {
  std::vector<TraceRecord> records = records_of(*this);
  const File file = file_of(records);
  std::string out = file.header;
  for (const FileTensor& each : file.tensors) {
    out.append(reinterpret_cast<const char*>(each.bytes.data()), each.bytes.size());
  }
  return out;
}

void Trace::write(const std::string& path) const {
  std::vector<TraceRecord> records = records_of(*this);
  write_trace(path, records);
}

void write_trace(const std::string& path, std::span<TraceRecord> records) {
  const File file = file_of(records);
  const auto write = [&](FileWriter& out) {
    BufferedWriter all(out);  // most tensors are small
    all.write(std::as_bytes(std::span(file.header)));
    for (const FileTensor& each : file.tensors) all.write(each.bytes);
    all.flush();
  };
  replace_file(disk(), path, write, Lasting::kSoon);
}

}  // namespace regard
