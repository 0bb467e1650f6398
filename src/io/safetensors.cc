#include "io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>

#include "base/check.h"
#include "base/utf8.h"
#include "io/json.h"

namespace regard {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and so are we");

constexpr std::size_t kLengthBytes = 8;
constexpr std::int64_t kMostElements = std::int64_t{1} << 60;

constexpr struct {
  FileType type;
  const char* name;
  std::size_t bytes;
} kTypes[] = {
    {FileType::kF32, "F32", 4}, {FileType::kF64, "F64", 8}, {FileType::kBF16, "BF16", 2}, {FileType::kI8, "I8", 1},
    {FileType::kU8, "U8", 1},   {FileType::kI32, "I32", 4}, {FileType::kI64, "I64", 8},
};

FileType type_of(DType type) {
  switch (type) {
    case DType::kF32:
      return FileType::kF32;
    case DType::kF64:
      return FileType::kF64;
    case DType::kBF16:
      return FileType::kBF16;
    case DType::kI8:
      return FileType::kI8;
    case DType::kI32:
      return FileType::kI32;
  }
  return FileType::kF32;
}

// The type and the size in bytes that a tensor of the header has, with every product checked.
FileTensor described(std::string_view name, const Json& entry, const std::string& what, std::uint64_t& bytes) {
  const auto refuse = [&](const auto&... why) {
    fail(ErrorKind::kFile, what, ": tensor ", json_quote(name), ": ", why...);
  };
  if (name.empty() || name.size() > Safetensors::kMostNameBytes) refuse("a name of ", name.size(), " bytes");
  entry.allow_only({"dtype", "shape", "data_offsets"});
  FileTensor out{.name = std::string(name)};
  const std::string_view type = entry.at("dtype").text();
  const auto* known =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& each) { return each.name == type; });
  if (known == std::end(kTypes)) refuse("unknown dtype ", json_quote(type));
  out.type = known->type;
  bytes = known->bytes;
  const std::vector<Json> sizes = entry.at("shape").array();
  if (sizes.size() > Safetensors::kMostRank) refuse("rank ", sizes.size(), ", at most ", Safetensors::kMostRank);
  for (const Json& size : sizes) {
    out.shape.push_back(size.integer(0, kMostElements));
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(out.shape.back()), &bytes))
      refuse("a size beyond all");
  }
  return out;
}

}  // namespace

const char* name_of(FileType type) { return kTypes[static_cast<std::size_t>(type)].name; }
std::size_t bytes_of(FileType type) { return kTypes[static_cast<std::size_t>(type)].bytes; }

std::string to_text(const FileTensor& tensor) {
  return fmt::format("{} {} [{}]", json_quote(tensor.name), name_of(tensor.type), fmt::join(tensor.shape, ", "));
}

FileTensor file_tensor(std::string name, const Tensor& tensor) {
  check(tensor.defined() && tensor.is_dense(), "tensor '", name, "' is not dense and cannot be written");
  FileTensor out{.name = std::move(name), .type = type_of(tensor.dtype())};
  for (int i = 0; i < tensor.rank(); ++i) out.shape.push_back(tensor[i]);
  out.bytes = {tensor.raw(), tensor.bytes()};
  return out;
}

FileTensor file_bytes(std::string name, std::string_view bytes) {
  return {.name = std::move(name),
          .type = FileType::kU8,
          .shape = {static_cast<std::int64_t>(bytes.size())},
          .bytes = std::as_bytes(std::span(bytes))};
}

FileTensor file_integers(std::string name, std::span<const std::int64_t> values) {
  return {.name = std::move(name),
          .type = FileType::kI64,
          .shape = {static_cast<std::int64_t>(values.size())},
          .bytes = std::as_bytes(values)};
}

Tensor tensor_of(const FileTensor& tensor) {
  const auto type = [&] {
    switch (tensor.type) {
      case FileType::kF32:
        return DType::kF32;
      case FileType::kF64:
        return DType::kF64;
      case FileType::kBF16:
        return DType::kBF16;
      case FileType::kI8:
        return DType::kI8;
      case FileType::kI32:
        return DType::kI32;
      case FileType::kU8:
      case FileType::kI64:
        break;
    }
    fail(ErrorKind::kFile, "tensor ", tensor, ": a type that only files have");
  }();
  if (tensor.shape.size() > kMaxRank) fail(ErrorKind::kFile, "tensor ", tensor, ": rank beyond ", kMaxRank);
  Shape shape;
  for (const std::int64_t size : tensor.shape) shape = shape.plus(size);
  Tensor out = Tensor::empty(shape, type);
  if (!tensor.bytes.empty()) std::memcpy(out.raw(), tensor.bytes.data(), tensor.bytes.size());
  return out;
}

std::string_view bytes_of(const FileTensor& tensor) {
  if (tensor.type != FileType::kU8 || tensor.shape.size() != 1)
    fail(ErrorKind::kFile, "tensor ", tensor, ": expected bytes");
  return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
}

std::vector<std::int64_t> integers_of(const FileTensor& tensor) {
  if (tensor.type != FileType::kI64 || tensor.shape.size() != 1) {
    fail(ErrorKind::kFile, "tensor ", tensor, ": expected whole numbers");
  }
  std::vector<std::int64_t> out(tensor.bytes.size() / sizeof(std::int64_t));
  if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
  return out;
}

