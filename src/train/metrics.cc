#include "train/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "io/json.h"

namespace regard {
namespace {

std::int64_t opened(Files& files, const std::string& path) {
  const Files::Result result = files.append(path);
  if (result.error != 0) fail_file("open", path, result.error);
  return result.value;
}

}  // namespace

Metrics::Metrics(Files& files, const std::string& path) : files_(files), out_(files, path, opened(files, path)) {
  const Files::Result size = files.size(path);
  if (size.error != 0) {
    files.close(out_.handle());
    fail_file("read", path, size.error);
  }
  length_ = size.value;
  if (length_ == 0) files.sync_folder(folder_of(path));  // its name lasts as long as what a checkpoint says of it
}

Metrics::~Metrics() { files_.close(out_.handle()); }

bool Metrics::cut(std::int64_t length) {
  if (length > length_) return false;
  if (length < length_) out_.cut(length);
  length_ = length;
  return true;
}

void Metrics::write(std::string_view object) {
  std::string line(object);
  line += '\n';
  out_.write(line);
  length_ += static_cast<std::int64_t>(line.size());
}

void Metrics::sync() { out_.sync(); }

std::optional<double> Metrics::last(const std::string& key) {
  const std::string all = read_file(files_, out_.path());
  std::string_view line = all;
  while (line.ends_with('\n')) line.remove_suffix(1);
  line = line.substr(line.rfind('\n') + 1);
  if (line.empty()) return std::nullopt;
  try {
    return Json::parse(line, out_.path()).at(key).number();
  } catch (const Error&) {  // somebody has been here; a diary is not worth stopping for
    return std::nullopt;
  }
}

std::string clock_number(double value) {
  constexpr double kMost = 999'999'999;
  return fmt::format("{:>13.3f}", std::isfinite(value) ? std::clamp(value, 0.0, kMost) : 0);
}

}  // namespace regard
