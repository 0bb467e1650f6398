#include "io/model_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "autograd/int8_weights.h"
#include "base/check.h"

namespace regard {
namespace {

constexpr std::string_view kTokenizer = "tokenizer/";  // no parameter has a '/' in its name
constexpr std::string_view kScale = "/scale";          // of weights in 8 bits

constexpr std::pair<Storage, std::string_view> kStorages[] = {
    {Storage::kF32, "f32"}, {Storage::kBF16, "bf16"}, {Storage::kInt8, "int8"}};

// A value, and what it was made of if that was bytes.
struct Weights {
  Tensor value;
  std::optional<Quantized> bytes;
};

// Gives out pieces of one block, for which the system has large pages: a small model has thousands of ordinary ones,
// and to touch each for the first time was a third of the time that loading took.
class Block {
 public:
  explicit Block(std::size_t floats) : all_(Tensor::empty({static_cast<std::int64_t>(floats)})) {}
  static std::size_t size(std::size_t floats) { return (floats + 15) / 16 * 16; }
  Tensor next(const Shape& shape) {
    const std::int64_t begin = used_;
    used_ += static_cast<std::int64_t>(size(static_cast<std::size_t>(shape.size())));
    return all_.slice(0, begin, begin + shape.size()).reshape(shape);
  }

