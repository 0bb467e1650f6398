#include "io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "regard/error.h"
#include "regard/nn/initial.h"

namespace regard {
namespace {

std::string file(std::string_view header, std::string_view data = "") {
  const std::uint64_t length = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out.append(header).append(data);
}

std::string written(const FileMetadata& metadata, std::vector<FileTensor> tensors) {
  in_file_order(tensors);
  std::string out = safetensors_header(metadata, tensors);
  for (const FileTensor& each : tensors)
    out.append(reinterpret_cast<const char*>(each.bytes.data()), each.bytes.size());
  return out;
}

std::string error_of(const std::string& bytes) {
  try {
    Safetensors::parse(bytes, "it");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile);
    return error.what();
  }
  return "";
}

TEST(Safetensors, WhatIsWrittenIsReadBitForBit) {
  const Tensor f32 = normal({3, 5}, 1, RandomKey(1)), f64 = f32.to(DType::kF64), bf16 = f32.to(DType::kBF16);
  const Tensor i8 = Tensor::of<std::int8_t>({3}, {-128, 0, 127}), i32 = Tensor::of<std::int32_t>({2, 1, 1}, {-1, 7});
  const Tensor none = Tensor::zeros({0, 4}), one = Tensor::of({}, {2.5f});
  const std::vector<std::int64_t> numbers = {-1, std::int64_t{1} << 62};
  const std::string text("any\0bytes", 9);
  const std::string bytes =
      written({{"b", "2"}, {"a", "\"1\" é"}},
              {file_tensor("f32", f32), file_tensor("f64", f64), file_tensor("bf16", bf16), file_tensor("i8", i8),
               file_tensor("i32", i32), file_tensor("none", none), file_tensor("one", one), file_bytes("bytes", text),
               file_integers("numbers", numbers)});
  const Safetensors read = Safetensors::parse(bytes, "it");
  EXPECT_EQ(read.tensors().size(), 9u);
  EXPECT_EQ(read.metadata().at("a"), "\"1\" é");
  const std::pair<const char*, Tensor> all[] = {{"f32", f32}, {"f64", f64},   {"bf16", bf16}, {"i8", i8},
                                                {"i32", i32}, {"none", none}, {"one", one}};
  for (const auto& [name, expected] : all) {
    const Tensor got = tensor_of(read.at(name));
    EXPECT_EQ(got.shape(), expected.shape()) << name;
    EXPECT_EQ(got.dtype(), expected.dtype()) << name;
    EXPECT_EQ(std::memcmp(got.raw(), expected.raw(), got.bytes()), 0) << name;
  }
  EXPECT_EQ(bytes_of(read.at("bytes")), text);
  EXPECT_EQ(integers_of(read.at("numbers")), numbers);
  EXPECT_THROW(tensor_of(read.at("bytes")), Error);
  EXPECT_THROW(tensor_of(read.at("numbers")), Error);
  EXPECT_THROW(bytes_of(read.at("i8")), Error);
  EXPECT_THROW(integers_of(read.at("i32")), Error);
  EXPECT_THROW(read.at("f16"), Error);
}

TEST(Safetensors, TheSameTensorsGiveTheSameBytesInAnyOrderAndStandOnTheirWidth) {
  const Tensor wide = Tensor::zeros({3}, DType::kF64), narrow = Tensor::zeros({3}, DType::kI8),
               f32 = Tensor::zeros({3});
  const FileTensor a = file_tensor("a", narrow), b = file_tensor("b", f32), c = file_tensor("c", wide);
  EXPECT_EQ(written({}, {a, b, c}), written({}, {c, a, b}));
  const std::string bytes = written({}, {a, b, c});
  EXPECT_EQ(bytes.size() % 8, 39u % 8);
  EXPECT_EQ(bytes.substr(8), R"({"__metadata__":{},"c":{"dtype":"F64","shape":[3],"data_offsets":[0,24]},)"
                             R"("b":{"dtype":"F32","shape":[3],"data_offsets":[24,36]},)"
                             R"("a":{"dtype":"I8","shape":[3],"data_offsets":[36,39]}}  )" +
                                 std::string(39, '\0'));
}

TEST(Safetensors, FilesOfOthersAreRead) {  // no metadata, blanks, another order
  const Safetensors read = Safetensors::parse(
      file(
          R"({ "y" : {"data_offsets":[4,6],"shape":[2],"dtype":"I8"}, "x":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}  )",
          "abcdef"),
      "it");
  EXPECT_EQ(read.tensors()[0].name, "x");
  EXPECT_EQ(tensor_of(read.at("y")).data<std::int8_t>()[1], 'f');
  EXPECT_TRUE(Safetensors::parse(file("{}"), "it").tensors().empty());
}

TEST(Safetensors, HostileHeadersAreRefused) {
  const auto with = [](const std::string& entry, std::string_view data = "12345678") {
    return error_of(file("{\"t\":" + entry + "}", data));
  };
  EXPECT_EQ(with(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "");
  const std::pair<const char*, const char*> bad[] = {
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})", "expected 4 bytes"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0,9]})", "data_offsets"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", "data_offsets"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})", "expected a whole number"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0.0,8]})", "expected a whole number"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,8]})", "data_offsets"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[]})", "data_offsets"},
      {R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", "expected a whole number"},
      {R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]})", "expected a whole number"},
      {R"({"dtype":"F32","shape":[1152921504606846976,1152921504606846976],"data_offsets":[0,0]})", "beyond all"},
      {R"({"dtype":"F32","shape":[1073741824,1073741824,16],"data_offsets":[0,0]})", "beyond all"},
      {R"({"dtype":"F32","shape":[0,1073741824,1073741824,16],"data_offsets":[0,8]})", "expected 0 bytes"},
      {R"({"dtype":"F16","shape":[4],"data_offsets":[0,8]})", "unknown dtype"},
      {R"({"dtype":4,"shape":[2],"data_offsets":[0,8]})", "expected a text"},
      {R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,8],"data_offsets":[0,8]})", "rank 9"},
      {R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})", "expected an array"},
      {R"({"dtype":"F32","data_offsets":[0,8]})", "there is no"},
      {R"({"dtype":"F32","shape":[2]})", "there is no"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1})", "unknown key"},
      {R"({"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]})", "twice"},
      {R"([])", "expected an object"},
      {R"(null)", "expected an object"},
  };
  for (const auto& [entry, why] : bad)
    EXPECT_NE(with(entry).find(why), std::string::npos) << entry << ": " << with(entry);
}

