// What the fuzzer runs, without it: the corpus of every target, and what chance makes of its files.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "fuzz/target.h"
#include "support/cases.h"
#include "support/damage.h"
#include "support/paths.h"

namespace regard {
namespace {

constexpr int kMutations = 1000;  // a target

std::vector<std::string> corpus_of(const std::string& name) {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder = std::filesystem::path(source_path("")) / "tests/fuzz/corpus" / name;
  if (std::filesystem::exists(folder)) {
    for (const auto& each : std::filesystem::directory_iterator(folder)) paths.push_back(each.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> files;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

std::string mutated(std::string bytes, const std::vector<std::string>& all, Chance& chance) {
  for (std::size_t times = 1 + chance.below(3); times > 0; --times) {
    const std::size_t size = bytes.size(), place = chance.below(size + 1);
    switch (chance.below(6)) {
      case 0:
        if (size > 0) flip(bytes, chance.below(8 * size));
        break;
      case 1:
        bytes.resize(place);
        break;
      case 2:
        bytes = spliced(bytes, all[chance.below(all.size())], chance);
        break;
      case 3:
        bytes.insert(place, 1 + chance.below(4), static_cast<char>(static_cast<unsigned char>(chance.below(256))));
        break;
      case 4:
        if (place < size) bytes[place] = "0919<>&\"{}[],:-e.\\\n\r\0 "[chance.below(22)];
        break;
      default:
        bytes.insert(place, bytes.substr(chance.below(size + 1), 64));
        break;
    }
  }
  return bytes;
}

TEST(Fuzz, EveryTargetHasACorpusAndSurvivesIt) {
  ASSERT_GE(FuzzTarget::all().size(), 15u);
  for (const FuzzTarget* target : FuzzTarget::all()) {
    SCOPED_TRACE(target->name);
    const std::vector<std::string> files = corpus_of(target->name);
    ASSERT_FALSE(files.empty());
    for (const std::string& each : files) {
      EXPECT_LE(each.size(), 8192u);
      target->function(each);
    }
    target->function("");
  }
}

TEST(Fuzz, WhatChanceMakesOfTheCorpusDoesNoHarm) {
  for (const FuzzTarget* target : FuzzTarget::all()) {
    SCOPED_TRACE(target->name);
    const std::vector<std::string> files = corpus_of(target->name);
    ASSERT_FALSE(files.empty());
    Chance chance(23);
    for (int i = 0; i < cases(kMutations); ++i) {
      target->function(mutated(files[chance.below(files.size())], files, chance));
    }
  }
}

}  // namespace
}  // namespace regard
