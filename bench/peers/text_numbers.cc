// What a model's tokenisers make of text, for peers that train on the same numbers:
//
//     text_numbers MODEL batches PAIRS.tsv 2,1 1500       the batches of its training, a line of JSON each
//     text_numbers MODEL encode < lines                   the source's numbers, a line each, with their end
//     text_numbers MODEL decode < numbers                 the target's text
//
// The first line of `batches` tells begin, end and how many words there are.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "data/batches.h"
#include "io/file.h"
#include "io/model_file.h"
#include "tasks/translation_pairs.h"

namespace regard {
namespace {

std::shared_ptr<const Tokenizer> tokenizer(const ModelFile& file, const char* name) {
  return Tokenizer::from(file.tokenizer(name).bytes);
}

void print_batches(const ModelFile& file, const std::string& pairs, const std::string& columns, std::int64_t count) {
  const auto source = tokenizer(file, "source"), target = tokenizer(file, "target");
  const Json training = Json::parse(file.config(), "config").at("training");
  const auto number = [&](const char* key) { return std::stoll(std::string(training.at(key).text())); };
  const auto comma = columns.find(',');
  check(comma != std::string::npos, "columns '", columns, "', expected two like 2,1");
  const BatchSettings ends = ends_of(*target);
  fmt::print("{{\"begin\": {}, \"end\": {}, \"source_words\": {}, \"target_words\": {}}}\n", ends.begin, ends.end,
             source->size(), target->size());
  PairBatches batches(std::make_unique<PairReader>(PairFiles{.source = pairs,
                                                             .format = PairFormat::kTable,
                                                             .source_column = std::stoll(columns.substr(0, comma)),
                                                             .target_column = std::stoll(columns.substr(comma + 1))}),
                      source, target,
                      {.tokens = number("batch_tokens"),
                       .sentences = number("batch_sentences"),
                       .longest = number("longest_text"),
                       .seed = static_cast<std::uint64_t>(number("seed")),
                       .source_end = true});
  std::vector<SequencePair> taken;
  for (std::int64_t i = 0; i < count;) {
    if (!batches.next(taken)) continue;  // the next epoch
    std::string line;
    for (const SequencePair& pair : taken) {
      line += fmt::format("{}[[{}], [{}]]", line.empty() ? "" : ", ", fmt::join(pair.source, ", "),
                          fmt::join(pair.target, ", "));
    }
    fmt::print("[{}]\n", line);
    ++i;
  }
}

int run(const std::vector<std::string>& words) {
  check(words.size() == 5 || words.size() == 2,
        "expected MODEL batches PAIRS.tsv N,N COUNT, MODEL encode or MODEL decode");
  const ModelFile file = load_model(disk(), words[0]);
  if (words[1] == "batches") {
    print_batches(file, words.at(2), words.at(3), std::stoll(words.at(4)));
    return 0;
  }
  const bool encode = words[1] == "encode";
  const auto with = tokenizer(file, encode ? "source" : "target");
  for (std::string line; std::getline(std::cin, line);) {
    if (encode) {
      fmt::print("{}\n", fmt::join(source_ids(*with, line), " "));
    } else {
      std::vector<std::int32_t> numbers;
      std::istringstream in(line);
      for (std::int32_t number = 0; in >> number;) numbers.push_back(number);
      fmt::print("{}\n", with->decode(numbers));
    }
  }
  return 0;
}

}  // namespace
}  // namespace regard

int main(int count, char** values) {
  try {
    return regard::run({values + 1, values + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "text_numbers: %s\n", error.what());
    return 2;
  }
}