TEST(Safetensors, HolesOverlapsAndLeftoversAreRefused) {
  const auto two = [](const char* a, const char* b, std::string_view data) {
    const std::string front = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)";
    return error_of(file(front + a + R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}", data));
  };
  EXPECT_EQ(two("[0,4]", "[4,8]", "12345678"), "");
  EXPECT_EQ(two("[4,8]", "[0,4]", "12345678"), "");
  EXPECT_NE(two("[0,4]", "[0,4]", "1234"), "");
  EXPECT_NE(two("[0,4]", "[3,7]", "1234567"), "");
  EXPECT_NE(two("[0,4]", "[5,9]", "123456789"), "");
  EXPECT_NE(two("[1,5]", "[5,9]", "123456789"), "");
  EXPECT_NE(two("[0,4]", "[4,8]", "123456789"), "");
  EXPECT_NE(two("[0,4]", "[4,8]", "1234567"), "");
}

TEST(Safetensors, WhatIsNoFileOfThisKindIsRefused) {
  for (const std::string& bytes :
       {std::string(), std::string("x"), std::string(8, '\0'), std::string(100, '\0'), std::string(100, '\xff'),
        file(" {}"), file("[]"), file(""), file("{"), file("{}x"), file("{}", "x"), file(R"({"__metadata__":{"a":1}})"),
        file(R"({"__metadata__":[]})"), file(R"({"a":{},"a":{}})"), file("{\"\xff\":{}}"),
        std::string("\x03\0\0\0\0\0\0\0{}", 10)}) {
    EXPECT_NE(error_of(bytes), "") << bytes;
  }
  EXPECT_NE(error_of(file("{}" + std::string(16 << 20, ' '))).find("at most 16777216"), std::string::npos);
  EXPECT_NE(error_of(file(R"({"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})")), "");
  EXPECT_NE(error_of(file("{\"" + std::string(513, 'n') + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})")),
            "");
  EXPECT_EQ(error_of(file("{\"" + std::string(512, 'n') + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})")),
            "");
}

TEST(Safetensors, AHundredThousandTensorsAndNoMore) {
  const auto many = [](int count) {
    std::string header = "{";
    for (int i = 0; i < count; ++i) {
      header += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
    }
    return file(header + "}");
  };
  EXPECT_EQ(error_of(many(100'000)), "");
  EXPECT_NE(error_of(many(100'002)), "");
}

TEST(Safetensors, NamesThatAFileCannotHoldAreRefusedWhenWriting) {
  for (const std::string& name :
       {std::string(), std::string("__metadata__"), std::string(513, 'n'), std::string("\xff")}) {
    EXPECT_THROW(safetensors_header({}, {file_bytes(name, "")}), Error) << name;
  }
}

}  // namespace
}  // namespace regard
