// The safetensors format: named tensors, a JSON header before their bytes.
//
//     8 bytes: length of the header │ header:
//     {"__metadata__":{…},"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},…} │ data
//
// Read as if by a stranger's hand: header of at most 16 MiB that starts with '{', no key twice, at most 100 000 tensors
// of rank 8 with names of at most 512 bytes, sizes that cannot overflow, no holes, no overlap, every byte accounted
// for. What is written is a function of what is given, byte for byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regard/tensor/tensor.h"

namespace regard {

enum class FileType : std::uint8_t { kF32, kF64, kBF16, kI8, kU8, kI32, kI64 };
const char* name_of(FileType type);  // "F32"
std::size_t bytes_of(FileType type);

struct FileTensor {
  std::string name;
  FileType type = FileType::kF32;
  std::vector<std::int64_t> shape = {};
  std::span<const std::byte> bytes = {};  // somebody else's
};
std::string to_text(const FileTensor& tensor);  // "'encoder.weight' F32 [2, 3]"

// What is given stays the owner of the bytes.
FileTensor file_tensor(std::string name, const Tensor& tensor);   // a dense one
FileTensor file_bytes(std::string name, std::string_view bytes);  // as U8 [size]
FileTensor file_integers(std::string name, std::span<const std::int64_t> values);

// Copies. Throw if the file has another type, rank or shape than asked for.
Tensor tensor_of(const FileTensor& tensor);
std::string_view bytes_of(const FileTensor& tensor);              // of U8 [size]; not a copy
std::vector<std::int64_t> integers_of(const FileTensor& tensor);  // of I64 [size]

class Safetensors {
 public:
  static constexpr std::size_t kMostHeaderBytes = 16 << 20, kMostTensors = 100'000, kMostRank = 8, kMostNameBytes = 512;

  // `what` names the bytes in errors.
  static Safetensors parse(std::string bytes, const std::string& what);
  Safetensors(Safetensors&&) = default;
  Safetensors& operator=(Safetensors&&) = default;

  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }
  const std::vector<FileTensor>& tensors() const { return tensors_; }  // in the order of their bytes
  const FileTensor* find(std::string_view name) const;
  const FileTensor& at(std::string_view name) const;  // throws if it is not there
  const std::string& what() const { return what_; }

 private:
  Safetensors() = default;
  std::string what_;
  std::unique_ptr<const std::string> bytes_;  // stays where it is when this is moved: tensors point into it
  std::map<std::string, std::string, std::less<>> metadata_;
  std::vector<FileTensor> tensors_;
  std::map<std::string_view, std::size_t> by_name_;
};

// Wide types first, so that every tensor stands on a multiple of its width; then by name.
void in_file_order(std::vector<FileTensor>& tensors);
using FileMetadata = std::vector<std::pair<std::string, std::string>>;
// Everything before the data; its length is a multiple of 8. Metadata comes first, in the order given; then `more` of
// it, as JSON that was written already ("key":"value").
std::string safetensors_header(const FileMetadata& metadata, const std::vector<FileTensor>& tensors,
                               std::string_view more = {});

}  // namespace regard
