// A trained model in one file: settings, weights, tokenisers. It holds only what determines results (no time, path,
// host or thread count), so two equal runs write equal files.
//
//     save_model(disk(), "zh-en.model", {.config = json, .parameters = &parameters, .tokenizers = {{"source", "pieces",
//     bytes}}}); const ModelFile file = load_model(disk(), "zh-en.model"); file.fill(parameters);
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "io/sealed.h"
#include "regard/autograd/parameter.h"

namespace regard {

inline constexpr Format kModelFormat = {.name = "regard-model", .major = 1, .minor = 1};

// How weights stand in a file: matrices may be smaller than f32, see autograd/int8_weights.h for which.
enum class Storage { kF32, kBF16, kInt8 };
Storage storage_of(std::string_view name);  // "f32", "bf16", "int8"; throws if it is none
std::string_view name_of(Storage storage);

struct TokenizerBytes {
  std::string name;  // "source", "target"
  std::string kind;  // "pieces", "words", "characters"
  std::string bytes;
};

struct ModelContent {
  std::string config = "{}";  // a JSON object
  const Parameters* parameters = nullptr;
  std::vector<TokenizerBytes> tokenizers = {};
};

// A file with weights of f32 is one of version 1.0, which older programs read as well.
void save_model(Files& files, const std::string& path, const ModelContent& content);

class ModelFile {
 public:
  int major() const { return sealed_.major; }
  int minor() const { return sealed_.minor; }
  const std::string& digest() const { return sealed_.digest; }
  const std::string& config() const { return config_; }
  const std::vector<TokenizerBytes>& tokenizers() const { return tokenizers_; }
  const TokenizerBytes& tokenizer(std::string_view name) const;               // throws if it is not there
  const std::vector<const FileTensor*>& weights() const { return weights_; }  // by name
  Storage storage() const;                                                    // the smallest type of its weights
  // Throws if there are no weights of this name, or if they have another shape: what a config says is compared with the
  // file before memory is taken for it.
  void expect(std::string_view name, const Shape& shape) const;
  // Gives the parameters their values. Every one must be there with its shape and type, and none may be left over.
  // Smaller weights become f32; those of 8 bits also stay what they are, for decoding (Parameter::int8).
  void fill(Parameters& parameters) const;
  // The same model with smaller weights. Throws if they are small already, or not all finite.
  void save_as(Files& files, const std::string& path, Storage storage) const;

 private:
  friend ModelFile load_model(Files& files, const std::string& path);
  explicit ModelFile(Sealed sealed);

  Sealed sealed_;
  std::string config_;
  std::vector<TokenizerBytes> tokenizers_;
  std::vector<const FileTensor*> weights_;
  std::map<std::string_view, const FileTensor*> scales_;  // by the name of the weights
};

ModelFile load_model(Files& files, const std::string& path);

// Writes the file anew with what `change` makes of its config; weights and tokenisers stay bit for bit, and so does
// what a newer minor version may have added.
void change_config(Files& files, const std::string& path, const std::function<std::string(const Json&)>& change);

// Weights in a file, each under `prefix` and its name: what models and checkpoints have in common.
void add_weights(std::vector<FileTensor>& tensors, const Parameters& parameters, const std::string& prefix);
// In the order of the parameters; throws if one is not there, or is of another shape or type.
std::vector<Tensor> read_weights(const Safetensors& content, const std::string& prefix, const Parameters& parameters);
void set_weights(Parameter& parameter, const Tensor& value);
void set_weights(Parameters& parameters, const std::vector<Tensor>& values);

}  // namespace regard
