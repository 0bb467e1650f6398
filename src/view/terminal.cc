#include "view/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "base/check.h"

namespace regard {
namespace {

constexpr int kCell = 2;  // a character is about twice as high as wide: two make a square

struct Color {
  int red, green, blue;
};

// From night over violet and orange to pale yellow: lightness rises evenly, so that twice the weight looks twice as
// bright, also to those who do not see all colours.
constexpr Color kRamp[] = {{12, 10, 24}, {72, 24, 106}, {160, 46, 110}, {228, 92, 74}, {252, 168, 72}, {252, 246, 180}};

// From blue over night to orange.
constexpr Color kDifference[] = {{140, 200, 255}, {45, 105, 175}, {12, 10, 24}, {176, 92, 24}, {255, 184, 92}};
constexpr Color kUnknown = {110, 60, 100};

Color along(std::span<const Color> ramp, double share) {
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(ramp.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(place), ramp.size() - 2);
  const double part = place - static_cast<double>(below);
  const Color &a = ramp[below], &b = ramp[below + 1];
  const auto mix = [part](int from, int to) { return static_cast<int>(std::lround(from + part * (to - from))); };
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

Color ramp(double weight, bool difference) {
  if (std::isnan(weight)) return kUnknown;
  return difference ? along(kDifference, (weight + 1) / 2) : along(kRamp, weight);
}

int distance(Color a, Color b) {
  const int red = a.red - b.red, green = a.green - b.green, blue = a.blue - b.blue;
  return red * red + green * green + blue * blue;
}

// The nearest of the 240 colours that every 256-colour terminal has: a cube of 6 × 6 × 6 and a row of greys.
int nearest_of_256(Color color) {
  constexpr int kLevels[] = {0, 95, 135, 175, 215, 255};
  int best = 16, gap = INT32_MAX;
  for (int number = 16; number < 256; ++number) {
    const int cube = number - 16, grey = 8 + 10 * (number - 232);
    const Color candidate =
        number < 232 ? Color{kLevels[cube / 36], kLevels[cube / 6 % 6], kLevels[cube % 6]} : Color{grey, grey, grey};
    if (distance(color, candidate) < gap) {
      gap = distance(color, candidate);
      best = number;
    }
  }
  return best;
}

const char* shade(double weight) {
  constexpr const char* kShades[] = {" ", "░", "▒", "▓", "█"};
  return kShades[std::clamp(static_cast<int>(std::lround(weight * 4)), 0, 4)];
}

constexpr std::string_view kPlain = "\033[0m";

// The escape that colours what follows; `layer` 38: the letters, 48: the ground.
std::string escape(Color color, Colors colors, int layer) {
  if (colors == Colors::k256) return fmt::format("\033[{};5;{}m", layer, nearest_of_256(color));
  return fmt::format("\033[{};2;{};{};{}m", layer, color.red, color.green, color.blue);
}

std::string cell(double weight, Colors colors, bool difference) {
  if (std::isnan(weight)) return "??";
  if (colors != Colors::kNone) return escape(ramp(weight, difference), colors, 48) + "  ";
  if (!difference) return std::string(shade(weight)) + shade(weight);
  const char* const how = shade(std::abs(weight));
  return std::string(*how == ' ' ? " " : weight < 0 ? "-" : "+") + how;
}

// Two cells, one above the other; nothing below the last row if they are odd.
std::string two_cells(double upper, const double* lower, Colors colors, bool difference) {
  std::string out = escape(ramp(upper, difference), colors, 38);
  out += lower == nullptr ? "\033[49m" : escape(ramp(*lower, difference), colors, 48);
  return out + "▀▀";
}

struct Letter {
  char32_t code;  // 0xFFFD for what is no UTF-8
  std::string_view bytes;
};

// The next code point of a text that may be anything.
Letter next_letter(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, text.substr(0, 1)};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {0xFFFD, text.substr(0, 1)};
  char32_t code = first & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0xFFFD, text.substr(0, 1)};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {0xFFFD, text.substr(0, 1)};
  return {code, text.substr(0, length)};
}

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x2069) || code == 0xFEFF;
}

