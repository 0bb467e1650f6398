// Text from files, line by line, within a few hundred kilobytes of memory whatever their size.
//
//     PairReader reader({.source = "train.zh.gz", .target = "train.en.gz"});      // line-aligned
//     PairReader reader({.source = "pairs.tsv", .source_column = 2});             // two columns of one file
//     for (LinePair pair; reader.next(pair);) { … pair.line, pair.source, pair.target … }
//     fmt::print("{}", reader.report().text());                                   // what was left out, and where
//
// A file is plain or gzip (known by its first bytes, not by its name); "-" is the standard input. A byte order mark at
// the start and a carriage return before a newline are taken away; the last line needs no newline. A line that is no
// UTF-8, has a NUL, is longer than `longest`, or is empty is left out and counted, together with its partner. Where
// going on would be wrong there is an Error: files of unlike length, gzip that ends early or is damaged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace regard {

inline constexpr std::size_t kLongestLine = std::size_t{1} << 20;  // bytes; more is left out and never held

enum class LineFault { kEmpty, kNotUtf8, kNul, kTooLong, kColumns, kJson };
inline constexpr std::size_t kLineFaults = 6;
std::string_view to_text(LineFault fault);  // "empty", "not UTF-8", …

// What was read and what was left out. The first places of each fault are kept, the rest is only counted.
class LineReport {
 public:
  static constexpr std::size_t kPlaces = 10;
  struct Place {
    std::string file;
    std::uint64_t line = 0;  // the first is 1
    std::string what;        // "byte 17 is no UTF-8"
  };

  void add(LineFault fault, const std::string& file, std::uint64_t line, std::string what);
  std::uint64_t count(LineFault fault) const { return counts_[static_cast<std::size_t>(fault)]; }
  std::uint64_t dropped() const;
  const std::vector<Place>& places(LineFault fault) const { return places_[static_cast<std::size_t>(fault)]; }
  std::string text() const;  // a line a fault: "2 lines left out: not UTF-8: a.zh:17 (byte 4), a.zh:90 (byte 1)\n"

  std::uint64_t read = 0;  // lines, or pairs of them, with those left out

 private:
  std::array<std::uint64_t, kLineFaults> counts_ = {};
  std::array<std::vector<Place>, kLineFaults> places_;
};

struct LinePosition {
  std::uint64_t line = 0;  // how many were read
  std::uint64_t byte = 0;  // of the text, unpacked
  friend bool operator==(const LinePosition&, const LinePosition&) = default;
};

// The lines of one file.
class LineReader {
 public:
  explicit LineReader(const std::string& path, std::size_t longest = kLongestLine);
  ~LineReader();
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;

  struct Line {
    std::uint64_t number = 0;  // the first is 1
    std::string text;          // empty if it was too long
    std::uint64_t bytes = 0;   // how long it was, without its end
    bool too_long = false;
  };
  bool next(Line& line);  // false: the end
  // False: nothing has come within so many milliseconds, so that next would wait. Somebody may be typing.
  bool is_ready(int milliseconds = 0);

  LinePosition position() const;
  // Goes on behind that line. Plain files are sought, gzip is read again from its start, the standard input can only be
  // read forward.
  void seek(const LinePosition& position);
  bool can_seek() const;     // back, too
  std::size_t held() const;  // bytes of memory
  const std::string& name() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

enum class PairFormat {
  kByName,  // two files: lines; one file: JSON if its name ends in .jsonl or .json (then perhaps .gz), else a table
  kLines,   // two files, line i of one belongs to line i of the other
  kTable,   // columns separated by tabs
  kJson,    // an object a line
};

struct PairFiles {
  std::string source;       // the only one for kTable and kJson
  std::string target = {};  // for kLines
  PairFormat format = PairFormat::kByName;
  std::int64_t source_column = 1;  // the first is 1
  std::int64_t target_column = 2;
  std::string source_field = "source";
  std::string target_field = "target";
  std::size_t longest = kLongestLine;
};

struct LinePair {
  std::uint64_t line = 0;  // the first is 1
  std::string source;
  std::string target;
};

struct PairPosition {
  std::uint64_t line = 0;
  std::uint64_t source_byte = 0;
  std::uint64_t target_byte = 0;
  friend bool operator==(const PairPosition&, const PairPosition&) = default;
};

// Pairs in order, wherever they come from.
class PairStream {
 public:
  virtual ~PairStream() = default;
  virtual bool next(LinePair& pair) = 0;  // the next one that is whole; false: the end
  virtual PairPosition position() const = 0;
  virtual void seek(const PairPosition& position) = 0;
  virtual bool can_seek() const = 0;         // back, too
  virtual std::size_t held() const = 0;      // bytes of memory
  virtual std::string name() const = 0;      // "a.zh and a.en"
  virtual const LineReport& report() const;  // nothing was left out, if it does not say otherwise
};

class PairReader final : public PairStream {
 public:
  explicit PairReader(PairFiles files);
  ~PairReader() override;
  PairReader(PairReader&&) noexcept;
  PairReader& operator=(PairReader&&) noexcept;

  bool next(LinePair& pair) override;
  PairPosition position() const override;
  void seek(const PairPosition& position) override;
  bool can_seek() const override;
  std::size_t held() const override;
  std::string name() const override;
  const LineReport& report() const override;
  bool is_ready(int milliseconds = 0);  // as that of LineReader

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// "a.zh has no pair: 300 lines left out; a.zh:1: too few columns (1, expected 2)": for an error.
std::string no_pair_text(const PairStream& stream);

// Pairs that are in memory already; several lists may have the same ones.
class PairList final : public PairStream {
 public:
  using Pairs = std::shared_ptr<const std::vector<LinePair>>;
  explicit PairList(Pairs pairs, std::string name = "the list of pairs", LineReport report = {})
      : pairs_(std::move(pairs)), name_(std::move(name)), report_(std::move(report)) {}
  explicit PairList(std::vector<LinePair> pairs, std::string name = "the list of pairs")
      : PairList(std::make_shared<const std::vector<LinePair>>(std::move(pairs)), std::move(name)) {}
  bool next(LinePair& pair) override {
    if (at_ == pairs_->size()) return false;
    pair = (*pairs_)[at_++];
    return true;
  }
  PairPosition position() const override { return {.line = at_}; }
  void seek(const PairPosition& position) override;
  bool can_seek() const override { return true; }
  std::size_t held() const override { return 0; }  // not by the stream
  std::string name() const override { return name_; }
  const LineReport& report() const override { return report_; }

 private:
  Pairs pairs_;
  std::string name_;
  LineReport report_;  // of where they come from
  std::size_t at_ = 0;
};

// A line of text that is whole: no fault that `report` would have to hear of.
bool is_whole(std::string_view text, const std::string& file, std::uint64_t line, LineReport& report);

}  // namespace regard
