#include "io/model_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>

#include "autograd/int8_weights.h"
#include "regard/error.h"
#include "support/damage.h"
#include "support/error_of.h"
#include "support/files.h"
#include "support/paths.h"

namespace regard {
namespace {

Tensor numbers(const Shape& shape, int first) {
  Tensor out = Tensor::zeros(shape);
  for (std::int64_t i = 0; i < out.size(); ++i)
    out.data<float>()[i] = static_cast<float>(first) + 0.1f * static_cast<float>(i);
  return out;
}

void fill(Parameters& parameters, int first = 1) {
  parameters.add("encoder.weight", numbers({4, 6}, first));
  parameters.add("encoder.bias", numbers({6}, -first));
  parameters.add("nothing", Tensor::zeros({0, 3}));
}

constexpr const char* kConfig = R"({"model":"gru-attention","width":6,"rate":0.001})";

ModelContent content(const Parameters& parameters, std::string bytes = "\x01\xff\n pieces") {
  return {.config = kConfig,
          .parameters = &parameters,
          .tokenizers = {{"target", "words", "a\nb\n"}, {"source", "pieces", std::move(bytes)}}};
}

std::string saved(const ModelContent& what) {
  MemoryFiles files;
  save_model(files, "m", what);
  return read_file(files, "m");
}

ModelFile loaded(const std::string& bytes) {
  MemoryFiles files = MemoryFiles::found({{"m", bytes}});
  return load_model(files, "m");
}

TEST(ModelFile, ComesBackBitForBit) {
  const Folder folder;
  Parameters parameters, others;
  fill(parameters, 1);
  fill(others, 2);
  save_model(disk(), folder / "m", content(parameters));
  const ModelFile file = load_model(disk(), folder / "m");
  EXPECT_EQ(file.major(), 1);
  EXPECT_EQ(file.config(), kConfig);
  EXPECT_EQ(file.tokenizer("source").bytes, "\x01\xff\n pieces");
  EXPECT_EQ(file.tokenizer("source").kind, "pieces");
  EXPECT_EQ(file.tokenizer("target").bytes, "a\nb\n");
  EXPECT_THROW(file.tokenizer("both"), Error);
  ASSERT_EQ(file.weights().size(), 3u);
  EXPECT_EQ(file.weights()[0]->name, "encoder.bias");
  const std::uint64_t version = others[0].version;
  file.fill(others);
  EXPECT_GT(others[0].version, version);  // packed copies know
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(std::memcmp(parameters[i].value.raw(), others[i].value.raw(), others[i].value.bytes()), 0);
  }
  EXPECT_EQ(saved(content(parameters)), saved(content(others)));
  EXPECT_EQ(saved(content(parameters)), read_file(disk(), folder / "m"));
}

TEST(ModelFile, ConfigIsChangedAndNothingElse) {
  Parameters parameters;
  fill(parameters);
  MemoryFiles files;
  save_model(files, "m", content(parameters));
  const std::string before = read_file(files, "m");
  const auto change = [](Files& disk, const std::string& to) {
    change_config(disk, "m", [&](const Json& config) {
      EXPECT_EQ(config.at("width").integer(), 6);
      return to;
    });
  };
  EXPECT_NE(error_of([&] { change(files, "[]"); }), "");
  EXPECT_NE(error_of([&] { change(files, "{"); }), "");
  EXPECT_EQ(read_file(files, "m"), before);
  change(files, R"({"width":6,"more":1})");
  ModelContent other = content(parameters);
  other.config = R"({"width":6,"more":1})";
  EXPECT_EQ(read_file(files, "m"), saved(other));
  change(files, kConfig);
  EXPECT_EQ(read_file(files, "m"), before);
  for (std::int64_t call = 0;; ++call) {  // whatever fails, it is the old file or the new one
    FailingFiles failing(files);
    failing.first_failing = call;
    const std::string error = error_of([&] { change(failing, other.config); });
    const std::string now = read_file(files, "m");
    EXPECT_TRUE(now == before || now == saved(other)) << failing.last;
    if (failing.last.empty()) {
      EXPECT_EQ(error, "");
      EXPECT_GT(call, 3);
      break;
    }
    change(files, kConfig);
  }
}

TEST(ModelFile, OtherModelsAreRefusedAndLeftAsTheyAre) {
  Parameters parameters;
  fill(parameters);
  const ModelFile file = loaded(saved(content(parameters)));
  const auto why = [&](const std::function<void(Parameters&)>& make) {
    Parameters model;
    make(model);
    const float before = model[0].value.data<float>()[0];
    const std::string text = error_of([&] { file.fill(model); });
    EXPECT_EQ(model[0].value.data<float>()[0], before);
    return text;
  };
  EXPECT_NE(why([](Parameters& model) {
              fill(model, 2);
              model.add("more", Tensor::zeros({1}));
            }).find("no weights 'more'"),
            std::string::npos);
  EXPECT_NE(why([](Parameters& model) {
              model.add("encoder.weight", Tensor::zeros({4, 6}));
            }).find("does not have"),
            std::string::npos);
  EXPECT_NE(why([](Parameters& model) {
              model.add("encoder.weight", Tensor::zeros({6, 4}));
              model.add("encoder.bias", Tensor::zeros({6}));
              model.add("nothing", Tensor::zeros({0, 3}));
            }).find("the model has f32 [6, 4]"),
            std::string::npos);
}

TEST(ModelFile, ANewerMajorVersionIsRefusedAndANewerMinorOneIsNot) {
  Parameters parameters;
  fill(parameters);
  const std::string good = saved(content(parameters));
  const auto as = [&](const std::string& version) {
    std::string bytes = good;
    bytes.replace(bytes.find("regard-model 1.0"), 16, "regard-model " + version);
    return sealed_anew(bytes);
  };
  EXPECT_NE(error_of([&] { loaded(as("2.0")); }).find("a newer Regard is needed"), std::string::npos);
  EXPECT_EQ(loaded(as("1.9")).minor(), 9);
  for (const char* bad : {"x.0", "1.x", "-.1", "1 0", "..."}) EXPECT_NE(error_of([&] { loaded(as(bad)); }), "") << bad;
  std::string other = good;
  other.replace(other.find("regard-model"), 12, "regard-movie");
  EXPECT_NE(error_of([&] { loaded(sealed_anew(other)); }).find("is not a regard-model file"), std::string::npos);
}

TEST(ModelFile, DamageIsAlwaysSeen) {
  Parameters one, two;
  fill(one, 1);
  fill(two, 2);
  expect_damage_is_refused(saved(content(one)), saved(content(two, "other pieces")),
                           [](const std::string& bytes) { loaded(bytes); });
}

TEST(ModelFile, ForgedFilesDoNoHarm) {
  Parameters one, two;
  fill(one, 1);
  fill(two, 2);
  expect_no_harm_from_forgeries(saved(content(one)), saved(content(two, "other pieces")), [](const std::string& bytes) {
    Parameters model;
    fill(model, 3);
    loaded(bytes).fill(model);
  });
}

TEST(ModelFile, ForgedContentIsRefused) {
  Parameters parameters;
  fill(parameters);
  const std::string good = saved(content(parameters));
  const auto changed = [&](const std::string& from, const std::string& to) {
    EXPECT_EQ(from.size(), to.size());
    std::string bytes = good;
    bytes.replace(bytes.find(from), from.size(), to);
    return error_of([&] { loaded(sealed_anew(bytes)); });
  };
  EXPECT_NE(changed("\"config\":", "\"konfig\":").find("no config"), std::string::npos);
  EXPECT_NE(changed(R"(:\"gru-)", R"(=\"gru-)").find("config of 'm'"), std::string::npos);
  EXPECT_NE(changed(R"("tokenizer/source":"pieces")", R"("tokenizer/sauces":"pieces")").find("of which kind"),
            std::string::npos);
}

TEST(ModelFile, WhatCannotBeReadIsNotWritten) {
  Parameters parameters;
  MemoryFiles files;
  EXPECT_THROW(save_model(files, "m", {.config = "{", .parameters = &parameters}), Error);
  EXPECT_THROW(save_model(files, "m", {.config = "[]", .parameters = &parameters}), Error);
  parameters.add("a/b", Tensor::zeros({1}));
  EXPECT_THROW(save_model(files, "m", {.parameters = &parameters}), Error);
  EXPECT_FALSE(exists(files, "m"));
}

// A new version gets a file of its own here: REGARD_WRITE_MODEL=tests/golden/model-X.Y.safetensors makes it.
TEST(ModelFile, FilesOfEveryVersionLoadForEver) {
  Parameters parameters, same;
  fill(parameters, 7);
  fill(same, 1);
  if (const char* path = std::getenv("REGARD_WRITE_MODEL")) save_model(disk(), path, content(same));
  const ModelFile file = load_model(disk(), source_path("/tests/golden/model-1.0.safetensors"));
  EXPECT_EQ(file.major(), 1);
  EXPECT_EQ(file.minor(), 0);
  EXPECT_EQ(file.config(), kConfig);
  EXPECT_EQ(file.tokenizer("source").bytes, "\x01\xff\n pieces");
  file.fill(parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(std::memcmp(parameters[i].value.raw(), same[i].value.raw(), same[i].value.bytes()), 0);
  }
  // As long as this is the version that is written, these are its bytes.
  EXPECT_EQ(saved(content(same)), read_file(disk(), source_path("/tests/golden/model-1.0.safetensors")));
}

// What can become smaller, and what cannot.
void fill_more(Parameters& parameters, int first) {
  parameters.add("words.table", numbers({5, 3}, first));
  parameters.add("layer.weight", numbers({3, 4}, -first));
  parameters.add("layer.bias", numbers({4}, first));
  parameters.add("norm.weight", numbers({4}, first));
  parameters.add("attention.theta", numbers({2, 4}, first));
  parameters.add("empty.weight", Tensor::zeros({0, 4}));
}

std::string smaller(const std::string& bytes, Storage storage) {
  MemoryFiles files;
  loaded(bytes).save_as(files, "s", storage);
  return read_file(files, "s");
}

TEST(SmallModelFile, MatricesBecomeSmallerAndTheRestStays) {
  Parameters parameters, read;
  fill_more(parameters, 1);
  fill_more(read, 9);
  for (const Storage storage : {Storage::kBF16, Storage::kInt8}) {
    const ModelFile file = loaded(smaller(saved(content(parameters)), storage));
    EXPECT_EQ(file.minor(), 1);
    EXPECT_EQ(file.storage(), storage);
    EXPECT_EQ(file.tokenizer("source").bytes, "\x01\xff\n pieces");
    EXPECT_NE(file.config().find(std::string(R"("rate":0.001,"weights":")") + std::string(name_of(storage)) + "\"}"),
              std::string::npos)
        << file.config();
    ASSERT_EQ(file.weights().size(), parameters.size());
    file.fill(read);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      SCOPED_TRACE(parameters[i].name);
      const bool small = i < 2 || i == 5;
      const float *was = parameters[i].value.data<float>(), *is = read[i].value.data<float>();
      EXPECT_EQ(read[i].int8 != nullptr, small && storage == Storage::kInt8);
      for (std::int64_t j = 0; j < read[i].value.size(); ++j) {
        const bool table = i == 0;
        const std::int64_t columns = parameters[i].value[-1];
        // bf16 has 8 bits of the number, int8 steps of a 127th of the largest in a row (of a table) or a column.
        float peak = 0;
        for (std::int64_t k = 0; small && k < read[i].value.size(); ++k) {
          if (table ? k / columns == j / columns : k % columns == j % columns) peak = std::max(peak, std::abs(was[k]));
        }
        const float allowed = !small ? 0 : storage == Storage::kBF16 ? std::abs(was[j]) / 256 : peak / 254 * 1.001f;
        EXPECT_NEAR(is[j], was[j], allowed);
      }
    }
  }
}