int letter_width(char32_t code) {
  struct Range {
    char32_t first, last;
  };
  constexpr Range kNone[] = {{0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x610, 0x61A},   {0x64B, 0x65F},
                             {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
  constexpr Range kTwo[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xAC00, 0xD7A3},
                            {0xF900, 0xFAFF},   {0xFE30, 0xFE4F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},
                            {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
  const auto within = [code](const auto& ranges) {
    return std::any_of(std::begin(ranges), std::end(ranges),
                       [code](const Range& range) { return code >= range.first && code <= range.last; });
  };
  return within(kNone) ? 0 : within(kTwo) ? 2 : 1;
}

std::string repeated(std::string_view part, std::int64_t count) {
  std::string result;
  for (std::int64_t i = 0; i < count; ++i) result += part;
  return result;
}

// A label as a column of letters, each padded to the width of a cell: labels that are too wide are read downwards.
std::vector<std::string> downwards(std::string_view label) {
  std::vector<std::string> lines;
  while (!label.empty()) {
    const Letter letter = next_letter(label);
    label.remove_prefix(letter.bytes.size());
    const int width = letter_width(letter.code);
    if (width == 0 && !lines.empty()) {  // an accent stays with its letter
      const std::size_t end = lines.back().find_last_not_of(' ') + 1;
      lines.back().insert(end, letter.bytes);
    } else {
      lines.push_back(std::string(letter.bytes) + std::string(static_cast<std::size_t>(kCell - width), ' '));
    }
  }
  return lines;
}

// The lines above columns begin … end, without margin.
std::vector<std::string> header(std::span<const std::string> labels) {
  const bool flat =
      std::all_of(labels.begin(), labels.end(), [](const auto& label) { return display_width(label) <= kCell; });
  std::vector<std::vector<std::string>> columns;
  std::size_t height = 1;
  for (const std::string& label : labels) {
    const auto pad = static_cast<std::size_t>(std::max(0, kCell - display_width(label)));
    columns.push_back(flat ? std::vector<std::string>{label + std::string(pad, ' ')} : downwards(label));
    height = std::max(height, columns.back().size());
  }
  std::vector<std::string> lines(height);
  for (const std::vector<std::string>& column : columns) {
    for (std::size_t line = 0; line < height; ++line) {  // they end on the frame
      const std::size_t blank = height - column.size();
      lines[line] += line < blank ? std::string(kCell, ' ') : column[line - blank];
    }
  }
  return lines;
}

void trim_end(std::string& text) { text.erase(text.find_last_not_of(' ') + 1); }

}  // namespace

Colors colors_of(int file, WhenColors when) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  if (when == WhenColors::kNever) return Colors::kNone;
  if (when == WhenColors::kAuto &&
      (isatty(file) != 1 || !variable("NO_COLOR").empty() || variable("TERM").empty() || variable("TERM") == "dumb")) {
    return Colors::kNone;
  }
  const std::string_view kind = variable("COLORTERM");
  return kind == "truecolor" || kind == "24bit" ? Colors::kAll : Colors::k256;
}

int width_of(int file) {
  winsize size = {};
  return ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Letter letter = next_letter(text);
    text.remove_prefix(letter.bytes.size());
    width += letter_width(letter.code);
  }
  return width;
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Letter letter = next_letter(text);
    text.remove_prefix(letter.bytes.size());
    if (letter.code == ' ') {
      result += "␣";
    } else if (is_control(letter.code) || letter.code == 0xFFFD) {
      result += "�";
    } else {
      result += letter.bytes;
    }
  }
  return result;
}

