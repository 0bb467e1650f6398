#include "io/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "regard/error.h"
#include "regard/random.h"
#include "support/error_of.h"

namespace regard {
namespace {

Json read(std::string_view text) { return Json::parse(text, "it"); }

TEST(Json, ReadsWhatThereIs) {
  const Json json = read(R"( {"a": [1, -2.5, true, null, "x\u00e9\n"], "b": {"c": {}}, "": 18446744073709551615} )");
  const auto a = json.at("a").array();
  ASSERT_EQ(a.size(), 5u);
  EXPECT_EQ(a[0].integer(), 1);
  EXPECT_EQ(a[0].number(), 1);
  EXPECT_EQ(a[1].number(), -2.5);
  EXPECT_TRUE(a[2].boolean());
  EXPECT_TRUE(a[3].is_null());
  EXPECT_EQ(a[4].text(), "xé\n");
  EXPECT_TRUE(json.at("b").at("c").object().empty());
  EXPECT_EQ(json.at("").natural(), 18446744073709551615u);
  EXPECT_FALSE(json.find("d").has_value());
  const auto members = json.object();
  ASSERT_EQ(members.size(), 3u);
  EXPECT_EQ(members[1].first, "b");
}

TEST(Json, IsWrittenBackWithoutBlanks) {
  const char* text = R"({"a":[1,-2.5,true,null,"x\n"],"b":{"c":{}},"":18446744073709551615})";
  EXPECT_EQ(read(text).to_json(), text);
  EXPECT_EQ(read(" [ 1 , { } ] ").to_json(), "[1,{}]");
}

TEST(Json, ErrorsNameThePlaceAndWhatWasExpected) {
  const Json json = read(R"({"layers": [{"width": 1.5}, {"width": -3}, "long text"]})");
  const auto layers = json.at("layers").array();
  EXPECT_EQ(error_of([&] { layers[0].at("width").integer(1, 9); }),
            "it: layers[0].width: 1.5, expected a whole number from 1 to 9");
  EXPECT_EQ(error_of([&] { layers[1].at("width").natural(); }),
            "it: layers[1].width: -3, expected a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(error_of([&] { layers[1].at("width").number(0, 1); }),
            "it: layers[1].width: -3, expected a number from 0 to 1");
  EXPECT_EQ(error_of([&] { layers[2].object(); }), "it: layers[2]: \"long text\", expected an object");
  EXPECT_EQ(error_of([&] { layers[0].at("height"); }), "it: layers[0]: there is no \"height\"");
  EXPECT_EQ(error_of([&] { json.text(); }), "it: an object, expected a text");
  EXPECT_EQ(error_of([&] { read(R"({"a\nb": 1})").at("a\nb").text(); }), R"(it: a\nb: 1, expected a text)");
  EXPECT_EQ(error_of([&] { json.allow_only({"layer"}); }), "it: unknown key \"layers\"");
}

TEST(Json, NumbersThatDoNotFitAreRefused) {
  EXPECT_THROW(read("18446744073709551615").integer(), Error);
  EXPECT_THROW(read("9223372036854775808").integer(), Error);
  EXPECT_EQ(read("9223372036854775807").integer(), 9223372036854775807);
  EXPECT_EQ(read("-9223372036854775808").integer(), std::numeric_limits<std::int64_t>::min());
  for (const char* text : {"1e999", "18446744073709551616", "01", "+1", "1.", ".5", "NaN", "Infinity", "0x1"}) {
    EXPECT_THROW(read(text), Error) << text;
  }
  EXPECT_THROW(read("\"1\"").integer(), Error);
  EXPECT_THROW(read("1.0").integer(), Error);
}

TEST(Json, WhatIsNotJsonIsRefused) {
  for (const char* text : {"", " ", "{", "}", "[1,]", "{\"a\":1,}", "{\"a\" 1}", "{a:1}", "1 2", "\"\\x\"", "\"\xff\"",
                           "\"\\ud800\"", "nul", "[1", "\"", "{\"a\":1}x", "'a'"}) {
    EXPECT_NE(error_of([&] { read(text); }).find("it: "), std::string::npos) << text;
  }
  EXPECT_THROW(read(std::string_view("\0", 1)), Error);
  EXPECT_THROW(read("\"a\nb\""), Error);
}

TEST(Json, AKeyThatStandsTwiceIsRefused) {
  EXPECT_EQ(error_of([&] { read(R"({"a":1,"b":2,"a":3})"); }), "it: the key \"a\" stands twice");
  EXPECT_THROW(read(R"({"x":{"a":1,"\u0061":3}})"), Error);
  EXPECT_NO_THROW(read(R"([{"a":1},{"a":2}])"));
}

TEST(Json, ThirtyTwoLevelsAndNoMore) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_NO_THROW(read(nested(32)));
  EXPECT_EQ(error_of([&] { read(nested(33)); }), "it: more than 32 levels");
  EXPECT_EQ(error_of([&] { read(nested(40)); }), "it: more than 32 levels");
  EXPECT_EQ(error_of([&] { read(nested(100'000)); }), "it: more than 32 levels");
  EXPECT_NE(error_of([&] { read(std::string(100'000, '[')); }), "");
  std::string objects;
  for (int i = 0; i < 200; ++i) objects += "{\"a\":";
  EXPECT_NE(error_of([&] { read(objects + "1" + std::string(200, '}')); }), "");
}

TEST(Json, MillionsOfValuesAreRefusedBeforeTheyTakeAllMemory) {
  std::string many = "[";
  for (std::size_t i = 0; i <= Json::kMostValues; ++i) many += "0,";
  many += "0]";
  EXPECT_EQ(error_of([&] { read(many); }), "it: more than 4000000 values");
}

TEST(JsonWriter, WritesWhatTheReaderReads) {
  const std::string odd = std::string("quote\" back\\ line\n tab\t nul") + '\0' + "\x1f é 中 😀";
  JsonWriter out;
  out.begin_object().key("a").begin_array().value(1).value(-2.5).value(true).value(odd).begin_array().end_array();
  out.end_array().key(odd).begin_object().end_object().key("n").value(std::uint64_t{18446744073709551615u});
  out.key("x").value(std::nan("")).end_object();
  const Json json = read(out.text());
  EXPECT_EQ(json.at("a").array()[3].text(), odd);
  EXPECT_TRUE(json.at("a").array()[4].array().empty());
  EXPECT_TRUE(json.find(odd).has_value());
  EXPECT_EQ(json.at("n").natural(), 18446744073709551615u);
  EXPECT_TRUE(json.at("x").is_null());
  EXPECT_EQ(JsonWriter().begin_array().value(1).value("b").end_array().text(), "[1,\"b\"]");
}

TEST(JsonWriter, NumbersComeBackToTheLastBit) {
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const std::uint64_t bits =
        (std::uint64_t{random_bits(RandomKey(5), 2 * i)} << 32) | random_bits(RandomKey(5), 2 * i + 1);
    const double number = std::bit_cast<double>(bits);
    if (!std::isfinite(number)) continue;
    EXPECT_EQ(read(JsonWriter().value(number).text()).number(), number) << number;
  }
  EXPECT_EQ(JsonWriter().value(0.1).text(), "0.1");
  EXPECT_EQ(JsonWriter().value(-0.0).text(), "-0.0");
  EXPECT_TRUE(std::signbit(Json::parse("-0.0", "this").number()));
}

TEST(JsonWriter, BytesThatAreNotTextBecomeAMark) {
  EXPECT_EQ(json_quote("a\xff"
                       "b\xc3"),
            "\"a\xef\xbf\xbd"
            "b\xef\xbf\xbd\"");
  EXPECT_EQ(json_quote("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");  // a surrogate
}

}  // namespace
}  // namespace regard