TEST(SmallModelFile, EqualModelsGiveEqualFilesAndNoneIsMadeSmallerTwice) {
  Parameters parameters;
  fill_more(parameters, 1);
  const std::string good = saved(content(parameters));
  for (const Storage storage : {Storage::kBF16, Storage::kInt8}) {
    const std::string small = smaller(good, storage);
    EXPECT_EQ(small, smaller(good, storage));
    EXPECT_NE(error_of([&] { smaller(small, Storage::kBF16); }).find("expected f32"), std::string::npos);
  }
  EXPECT_NE(error_of([&] { smaller(good, Storage::kF32); }), "");
  EXPECT_NE(error_of([] { storage_of("int4"); }).find("expected f32, bf16 or int8"), std::string::npos);
  parameters[0].value.data<float>()[7] = std::nanf("");
  for (const Storage storage : {Storage::kBF16, Storage::kInt8}) {
    EXPECT_NE(error_of([&] { smaller(saved(content(parameters)), storage); }).find("'words.table' are not all finite"),
              std::string::npos);
  }
}

TEST(SmallModelFile, WhatIsUsedInPlaceIsWhatTheFileHas) {
  Parameters parameters, read, plain;
  fill_more(parameters, 1);
  fill_more(read, 9);
  fill_more(plain, 9);
  loaded(smaller(saved(content(parameters)), Storage::kInt8)).fill(read);
  use_int8(parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(std::memcmp(parameters[i].value.raw(), read[i].value.raw(), read[i].value.bytes()), 0);
  }
  loaded(saved(content(plain))).fill(read);  // what comes later has no bytes
  for (const Parameter& each : read) EXPECT_EQ(each.int8, nullptr) << each.name;
}