Safetensors Safetensors::parse(std::string given, const std::string& what) {
  Safetensors out;
  out.what_ = what;
  out.bytes_ = std::make_unique<const std::string>(std::move(given));
  const std::string& all = *out.bytes_;
  const auto refuse = [&](const auto&... why) { fail(ErrorKind::kFile, what, ": ", why...); };
  if (all.size() < kLengthBytes + 2) refuse("not safetensors: ", all.size(), " bytes");
  std::uint64_t length = 0;
  std::memcpy(&length, all.data(), kLengthBytes);
  if (length > kMostHeaderBytes) refuse("a header of ", length, " bytes, at most ", kMostHeaderBytes);
  if (length > all.size() - kLengthBytes) refuse("cut off: a header of ", length, " bytes in a file of ", all.size());
  const std::string_view header(all.data() + kLengthBytes, length);
  if (!header.starts_with('{')) refuse("not safetensors: the header does not start with '{'");
  const std::span<const std::byte> data = std::as_bytes(std::span(all)).subspan(kLengthBytes + length);

  const auto entries = Json::parse(header, what).object();
  if (entries.size() > kMostTensors + 1) refuse(entries.size(), " tensors, at most ", kMostTensors);
  struct Place {
    std::uint64_t begin, end;
    FileTensor tensor;
  };
  std::vector<Place> places;
  places.reserve(entries.size());
  for (const auto& [name, entry] : entries) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.object()) out.metadata_.emplace(key, value.text());
      continue;
    }
    std::uint64_t bytes = 0;
    FileTensor tensor = described(name, entry, what, bytes);
    const std::vector<Json> offsets = entry.at("data_offsets").array();
    if (offsets.size() != 2) refuse("tensor ", tensor, ": ", offsets.size(), " data_offsets, expected 2");
    const std::uint64_t begin = offsets[0].natural(), end = offsets[1].natural();
    if (begin > end || end > data.size() || end - begin != bytes) {
      refuse("tensor ", tensor, ": data_offsets ", begin, " … ", end, " of ", data.size(), ", expected ", bytes,
             " bytes");
    }
    tensor.bytes = data.subspan(begin, bytes);
    places.push_back({begin, end, std::move(tensor)});
  }
  // By name where nothing is between begin and end, so that the order is one.
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tie(a.begin, a.end, a.tensor.name) < std::tie(b.begin, b.end, b.tensor.name);
  });
  std::uint64_t reached = 0;
  for (Place& place : places) {
    if (place.begin != reached) {
      refuse("tensor ", place.tensor, ": starts at ", place.begin, ", the one before it ends at ", reached);
    }
    reached = place.end;
    out.tensors_.push_back(std::move(place.tensor));
  }
  if (reached != data.size()) refuse(data.size() - reached, " bytes belong to no tensor");
  for (std::size_t i = 0; i < out.tensors_.size(); ++i) out.by_name_.emplace(out.tensors_[i].name, i);
  return out;
}

const FileTensor* Safetensors::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

const FileTensor& Safetensors::at(std::string_view name) const {
  const FileTensor* found = find(name);
  if (found == nullptr) fail(ErrorKind::kFile, what_, ": there is no tensor ", json_quote(name));
  return *found;
}

void in_file_order(std::vector<FileTensor>& tensors) {
  const auto before = [](const FileTensor& a, const FileTensor& b) {
    const std::size_t wide_a = bytes_of(a.type), wide_b = bytes_of(b.type);
    return std::tie(wide_b, a.name) < std::tie(wide_a, b.name);
  };
  if (!std::is_sorted(tensors.begin(), tensors.end(), before)) std::sort(tensors.begin(), tensors.end(), before);
}

std::string safetensors_header(const FileMetadata& metadata, const std::vector<FileTensor>& tensors,
                               std::string_view more) {
  std::size_t room = kLengthBytes + more.size();
  for (const auto& [key, value] : metadata) room += key.size() + 2 * value.size() + 16;
  for (const FileTensor& tensor : tensors) room += 2 * tensor.name.size() + 128;
  JsonWriter out(std::string(kLengthBytes, '\0'), room);
  out.begin_object().key("__metadata__").begin_object();
  for (const auto& [key, value] : metadata) out.key(key).value(value);
  if (!more.empty()) out.raw(more);
  out.end_object();
  std::uint64_t begin = 0;
  for (const FileTensor& tensor : tensors) {
    check(!tensor.name.empty() && tensor.name.size() <= Safetensors::kMostNameBytes && utf8::valid(tensor.name) &&
              tensor.name != "__metadata__",
          "a tensor cannot be called ", json_quote(tensor.name), " in a file");
    out.key(tensor.name).begin_object().key("dtype").value(name_of(tensor.type)).key("shape").begin_array();
    for (const std::int64_t size : tensor.shape) out.value(size);
    const std::uint64_t end = begin + tensor.bytes.size();
    out.end_array().key("data_offsets").begin_array().value(begin).value(end).end_array().end_object();
    begin = end;
  }
  std::string header = out.end_object().take();
  static_assert(kLengthBytes == 8);
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::uint64_t length = header.size() - kLengthBytes;
  check(length <= Safetensors::kMostHeaderBytes, "a header of ", length, " bytes for ", tensors.size(),
        " tensors, at most ", Safetensors::kMostHeaderBytes);
  std::memcpy(header.data(), &length, kLengthBytes);
  return header;
}

}  // namespace regard