 private:
  Tensor all_;
  std::int64_t used_ = 0;
};

std::size_t elements(const FileTensor& tensor) { return tensor.bytes.size() / bytes_of(tensor.type); }

Weights weights_of(const FileTensor& from, const FileTensor* scale, Block& block) {
  const bool small = from.type == FileType::kBF16 || scale != nullptr;
  if ((!small && from.type != FileType::kF32) || from.shape.size() > kMaxRank) return {tensor_of(from), {}};
  Shape shape;
  for (const std::int64_t size : from.shape) shape = shape.plus(size);
  Weights made{block.next(shape), {}};
  if (scale != nullptr) {
    // Only read, and not for longer than the file is there.
    made.bytes = {Tensor::borrow(const_cast<std::byte*>(from.bytes.data()), shape, DType::kI8), tensor_of(*scale)};
    dequantize(*made.bytes, made.value);
  } else if (small) {
    float* to = made.value.data<float>();
    const std::byte* bytes = from.bytes.data();
    for (std::size_t i = 0, count = elements(from); i < count; ++i) {
      BF16 half;
      std::memcpy(&half.bits, bytes + 2 * i, sizeof(half.bits));
      to[i] = static_cast<float>(half);
    }
  } else if (!from.bytes.empty()) {
    std::memcpy(made.value.raw(), from.bytes.data(), from.bytes.size());
  }
  return made;
}

}  // namespace

Storage storage_of(std::string_view name) {
  for (const auto& [storage, known] : kStorages) {
    if (known == name) return storage;
  }
  fail(ErrorKind::kInput, "unknown kind of weights '", name, "', expected f32, bf16 or int8");
}

std::string_view name_of(Storage storage) { return kStorages[static_cast<std::size_t>(storage)].second; }

void add_weights(std::vector<FileTensor>& tensors, const Parameters& parameters, const std::string& prefix) {
  for (const Parameter& parameter : parameters) {
    check(parameter.name.find('/') == std::string::npos, "a parameter in a file cannot be called '", parameter.name,
          "': '/' is for other things");
    tensors.push_back(file_tensor(prefix + parameter.name, parameter.value));
  }
}

std::vector<Tensor> read_weights(const Safetensors& content, const std::string& prefix, const Parameters& parameters) {
  const auto refuse = [&](const auto&... why) { fail(ErrorKind::kFile, content.what(), ": ", why...); };
  std::vector<Tensor> values;
  values.reserve(parameters.size());
  for (const Parameter& parameter : parameters) {
    const FileTensor* found = content.find(prefix + parameter.name);
    if (found == nullptr) refuse("there are no weights '", parameter.name, "', which the model has");
    values.push_back(tensor_of(*found));
    if (values.back().shape() != parameter.value.shape() || values.back().dtype() != parameter.value.dtype()) {
      refuse("weights ", *found, ", the model has ", parameter.value);
    }
  }
  return values;
}

void set_weights(Parameter& parameter, const Tensor& value) {
  parameter.value = value;
  parameter.int8.reset();
  ++parameter.version;  // packed copies are out of date
}

void set_weights(Parameters& parameters, const std::vector<Tensor>& values) {
  for (Parameter& parameter : parameters) set_weights(parameter, values[parameter.index]);
}

void save_model(Files& files, const std::string& path, const ModelContent& content) {
  Json::parse(content.config, "config").object();  // what is written must be readable
  FileMetadata metadata = {{"config", content.config}};
  std::vector<FileTensor> tensors;
  if (content.parameters != nullptr) add_weights(tensors, *content.parameters, "");
  for (const TokenizerBytes& each : content.tokenizers) {
    metadata.emplace_back(std::string(kTokenizer) + each.name, each.kind);
    tensors.push_back(file_bytes(std::string(kTokenizer) + each.name, each.bytes));
  }
  std::sort(metadata.begin(), metadata.end());
  Format plain = kModelFormat;
  plain.minor = 0;
  write_sealed(files, path, plain, metadata, std::move(tensors));
}

ModelFile::ModelFile(Sealed sealed) : sealed_(std::move(sealed)) {
  const Safetensors& content = sealed_.content;
  const auto config = content.metadata().find("config");
  if (config == content.metadata().end()) fail(ErrorKind::kFile, content.what(), ": there is no config");
  config_ = config->second;
  Json::parse(config_, "config of " + content.what()).object();
  for (const FileTensor& tensor : content.tensors()) {
    if (!tensor.name.starts_with(kTokenizer)) {
      const std::string_view name = tensor.name;
      if (name.ends_with(kScale)) {
        scales_.emplace(name.substr(0, name.size() - kScale.size()), &tensor);
      } else {
        weights_.push_back(&tensor);
      }
      continue;
    }
    const auto kind = content.metadata().find(tensor.name);
    if (kind == content.metadata().end()) fail(ErrorKind::kFile, content.what(), ": of which kind is ", tensor, "?");
    tokenizers_.push_back({tensor.name.substr(kTokenizer.size()), kind->second, std::string(bytes_of(tensor))});
  }
  std::sort(weights_.begin(), weights_.end(), [](const auto* a, const auto* b) { return a->name < b->name; });

  // Bytes have scales, and scales have bytes.
  const auto refuse = [&](const auto&... why) { fail(ErrorKind::kFile, content.what(), ": ", why...); };
  for (const FileTensor* weight : weights_) {
    if (weight->type != FileType::kI8) continue;
    const auto found = scales_.find(weight->name);
    if (found == scales_.end()) refuse("weights ", *weight, " without '", weight->name, kScale, "'");
    if (weight->shape.size() != 2) refuse("weights ", *weight, ", expected two dimensions");
    const FileTensor& scale = *found->second;
    const std::int64_t rows = weight->shape[0], columns = weight->shape[1];
    if (scale.type != FileType::kF32 ||
        (scale.shape != std::vector<std::int64_t>{rows, 1} && scale.shape != std::vector<std::int64_t>{1, columns})) {
      refuse("scales ", scale, " of weights ", *weight, ", expected F32 [", rows, ", 1] or [1, ", columns, "]");
    }
    const Tensor values = tensor_of(scale);
    for (std::int64_t i = 0; i < values.size(); ++i) {
      const float each = values.data<float>()[i];
      if (!std::isfinite(each) || each < 0) refuse("scales ", scale, ": ", each, " at ", i, ", expected 0 or more");
    }
  }
  for (const auto& [name, scale] : scales_) {
    const FileTensor* scaled = content.find(name);
    if (scaled == nullptr || scaled->type != FileType::kI8) refuse("scales ", *scale, " without weights in 8 bits");
  }
}

Storage ModelFile::storage() const {
  const auto any = [&](FileType type) {
    return std::any_of(weights_.begin(), weights_.end(), [&](const auto* each) { return each->type == type; });
  };
  return any(FileType::kI8) ? Storage::kInt8 : any(FileType::kBF16) ? Storage::kBF16 : Storage::kF32;
}

const TokenizerBytes& ModelFile::tokenizer(std::string_view name) const {
  for (const TokenizerBytes& each : tokenizers_) {
    if (each.name == name) return each;
  }
  fail(ErrorKind::kFile, sealed_.content.what(), ": there is no tokeniser '", name, "'");
}

void ModelFile::expect(std::string_view name, const Shape& shape) const {
  const auto refuse = [&](const auto&... why) { fail(ErrorKind::kFile, sealed_.content.what(), ": ", why...); };
  const FileTensor* found = sealed_.content.find(name);
  if (found == nullptr) refuse("there are no weights '", name, "', which the model has");
  bool same = found->shape.size() == static_cast<std::size_t>(shape.rank());
  for (int i = 0; same && i < shape.rank(); ++i) same = found->shape[static_cast<std::size_t>(i)] == shape[i];
  if (!same) refuse("weights ", *found, ", the model has ", shape);
}

void ModelFile::fill(Parameters& parameters) const {
  std::set<std::string_view> known;
  for (const Parameter& parameter : parameters) known.insert(parameter.name);
  for (const FileTensor* weight : weights_) {
    if (!known.contains(weight->name)) {
      fail(ErrorKind::kFile, sealed_.content.what(), ": weights ", *weight, ", which the model does not have");
    }
  }
  const auto refuse = [&](const auto&... why) { fail(ErrorKind::kFile, sealed_.content.what(), ": ", why...); };
  std::size_t floats = 0;
  for (const FileTensor* weight : weights_) floats += Block::size(elements(*weight));
  Block block(floats);
  std::vector<Weights> all;
  all.reserve(parameters.size());
  for (const Parameter& parameter : parameters) {
    const FileTensor* found = sealed_.content.find(parameter.name);
    if (found == nullptr) refuse("there are no weights '", parameter.name, "', which the model has");
    const auto scale = scales_.find(parameter.name);
    all.push_back(weights_of(*found, scale == scales_.end() ? nullptr : scale->second, block));
    const Tensor& value = all.back().value;
    if (value.shape() != parameter.value.shape() || value.dtype() != parameter.value.dtype()) {
      refuse("weights ", *found, ", the model has ", parameter.value);
    }
  }
  for (Parameter& parameter : parameters) {
    const Weights& from = all[parameter.index];
    if (from.bytes) {
      use_int8(parameter, from.value, *from.bytes);
    } else {
      set_weights(parameter, from.value);
    }
  }
}

void ModelFile::save_as(Files& files, const std::string& path, Storage storage) const {
  check(storage != Storage::kF32, "weights can become bf16 or int8, got f32");
  check(this->storage() == Storage::kF32, sealed_.content.what(), " has weights of ", name_of(this->storage()),
        ", expected f32: what was left out cannot come back");
  JsonWriter config;
  config.begin_object();
  for (const auto& [key, value] : Json::parse(config_, "config").object()) {
    if (key != "weights") config.key(key).raw(value.to_json());
  }
  config.key("weights").value(name_of(storage)).end_object();

  FileMetadata metadata;
  for (const auto& [key, value] : sealed_.content.metadata()) {
    if (key == "config") {
      metadata.emplace_back(key, config.text());
    } else if (key != "digest" && key != "format") {
      metadata.emplace_back(key, value);
    }
  }
  std::vector<Tensor> kept;  // owners of the bytes
  std::vector<FileTensor> tensors;
  for (const FileTensor& tensor : sealed_.content.tensors()) {
    const bool small = tensor.type == FileType::kF32 && !tensor.name.starts_with(kTokenizer) &&
                       scaled(tensor.name, static_cast<int>(tensor.shape.size())) != Scaled::kNot;
    if (!small) {
      tensors.push_back(tensor);
      continue;
    }
    const Quantized bytes = quantize(tensor.name, tensor_of(tensor));  // which also looks whether all are finite
    if (storage == Storage::kBF16) {
      kept.push_back(tensor_of(tensor).to(DType::kBF16));
      tensors.push_back(file_tensor(tensor.name, kept.back()));
    } else {
      kept.push_back(bytes.bytes);
      tensors.push_back(file_tensor(tensor.name, kept.back()));
      kept.push_back(bytes.scales);
      tensors.push_back(file_tensor(tensor.name + std::string(kScale), kept.back()));
    }
  }
  write_sealed(files, path, kModelFormat, metadata, std::move(tensors));
}

ModelFile load_model(Files& files, const std::string& path) {
  return ModelFile(read_sealed(files, path, kModelFormat));
}

void change_config(Files& files, const std::string& path, const std::function<std::string(const Json&)>& change) {
  load_model(files, path);  // what is no model is said to be none before anything is written
  const Sealed sealed = read_sealed(files, path, kModelFormat);
  FileMetadata metadata;
  for (const auto& [key, value] : sealed.content.metadata()) {
    if (key == "digest" || key == "format") continue;
    metadata.emplace_back(key, key == "config" ? change(Json::parse(value, "config of '" + path + "'")) : value);
    if (key == "config") Json::parse(metadata.back().second, "config").object();
  }
  write_sealed(files, path, {.name = kModelFormat.name, .major = sealed.major, .minor = sealed.minor}, metadata,
               sealed.content.tensors());
}

}  // namespace regard
