// `regard view`.
#include <gtest/gtest.h>

#include "io/json.h"
#include "support/folder.h"
#include "support/pixels.h"
#include "support/shell.h"
#include "support/traces.h"
#include "support/xml.h"

namespace regard {
namespace {

std::string write_trace(const Folder& folder, const std::string& name, const TraceItem& item) {
  Trace trace;
  trace.items = {item};
  trace.write(folder / name);
  return folder / name;
}

TEST(ViewCommand, ShowsATraceInTheTerminal) {
  const Folder folder;
  const std::string path = write_trace(folder, "a.trace", sentence_item());
  const Outcome plain = shell("$regard view " + path + " --layer 0 --head 0 2>&1");
  EXPECT_EQ(plain.status, 0) << plain.out;
  EXPECT_TRUE(has(plain, "cross, layer 0, head 0 · rows: target, columns: source\n")) << plain.out;
  EXPECT_TRUE(has(plain, "  reading │  ░░▓▓\n")) << plain.out;
  EXPECT_TRUE(has(plain, "erasure: the log-probability falls by 4.210 without the 3 words")) << plain.out;
  const Outcome colored = shell("COLORTERM=truecolor $regard view " + path + " --color always 2>&1");
  EXPECT_TRUE(has(colored, "They / are │\033[38;2;")) << colored.out;
  const Outcome row = shell("$regard view " + path + " --view row --token reading --layer 0 --head 0 2>&1");
  EXPECT_TRUE(has(row, "看   0.634 ▇▇▇")) << row.out;
}

TEST(ViewCommand, WritesEveryKindOfFile) {
  const Folder folder;
  const std::string path = write_trace(folder, "a.trace", sentence_item());
  for (const char* ending : {"svg", "png", "pdf", "html", "txt", "json", "npy"}) {
    const Outcome outcome = shell("cd " + folder.path() + " && $regard view a.trace -o x." + ending + " 2>&1");
    EXPECT_EQ(outcome.status, 0) << outcome.out;
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(wrong_in_xml(folder.read("x.svg")), "");
  EXPECT_GT(read_png(folder.read("x.png")).width, 400u);
  EXPECT_TRUE(folder.read("x.pdf").starts_with("%PDF-"));
  EXPECT_TRUE(folder.read("x.html").starts_with("<!doctype html>"));
  EXPECT_EQ(folder.read("x.txt").find('\033'), std::string::npos);
  EXPECT_EQ(Json::parse(folder.read("x.json"), "x.json").at("weights").array().size(), 6u);
  EXPECT_TRUE(folder.read("x.npy").starts_with("\x93NUMPY"));
}

TEST(ViewCommand, DrawsTheViewThatWasAskedFor) {
  const Folder folder;
  write_trace(folder, "a.trace", sentence_item());
  write_trace(folder, "p.trace", picture_item());
  write_trace(folder, "s.trace", sound_item());
  for (const char* call :
       {"a.trace --view lines", "a.trace --view heads --words", "a.trace --view row --token 2 --theme dark",
        "a.trace --view text", "a.trace --view entropy", "a.trace --with a.trace", "p.trace --view image",
        "p.trace --view image --token square", "p.trace --map regions --view image", "s.trace --view sound",
        "a.trace --map decoder --rollout", "a.trace --map decoder --norms --layer 0", "a.trace --links '0-0 2-2'"}) {
    const Outcome outcome = shell("cd " + folder.path() + " && $regard view " + call +
                                  " -o x.svg 2>&1 && $regard view " + call + " -o x.png");
    EXPECT_EQ(outcome.status, 0) << call << outcome.out;
    EXPECT_EQ(wrong_in_xml(folder.read("x.svg")), "") << call;
  }
}

TEST(ViewCommand, MistakesAreOneLineThatSaysWhatIsKnown) {
  const Folder folder;
  write_trace(folder, "a.trace", sentence_item());
  folder.write("b.trace", "no trace");
  const std::pair<const char*, const char*> cases[] = {
      {"a.trace -o x.gif", ".svg, .png, .pdf, .html, .txt, .json, .npy"},
      {"a.trace --view map", "known are matrix, lines"},
      {"a.trace --layer 2", "it has 2 layers, 0 to 1"},
      {"a.trace --head 9", "it has 4 heads, 0 to 3"},
      {"a.trace --item 1", "no item 1"},
      {"a.trace --map self", "it has 'cross', 'decoder'"},
      {"a.trace --view row --token see", "no row 'see'"},
      {"a.trace --view heads", "-o map.svg"},
      {"a.trace --view difference", "--with OTHER.trace"},
      {"a.trace --view lines --with a.trace", "--with is for --view difference"},
      {"a.trace --links 0:0 -o x.svg", "expected pairs of numbers like 0-0 1-2"},
      {"a.trace --links '0-99' -o x.svg", "--links 0-99 is outside of the map"},
      {"a.trace --links '0-0'", "--links are marked in pictures"},
      {"a.trace --token reading", "--token is for --view row, text and image, not matrix"},
      {"a.trace -m ''", "view: --model is empty"},
      {"a.trace --view image -o x.svg", "not a grid or boxes"},
      {"a.trace --theme blue", "--theme"},
      {"nowhere.trace", "nowhere.trace"},
      {"b.trace", "b.trace"},
      {"", "what"},
  };
  for (const auto& [call, said] : cases) {
    const Outcome outcome = shell("cd " + folder.path() + " && $regard view " + call + " 2>&1 >/dev/null");
    EXPECT_NE(outcome.status, 0) << call;
    EXPECT_LT(outcome.status, 3) << call << outcome.out;
    EXPECT_EQ(lines(outcome.out), 1) << call << outcome.out;
    EXPECT_TRUE(has(outcome, said)) << call << ": " << outcome.out;
  }
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a.trace", "b.trace"}));  // nothing was left behind
}

TEST(ViewCommand, WithoutTheModuleSvgIsDrawnAndPngSaysWhatIsMissing) {
  const Folder folder;
  write_trace(folder, "a.trace", sentence_item());
  const Outcome outcome =
      shell("cd " + folder.path() +
            " && cp $regard alone && ./alone view a.trace -o x.svg && ./alone view a.trace -o x.png 2>&1");
  EXPECT_EQ(outcome.status, 2) << outcome.out;
  EXPECT_TRUE(has(outcome, "needs the module regard_draw.so, which was not found or cannot be opened ("))
      << outcome.out;
  EXPECT_EQ(lines(outcome.out), 1) << outcome.out;
  EXPECT_EQ(wrong_in_xml(folder.read("x.svg")), "");
}

TEST(ViewCommand, LooksDirectlyAtAText) {
  const Folder folder;
  const auto run = [&](const std::string& command) {
    return shell("cd " + folder.path() + " && { " + command + "; } 2>&1");
  };
  const Outcome trained =
      run("$regard train translate --builtin zh-en --lines 60 --tokenizer words --model gru-attention --hidden 16 "
          "--embedding 12 --batch-tokens 300 --stop-after 12u --valid-every 100u --rate 0.01 --out m.model");
  ASSERT_EQ(trained.status, 0) << trained.out;
  const Outcome found = run("$regard view -m m.model '他们在看。'");
  EXPECT_EQ(found.status, 0) << found.out;
  EXPECT_TRUE(found.out.starts_with("他们在看。 → ")) << found.out;
  EXPECT_TRUE(has(found, "cross, layer 0")) << found.out;
  const Outcome given =
      run("$regard view -m m.model '他们在看。' 'They are looking.' --view lines -o x.svg && cat x.svg");
  EXPECT_EQ(given.status, 0) << given.out;
  EXPECT_TRUE(has(given, ">They</text>")) << given.out;
  EXPECT_TRUE(has(given, "class=\"erasure\"")) << given.out;
  // Without -m: the model in the box.
  const Outcome boxed =
      run("mkdir box && mv m.model box/zh-en.model && REGARD_MODELS=$PWD/box $regard view '他们在看。'");
  EXPECT_EQ(boxed.status, 0) << boxed.out;
  EXPECT_TRUE(has(boxed, "cross, layer 0")) << boxed.out;
  EXPECT_EQ(run("$regard view -m nowhere.model '他们在看。'").status, 2);
}

TEST(ViewCommand, ATextWithTooManyWeightsIsAnErrorAndNotTheEndOfMemory) {
  const Outcome outcome =
      shell("$regard view -m " + source_path("/models/en-zh.model") + " $(head -c 2000 /dev/zero | tr '\\0' a) 2>&1");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(lines(outcome.out), 1) << outcome.out.substr(0, 1000);
  EXPECT_TRUE(has(outcome, "too many weights, expected 512 MB at most")) << outcome.out.substr(0, 1000);
}

}  // namespace
}  // namespace regard
