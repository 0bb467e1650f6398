// --trace of the commands that have it: what is printed stays the same, and what is written can be read.
#include "view/trace.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cli/two_directions.h"
#include "support/paths.h"
#include "view/derive.h"

namespace regard {
namespace {

class TraceOption : public TwoDirections {
 protected:
  static void SetUpTestSuite() {
    TwoDirections::SetUpTestSuite();
    in("$regard corpus zh-en --split test --lines 12 > pairs.tsv; cut -f1 pairs.tsv > zh; cut -f2 pairs.tsv > en; "
       "sed -i '3s/.*//' zh; paste -d '\\n' zh en > both");
  }
  static std::string path(const std::string& name) { return *folder_ / name; }
};

TEST_F(TraceOption, ChangesNothingThatIsPrinted) {
  struct Case {
    std::string command;
    std::size_t items;
    std::string more = "";  // what is for --trace alone
  };
  const std::string first = "$regard translate --max-length 12 -m zh-en.model ";
  const Case all[] = {
      {first + "< zh", 11},
      {first + "< zh", 11, " --trace-maps all --erasure --trace-beam"},
      {first + "--n-best 3 < zh", 33, " --trace-beam"},
      {first + "< zh", 11, " --trace-maps cross"},
      {first + "< zh", 11, " --trace-maps norms"},
      {first + "--force en < zh", 11},
      {first + "--force en < zh", 11, " --trace-maps all"},
      {first + "--force en --scores < zh", 11, " --erasure"},
      {first + "--sample --n-best 2 --seed 3 < zh", 22},
      {first + "--alignment hard --layer 0 --head 1 --max-line 5 < zh", 11, " --trace-maps all --erasure --trace-beam"},
      {first + "--max-line 5 < zh", 11, " --trace-maps norms"},
      {first + "-m zh-en.model --int8 --map '他们在看。'", 1, " --trace-maps norms"},
      {"REGARD_MODELS=. $regard translate --max-length 12 < both", 23},
      {"$regard align -m zh-en.model pairs.tsv", 12, " --trace-maps norms --erasure"},
      {"$regard align -m zh-en.model -m en-zh.model --join --alignment soft pairs.tsv", 12},
      {"$regard eval translate -m zh-en.model --test pairs.tsv --beam 2", 12, " --trace-beam --erasure"},
  };
  for (const Case& each : all) {
    SCOPED_TRACE(each.command);
    const std::size_t at = each.command.find(" <");  // options come before the redirection
    const std::string end = at == std::string::npos ? "" : each.command.substr(at);
    const Outcome plain = in(each.command + " 2>&1");
    const Outcome traced = in(each.command.substr(0, at) + " --trace a.trace" + each.more + end + " 2>&1");
    EXPECT_EQ(traced.status, 0) << traced.out;
    EXPECT_EQ(traced.status, plain.status);
    EXPECT_TRUE(traced.out == plain.out) << traced.out;
    const Trace trace = Trace::read(path("a.trace"));
    ASSERT_EQ(trace.items.size(), each.items);
    for (const TraceItem& item : trace.items) {
      const bool norms = each.more.find("norms") != std::string::npos;
      const bool whole = norms || each.more.find("all") != std::string::npos;
      ASSERT_EQ(item.maps.size(), whole ? 3u : 1u);
      EXPECT_EQ(item.axes.size(), whole ? 3u : 2u);
      EXPECT_EQ(item.maps[0].name, "cross");
      for (const TraceMap& map : item.maps) EXPECT_EQ(map.norms.defined(), norms) << map.name;
      EXPECT_TRUE(item.log_probability);
      EXPECT_EQ(item.erasure.has_value(), each.more.find("erasure") != std::string::npos);
      if (item.title.find(" of ") == std::string::npos || item.title.find(", 1 of") != std::string::npos) {
        EXPECT_EQ(item.beam.has_value(), each.more.find("beam") != std::string::npos);
      }
    }
  }
}

TEST_F(TraceOption, ItemsSayWhichLineTheyAreOfInTheirOrder) {
  in("REGARD_MODELS=. $regard translate --max-length 12 --n-best 2 --trace a.trace < both");
  const Trace trace = Trace::read(path("a.trace"));
  ASSERT_EQ(trace.items.size(), 46u);
  EXPECT_EQ(trace.items[0].title, "line 1, 1 of 2");
  EXPECT_EQ(trace.items[1].title, "line 1, 2 of 2");
  EXPECT_EQ(trace.items[2].title, "line 2, 1 of 2");
  EXPECT_EQ(trace.items[8].title, "line 6, 1 of 2");  // the fifth is empty
  EXPECT_NE(trace.items[0].axis("source").text, trace.items[2].axis("source").text);
  EXPECT_EQ(trace.items[0].axis("source").text, trace.items[1].axis("source").text);
  in("$regard translate -m zh-en.model --layer 0 --head 1 --trace a.trace '他们在看。'");
  const TraceChoice choice = choice_of(Trace::read(path("a.trace")).items.at(0));
  EXPECT_EQ(choice.layer, 0);
  EXPECT_EQ(choice.head, 1);
}

TEST_F(TraceOption, WrongRequestsAreOneLineAndLeaveWhatIsThere) {
  folder_->write("old.trace", "old");
  const auto refuses = [](const std::string& command, std::string_view part) {
    const Outcome outcome = in("$regard " + command + " 2>&1 >/dev/null");
    EXPECT_NE(outcome.status, 0) << command;
    EXPECT_EQ(lines(outcome.out), 1) << outcome.out;
    EXPECT_TRUE(has(outcome, part)) << command << ": " << outcome.out;
    EXPECT_EQ(folder_->read("old.trace"), "old");
  };
  refuses("translate -m zh-en.model --erasure x", "translate: --erasure is for --trace");
  refuses("translate -m zh-en.model --trace-beam x", "translate: --trace-beam is for --trace");
  refuses("translate -m zh-en.model --trace-maps cross x", "translate: --trace-maps is for --trace");
  refuses("translate -m zh-en.model --trace old.trace --trace-maps some x", "--trace-maps");
  refuses("translate -m zh-en.model --sample --trace-beam --trace old.trace x", "not with --sample or --force");
  refuses("translate -m zh-en.model --trace no/where.trace x", "cannot create 'no/where.trace.tmp'");
  refuses("translate -m zh-en.model --layer 7 --trace old.trace x", "layer 7, the model has 2 (0 to 1)");
  refuses("translate -m none.model --trace old.trace x", "none.model");
  refuses("align -m zh-en.model --erasure pairs.tsv", "align: --erasure is for --trace");
  refuses("eval translate --test pairs.tsv --hypotheses en --trace old.trace", "not of --hypotheses");
}

TEST(TraceDocument, ThePythonExampleWritesOne) {
  std::ifstream file(source_path("/docs/trace.md"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string mark = "```python\n";
  const std::size_t begin = text.find(mark) + mark.size();
  ASSERT_NE(text.find(mark), std::string::npos);
  const Folder folder;
  folder.write("example.py", text.substr(begin, text.find("```", begin) - begin));
  const Outcome ran = shell("cd " + folder.path() + " && python3 example.py 2>&1");
  ASSERT_EQ(ran.status, 0) << ran.out;
  const Trace trace = Trace::read(folder / "mine.trace");
  ASSERT_EQ(trace.items.size(), 1u);
  const TraceItem& item = trace.items[0];
  EXPECT_EQ(item.axis("source").label(2), "看");
  EXPECT_EQ(item.axis("target").label(1), "look");
  EXPECT_EQ(item.map("cross").weights.data<float>()[0], 0.9f);
  EXPECT_EQ(top(chosen_map(item), 1, 1).at(0).column, 2);
}

}  // namespace
}  // namespace regard