TEST(SmallModelFile, DamageAndForgeriesAreSeen) {
  Parameters one, two;
  fill_more(one, 1);
  fill_more(two, 2);
  for (const Storage storage : {Storage::kBF16, Storage::kInt8}) {
    const std::string good = smaller(saved(content(one)), storage);
    const std::string other = smaller(saved(content(two, "other pieces")), storage);
    expect_damage_is_refused(good, other, [](const std::string& bytes) { loaded(bytes); });
    expect_no_harm_from_forgeries(good, other, [](const std::string& bytes) {
      Parameters model;
      fill_more(model, 3);
      loaded(bytes).fill(model);
    });
  }
}

TEST(SmallModelFile, ScalesThatAreMissingOrWrongAreOneError) {
  Parameters parameters;
  fill_more(parameters, 1);
  const std::string good = smaller(saved(content(parameters)), Storage::kInt8);
  const auto why = [&](const std::string& from, const std::string& to) {
    EXPECT_EQ(from.size(), to.size());
    std::string bytes = good;
    EXPECT_NE(bytes.find(from), std::string::npos) << from;
    bytes.replace(bytes.find(from), from.size(), to);
    const std::string error = error_of([&] { loaded(sealed_anew(bytes)); });
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    return error;
  };
  const auto says = [](const std::string& error, std::string_view part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  says(why("words.table/scale", "words.table/skale"), "without 'words.table/scale'");
  says(why("layer.weight/scale", "player.weigh/scale"), "without");
  says(why(R"("shape":[1,4])", R"("shape":[4,1])"), "expected F32 [0, 1] or [1, 4]");
  for (const float bad : {std::nanf(""), -1.0f, std::numeric_limits<float>::infinity()}) {
    MemoryFiles files = MemoryFiles::found({{"m", good}});
    const Safetensors content = read_sealed(files, "m", kModelFormat).content;
    const std::string_view scales(reinterpret_cast<const char*>(content.at("words.table/scale").bytes.data()), 5 * 4);
    std::string wrong(scales);
    std::memcpy(wrong.data() + 8, &bad, sizeof(bad));
    says(why(std::string(scales), wrong), "at 2, expected 0 or more");
  }
}

// As above: REGARD_WRITE_SMALL=tests/golden/model-1.1 makes model-1.1-bf16.safetensors and model-1.1-int8.safetensors.
TEST(SmallModelFile, FilesOfThisVersionLoadForEver) {
  for (const Storage storage : {Storage::kBF16, Storage::kInt8}) {
    Parameters same, read;
    fill_more(same, 1);
    fill_more(read, 7);
    const std::string ending = "-" + std::string(name_of(storage)) + ".safetensors";
    const ModelFile plain = loaded(saved(content(same)));
    if (const char* path = std::getenv("REGARD_WRITE_SMALL")) plain.save_as(disk(), path + ending, storage);
    const std::string path = source_path("/tests/golden/model-1.1") + ending;
    const ModelFile file = load_model(disk(), path);
    EXPECT_EQ(file.minor(), 1);
    EXPECT_EQ(file.storage(), storage);
    file.fill(read);
    EXPECT_EQ(read[0].value.data<float>()[14], storage == Storage::kBF16 ? 2.40625f : 2.4f);
    EXPECT_EQ(smaller(saved(content(same)), storage), read_file(disk(), path));
  }
}

}  // namespace
}  // namespace regard
