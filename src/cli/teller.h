// What commands that train tell while they do.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "cli/note.h"
#include "train/loop.h"
#include "view/terminal.h"

namespace regard::cli {

inline std::string time_text(double seconds) {
  const auto all = static_cast<std::int64_t>(std::llround(seconds));
  if (all < 60) return fmt::format("{} s", all);
  if (all < 3600) return fmt::format("{}:{:02} min", all / 60, all % 60);
  return fmt::format("{}:{:02} h", all / 3600, all / 60 % 60);
}

// What a run tells: on a terminal a line that is written over again, else a line a report.
class Teller {
 public:
  explicit Teller(std::string title = "") : title_(std::move(title)) {}
  ~Teller() { clear(); }
  Teller(const Teller&) = delete;
  Teller& operator=(const Teller&) = delete;
  void say(std::string_view line) {
    clear();
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
  void update(const UpdateReport& report) {
    if (!terminal_ || report.reached.seconds - shown_ < 0.2) return;
    shown_ = report.reached.seconds;
    std::string line = text_of(report);
    std::string begin = title_.empty() ? "" : title_ + "  ";
    if (report.seconds_left) {
      const double all = report.reached.seconds + *report.seconds_left;
      begin += progress_bar(all > 0 ? report.reached.seconds / all : 1, kBar) + "  ";
    }
    const auto width = static_cast<std::size_t>(std::max(width_of(STDERR_FILENO) - 1 - display_width(begin), 0));
    if (line.size() > width) line.resize(width);
    note("\r{}{}\033[K", begin, line);
    std::fflush(stderr);
    open_ = true;
  }
  void report(const UpdateReport& report) {
    std::string line = text_of(report);
    for (const auto& [name, value] : report.health) line += fmt::format("  {} {:.3g}", name, value);
    if (!terminal_) say(line);
  }
  void validation(const ValidationReport& report) {
    std::string line = fmt::format("{} at update {}: loss {:.4f}", report.averaged ? "mean of weights" : "validation",
                                   report.reached.updates, report.result.loss);
    if (report.result.score) line += fmt::format("  BLEU {:.2f}", *report.result.score);
    if (report.best) line += "  (best)";
    say(line);
    if (!report.result.sample.empty()) say("  " + printable_line(report.result.sample));
  }

 private:
  static std::string text_of(const UpdateReport& report) {
    std::string line =
        fmt::format("epoch {:.2f}  update {}  loss {:.4f}", report.reached.epochs, report.reached.updates, report.loss);
    if (report.seconds_left) line += "  left " + time_text(*report.seconds_left);
    // The end of a line that is too long for the terminal is cut off.
    return line + fmt::format("  {:.0f} tokens/s  rate {:.2e}  norm {:.2f}", report.tokens_per_second, report.rate,
                              report.norm);
  }
  static std::string printable_line(std::string_view text) {  // blanks stay blanks
    std::string made;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(' ', begin), text.size());
      made += printable(text.substr(begin, end - begin));
      if (end < text.size()) made += ' ';
      begin = end + 1;
    }
    return made;
  }
  void clear() {
    if (std::exchange(open_, false)) note("\r\033[K");
  }

  static constexpr int kBar = 16;  // columns
  std::string title_;
  bool terminal_ = isatty(STDERR_FILENO) == 1, open_ = false;
  double shown_ = -1;
};

}  // namespace regard::cli