std::string heat_map(const Tensor& weights, const MapLabels& labels, const MapSettings& settings) {
  check(weights.rank() == 2 && weights[0] == static_cast<std::int64_t>(labels.rows.size()) &&
            weights[1] == static_cast<std::int64_t>(labels.columns.size()),
        "heat map: weights ", weights.shape(), " with ", labels.rows.size(), " labels of rows and ",
        labels.columns.size(), " of columns");
  const Tensor dense = weights.to(DType::kF64);
  const double* values = dense.data<double>();
  const bool half = settings.half && settings.colors != Colors::kNone;
  const std::size_t rows = labels.rows.size();
  std::vector<std::string> names, columns;  // of lines
  for (std::size_t row = 0; row < rows; row += half ? 2 : 1) {
    names.push_back(printable(labels.rows[row]));
    if (half && row + 1 < rows) names.back() += " / " + printable(labels.rows[row + 1]);
  }
  int margin = 0;
  for (const std::string& name : names) margin = std::max(margin, display_width(name));
  for (const std::string& label : labels.columns) columns.push_back(printable(label));

  constexpr int kIndent = 2, kFrame = 2;
  const auto fitting = static_cast<std::size_t>(std::max(1, (settings.width - kIndent - margin - kFrame) / kCell));
  const std::string left(static_cast<std::size_t>(kIndent + margin + 1), ' ');
  std::string out;
  std::size_t begin = 0;
  do {
    const std::size_t end = std::min(columns.size(), begin + fitting);
    if (begin > 0) out += '\n';
    for (const std::string& line : header(std::span(columns).subspan(begin, end - begin))) {
      out += left + ' ' + line;
      trim_end(out);
      out += '\n';
    }
    out += left + "┌" + repeated("─", static_cast<std::int64_t>(end - begin) * kCell) + '\n';
    for (std::size_t line = 0; line < names.size(); ++line) {
      const auto pad = static_cast<std::size_t>(kIndent + margin - display_width(names[line]));
      out += std::string(pad, ' ') + names[line] + " │";
      for (std::size_t column = begin; column < end; ++column) {
        const std::size_t row = half ? 2 * line : line;
        const double* const here = values + row * columns.size() + column;
        out += half ? two_cells(*here, row + 1 < rows ? here + columns.size() : nullptr, settings.colors,
                                settings.difference)
                    : cell(*here, settings.colors, settings.difference);
      }
      if (settings.colors == Colors::kNone) {
        trim_end(out);
      } else if (end > begin) {
        out += kPlain;
      }
      out += '\n';
    }
    begin = end;
  } while (begin < columns.size());
  return out;
}

WhenColors when_colors(std::string_view name) {
  if (name == "always") return WhenColors::kAlways;
  if (name == "never") return WhenColors::kNever;
  check(name == "auto", "colours: '", name, "', expected auto, always or never");
  return WhenColors::kAuto;
}

std::string progress_bar(double done, int width) {
  constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::lround(std::clamp(done, 0.0, 1.0) * 8 * width));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kParts[eighths % 8];
  return bar + std::string(static_cast<std::size_t>(width - (eighths + 7) / 8), ' ');
}

std::string heat_scale(Colors colors, std::string_view least, std::string_view most, bool difference) {
  const double low = difference ? -1 : 0;
  const int steps = colors == Colors::kNone && !difference ? 4 : 8;
  std::string bar;
  for (int i = 0; i <= steps; ++i) {
    const double weight = low + (1 - low) * i / steps;
    bar += colors == Colors::kNone && !difference ? shade(weight) : cell(weight, colors, difference);
  }
  if (colors != Colors::kNone) bar += kPlain;
  return std::string(least) + ' ' + bar + ' ' + std::string(most);
}

std::string shaded_text(std::span<const ShadedPart> parts, const MapSettings& settings) {
  constexpr int kIndent = 2;
  std::string out(kIndent, ' ');
  int at = kIndent;
  for (const ShadedPart& part : parts) {
    std::string words;  // blanks stay blanks here
    for (std::string_view rest = part.text; !rest.empty();) {
      const Letter letter = next_letter(rest);
      rest.remove_prefix(letter.bytes.size());
      words += letter.code == ' ' || letter.code == '\n' ? " " : printable(letter.bytes);
    }
    const bool known = !std::isnan(part.weight);
    if (settings.colors == Colors::kNone && known) {
      const double size = std::abs(part.weight);
      const std::string how = shade(size);
      if (how != " ") words = (settings.difference && part.weight < 0 ? "-" : "") + how + words;
    }
    const int width = display_width(words);
    if (at + width > settings.width && at > kIndent) {
      trim_end(out);
      out += '\n' + std::string(kIndent, ' ');
      at = kIndent;
      if (words.find_first_not_of(' ') == std::string::npos) continue;
    }
    at += width;
    if (settings.colors == Colors::kNone || !known) {
      out += words;
      continue;
    }
    const Color ground = ramp(part.weight, settings.difference);
    const bool light = 299 * ground.red + 587 * ground.green + 114 * ground.blue > 140000;
    out += escape(ground, settings.colors, 48) +
           escape(light ? Color{0, 0, 0} : Color{238, 238, 238}, settings.colors, 38);
    out += words;
    out += kPlain;
  }
  trim_end(out);
  return out + '\n';
}

}  // namespace regard
