// regard info, as its users meet it.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "io/json.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/shell.h"

namespace regard {
namespace {

const std::string kModel = source_path("/tests/golden/model-1.0.safetensors");

TEST(Info, TellsWhatIsInAModel) {
  const Outcome told = shell("cd " + source_path("/tests/golden && $regard info model-1.0.safetensors"));
  EXPECT_EQ(told.status, 0);
  EXPECT_EQ(told.out,
            "file     model-1.0.safetensors, 702 bytes\n"
            "format   regard-model 1.0\n"
            "digest   d82c42a807f6cf945ce8234b8ff0dbbe, as it should be\n"
            "weights  30 in 3 tensors\n"
            "\n"
            "config\n"
            "  model  gru-attention\n"
            "  width  6\n"
            "  rate   0.001\n"
            "\n"
            "tokenisers\n"
            "  source  pieces, 10 bytes\n"
            "  target  words, 4 bytes\n"
            "\n"
            "tensors\n"
            "  encoder.bias    F32  [6]\n"
            "  encoder.weight  F32  [4, 6]\n"
            "  nothing         F32  [0, 3]\n");
}

TEST(Info, SpeaksJson) {
  const Outcome told = shell("$regard info --json " + kModel);
  EXPECT_EQ(told.status, 0);
  const Json json = Json::parse(told.out, "it");
  EXPECT_EQ(json.at("format").text(), "regard-model");
  EXPECT_EQ(json.at("config").at("width").integer(), 6);
  EXPECT_EQ(json.at("weights").integer(), 30);
  EXPECT_EQ(json.at("tensors").array().size(), 5u);
}

TEST(Info, WhatIsNoModelIsOneLine) {
  const Folder folder;
  std::string bytes = read_file(disk(), kModel);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(folder / "damaged") << bytes;
  std::ofstream(folder / "text") << "just text";
  for (const char* name : {"damaged", "text", "none", "."}) {
    const Outcome outcome = shell("$regard info " + (folder / name) + " 2>&1");
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    EXPECT_EQ(lines(outcome.out), 1) << outcome.out;
  }
  EXPECT_TRUE(has(shell("$regard info " + (folder / "damaged") + " 2>&1"), "is damaged"));
}

}  // namespace
}  // namespace regard
