// The diary of a training run: one JSON object a line, each handed to the operating system when it is complete.
//
//     Metrics metrics(disk(), "zh-en.model.metrics.jsonl", 0);
//     metrics.write(R"({"kind":"report","update":100})");
//
// As long as it lives no other process can open the same file: two runs cannot write one diary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/file.h"

namespace regard {

class Metrics {
 public:
  Metrics(Files& files, const std::string& path);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // What was written after the first `length` bytes goes. Gives false if there are fewer: then all stays.
  bool cut(std::int64_t length);
  void write(std::string_view object);
  void sync();
  std::int64_t length() const { return length_; }
  // What the last line says is the number `key`; nothing if there is no line, or no such number.
  std::optional<double> last(const std::string& key);

 private:
  Files& files_;
  FileWriter out_;
  std::int64_t length_ = 0;
};

// A number whose text is always as long: what depends on the clock must not change the length of a file.
std::string clock_number(double value);

}  // namespace regard
