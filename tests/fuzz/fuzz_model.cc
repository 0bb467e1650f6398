// Model files, with a digest that fits: what is in them may be anything.
#include <cerrno>

#include "data/tokenizer.h"
#include "fuzz/target.h"
#include "io/model_file.h"
#include "models/presets.h"
#include "support/damage.h"

namespace regard {
namespace {

// One file that can only be read.
class OneFile : public Files {
 public:
  explicit OneFile(std::string bytes) : bytes_(std::move(bytes)) {}
  Result create(const std::string&, const std::string&) override { return {0, EROFS}; }
  Result append(const std::string&) override { return {0, EROFS}; }
  Result write(std::int64_t, std::string_view) override { return {0, EROFS}; }
  int sync(std::int64_t) override { return EROFS; }
  int cut(std::int64_t, std::int64_t) override { return EROFS; }
  int close(std::int64_t) override { return EROFS; }
  int rename(const std::string&, const std::string&) override { return EROFS; }
  int remove(const std::string&) override { return EROFS; }
  int sync_folder(const std::string&) override { return EROFS; }
  Result size(const std::string&) override { return {static_cast<std::int64_t>(bytes_.size()), 0}; }
  Result read(const std::string&, std::string& bytes) override {
    bytes = bytes_;
    return {static_cast<std::int64_t>(bytes.size()), 0};
  }

 private:
  std::string bytes_;
};

void fuzz_model(std::string_view bytes) {
  OneFile files(sealed_anew(std::string(bytes)));
  taken([&] {
    const ModelFile file = load_model(files, "a.model");
    file.storage();
    hold(!taken([&] { file.save_as(files, "b.model", Storage::kBF16); }), "nothing can be written here");
    for (const TokenizerBytes& each : file.tokenizers()) taken([&] { Tokenizer::from(each.bytes); });
    Parameters parameters;  // as if it were the model that it says
    for (const FileTensor* each : file.weights()) {
      if (each->shape.size() > static_cast<std::size_t>(kMaxRank)) continue;
      Shape shape;
      for (const std::int64_t size : each->shape) shape = shape.plus(size);
      if (shape.size() > 10'000) return;
      parameters.add(each->name, Tensor::zeros(shape));
    }
    taken([&] { file.fill(parameters); });
    taken([&] {
      ModelSettings settings;
      const Json config = Json::parse(file.config(), "config");
      for (const auto& [key, value] : config.at("model").object()) set(settings, key, value.text());
      for (const auto& [key, value] : list(settings)) set(settings, key, value);
    });
  });
}

const FuzzTarget target("model", fuzz_model);

}  // namespace
}  // namespace regard
