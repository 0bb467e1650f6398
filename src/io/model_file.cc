#include "io/model_file.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/check.h"

namespace regard {
namespace {

constexpr std::string_view kTokenizer = "tokenizer/";  // no parameter has a '/' in its name

}  // namespace

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

void set_weights(Parameters& parameters, const std::vector<Tensor>& values) {
  for (Parameter& parameter : parameters) {
    parameter.value = values[parameter.index];
    ++parameter.version;  // packed copies are out of date
  }
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
  write_sealed(files, path, kModelFormat, metadata, std::move(tensors));
}

ModelFile::ModelFile(Sealed sealed) : sealed_(std::move(sealed)) {
  const Safetensors& content = sealed_.content;
  const auto config = content.metadata().find("config");
  if (config == content.metadata().end()) fail(ErrorKind::kFile, content.what(), ": there is no config");
  config_ = config->second;
  Json::parse(config_, "config of " + content.what()).object();
  for (const FileTensor& tensor : content.tensors()) {
    if (!tensor.name.starts_with(kTokenizer)) {
      weights_.push_back(&tensor);
      continue;
    }
    const auto kind = content.metadata().find(tensor.name);
    if (kind == content.metadata().end()) fail(ErrorKind::kFile, content.what(), ": of which kind is ", tensor, "?");
    tokenizers_.push_back({tensor.name.substr(kTokenizer.size()), kind->second, std::string(bytes_of(tensor))});
  }
  std::sort(weights_.begin(), weights_.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
}

const TokenizerBytes& ModelFile::tokenizer(std::string_view name) const {
  for (const TokenizerBytes& each : tokenizers_) {
    if (each.name == name) return each;
  }
  fail(ErrorKind::kFile, sealed_.content.what(), ": there is no tokeniser '", name, "'");
}

void ModelFile::fill(Parameters& parameters) const {
  std::set<std::string_view> known;
  for (const Parameter& parameter : parameters) known.insert(parameter.name);
  for (const FileTensor* weight : weights_) {
    if (!known.contains(weight->name)) {
      fail(ErrorKind::kFile, sealed_.content.what(), ": weights ", *weight, ", which the model does not have");
    }
  }
  set_weights(parameters, read_weights(sealed_.content, "", parameters));
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
