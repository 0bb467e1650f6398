// Lines and pairs of lines: every kind of file, every fault, and going on from every position.
#include "data/lines.h"

#include <gtest/gtest.h>
#include <unistd.h>
#if REGARD_TEXT_LIBRARIES
#include <zlib.h>
#endif

#include <string>
#include <vector>

#include "regard/error.h"
#include "support/error_of.h"
#include "support/folder.h"

namespace regard {
namespace {

#if REGARD_TEXT_LIBRARIES
std::string packed(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
#endif

std::vector<std::string> all_lines(LineReader& reader) {
  std::vector<std::string> out;
  for (LineReader::Line line; reader.next(line);) out.push_back(line.too_long ? "TOO LONG" : line.text);
  return out;
}

std::vector<std::string> all_pairs(PairReader& reader) {
  std::vector<std::string> out;
  for (LinePair pair; reader.next(pair);) {
    out.push_back(std::to_string(pair.line) + "|" + pair.source + "|" + pair.target);
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST(Lines, EndsAndMarksAreTakenAway) {
  const Folder folder;
  const auto lines = [&](const std::string& bytes) {
    LineReader reader(folder.write("a", bytes));
    return all_lines(reader);
  };
  EXPECT_EQ(lines(""), Texts{});
  EXPECT_EQ(lines("\n"), Texts{""});
  EXPECT_EQ(lines("a"), Texts{"a"});
  EXPECT_EQ(lines("a\nb\n"), (Texts{"a", "b"}));
  EXPECT_EQ(lines("a\r\n\r\nb\r"), (Texts{"a", "", "b"}));
  EXPECT_EQ(lines("\xEF\xBB\xBF"
                  "a\n\xEF\xBB\xBF"),
            (Texts{"a", "\xEF\xBB\xBF"}));
  EXPECT_EQ(lines("\xEF\xBB\xBF"), Texts{""});
  EXPECT_EQ(lines("a\rb\n"), Texts{"a\rb"});
}

TEST(Lines, OneByteTooLongIsTooLongAndNeverHeld) {
  const Folder folder;
  const std::string five(5, 'x'), six(6, 'x'), huge(1 << 20, 'y');
  LineReader reader(folder.write("a", five + "\n" + five + "\r\n" + six + "\n" + huge + "\n" + six + "\r\nend"), 5);
  EXPECT_EQ(all_lines(reader), (Texts{five, five, "TOO LONG", "TOO LONG", "TOO LONG", "end"}));
  LineReader again(folder / "a", 5);
  for (LineReader::Line line; again.next(line);) {
    EXPECT_LT(line.text.capacity(), 64u);
    EXPECT_LT(again.held(), std::size_t{200'000});
  }
}

TEST(Lines, CrossTheBlocksThatAreRead) {
  const Folder folder;
  for (const std::size_t length : {65534u, 65535u, 65536u, 65537u, 131072u}) {
    const std::string line(length, 'a');
    LineReader reader(folder.write("a", line + "\r\n" + line + "\nb"));
    EXPECT_EQ(all_lines(reader), (Texts{line, line, "b"}));
  }
}

TEST(Lines, GoOnFromEveryPosition) {
  const Folder folder;
  const std::string bytes = "\xEF\xBB\xBFone\r\n\ntwo\n" + std::string(70'000, 'z') + "\nlast";
  Texts files = {folder.write("plain", bytes)};
#if REGARD_TEXT_LIBRARIES
  files.push_back(folder.write("packed", packed(bytes)));
#endif
  for (const std::string& file : files) {
    LineReader reader(file);
    std::vector<LinePosition> positions = {reader.position()};
    Texts texts;
    for (LineReader::Line line; reader.next(line);) {
      texts.push_back(line.text);
      positions.push_back(reader.position());
    }
    ASSERT_EQ(texts.size(), 5u);
    for (std::size_t round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < positions.size(); ++i) {
        const std::size_t from = round == 0 ? i : positions.size() - 1 - i;
        LineReader fresh(file);
        LineReader& which = round == 0 ? fresh : reader;  // a new one, and one that has to go back
        which.seek(positions[from]);
        EXPECT_EQ(which.position(), positions[from]);
        LineReader::Line line;
        EXPECT_EQ(which.next(line), from < 5);
        if (from < 5) {
          EXPECT_EQ(line.text, texts[from]);
          EXPECT_EQ(line.number, from + 1);
        }
      }
    }
  }
}

TEST(Lines, AnotherFileUnderTheSameNameIsNoticed) {
  const Folder folder;
  LineReader reader(folder.write("a", "one\ntwo\nthree\n"));
  EXPECT_NE(error_of([&] { reader.seek({2, 6}); }).find("no line ends at byte 6"), std::string::npos);
  EXPECT_NE(error_of([&] { reader.seek({2, 600}); }).find("the file has 14"), std::string::npos);
}

TEST(Lines, WhatCannotBeReadIsNamed) {
  const Folder folder;
  EXPECT_NE(error_of([&] { LineReader reader(folder / "none"); }).find("none': No such file"), std::string::npos);
  EXPECT_NE(error_of([&] { LineReader reader(folder / ""); }).find("Is a directory"), std::string::npos);
  EXPECT_FALSE(error_of([] { LineReader reader(""); }).empty());
}

TEST(Lines, StandardInputIsReadOnce) {
  const Folder folder;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "a\tb\nc\td\ne\tf\n", 12), 12);
  close(ends[1]);
  const int before = dup(0);
  dup2(ends[0], 0);
  {
    PairReader reader({.source = "-"});
    EXPECT_FALSE(reader.can_seek());
    LinePair pair;
    ASSERT_TRUE(reader.next(pair));
    const PairPosition start = {};
    reader.seek({2, 8, 0});  // forward is possible
    ASSERT_TRUE(reader.next(pair));
    EXPECT_EQ(pair.line, 3u);
    EXPECT_NE(error_of([&] { reader.seek(start); }).find("only once"), std::string::npos);
  }
  dup2(before, 0);
  close(before);
  close(ends[0]);
}

#if REGARD_TEXT_LIBRARIES
TEST(Lines, SeveralGzipFilesAfterOneAnotherAreOne) {
  const Folder folder;
  LineReader reader(folder.write("a", packed("one\ntw") + packed("o\n") + packed("") + std::string(512, '\0')));
  EXPECT_EQ(all_lines(reader), (Texts{"one", "two"}));
}

TEST(Lines, GzipThatIsCutAnywhereIsAnError) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 300; ++i) text += std::to_string(i * i) + "\n";
  const std::string whole = packed(text);
  for (std::size_t length = 2; length < whole.size(); ++length) {
    LineReader reader(folder.write("a", whole.substr(0, length)));
    EXPECT_NE(error_of([&] { all_lines(reader); }).find("ends too early"), std::string::npos) << length;
  }
  LineReader good(folder.write("good", whole));
  const Texts lines = all_lines(good);
  int errors = 0;
  for (std::size_t i = 2; i < whole.size(); ++i) {
    std::string bad = whole;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    LineReader reader(folder.write("a", bad));
    Texts got;
    if (error_of([&] { got = all_lines(reader); }).empty()) {
      EXPECT_EQ(got, lines) << i;  // the time in the header, bits that fill up a byte
    } else {
      ++errors;
    }
  }
  EXPECT_GT(errors, 100);
}

TEST(Pairs, ComeFromTwoPackedFilesOrOne) {
  const Folder folder;
  const std::string a = folder.write("a", packed("eins\nzwei\n")), b = folder.write("b", "one\ntwo");
  PairReader reader({.source = a, .target = b});
  EXPECT_EQ(all_pairs(reader), (Texts{"1|eins|one", "2|zwei|two"}));
}

TEST(Pairs, ComeFromJson) {
  const Folder folder;
  const std::string file = folder.write("a.jsonl",
                                        "{\"source\": \"\\u4ed6\", \"n\": [1, {}], \"target\": \"he\\tshe\"}\n"
                                        "{\"source\": \"x\"}\n"
                                        "[]\n"
                                        "{\"source\": \"x\", \"target\": 3}\n"
                                        "\n"
                                        "{\"source\": \"x\", \"target\": \"\\u0000\"}\n"
                                        "{\"source\": \"x\", \"target\": \"y\"\n"
                                        "{\"target\": \"b\", \"source\": \"a\"} {}\n"
                                        "{\"target\": \"b\", \"source\": \"\xff\"}\n" +
                                            std::string(5000, '[') + "\n{\"target\": \"b\", \"source\": \"a\"}");
  PairReader reader({.source = file});
  EXPECT_EQ(all_pairs(reader), (Texts{"1|他|he\tshe", "11|a|b"}));
  EXPECT_EQ(reader.report().count(LineFault::kJson), 7u);
  EXPECT_EQ(reader.report().count(LineFault::kEmpty), 1u);
  EXPECT_EQ(reader.report().count(LineFault::kNul), 1u);
  PairReader other(
      {.source = folder.write("b.jsonl", "{\"zh\":\"a\",\"en\":\"b\"}"), .source_field = "zh", .target_field = "en"});
  EXPECT_EQ(all_pairs(other), Texts{"1|a|b"});
}
#endif

TEST(Pairs, ComeFromColumns) {
  const Folder folder;
  const std::string file = folder.write("a.tsv", "1\ta\tx\n2\tb\ty\textra\r\n3\tc\n\n5\t\tz\n6\td\tw");
  PairReader reader({.source = file, .source_column = 3, .target_column = 2});
  EXPECT_EQ(all_pairs(reader), (Texts{"1|x|a", "2|y|b", "6|w|d"}));
  EXPECT_EQ(reader.report().count(LineFault::kColumns), 1u);
  EXPECT_EQ(reader.report().count(LineFault::kEmpty), 2u);
  EXPECT_EQ(reader.report().read, 6u);
  EXPECT_FALSE(error_of([&] { PairReader bad({.source = file, .source_column = 0}); }).empty());
  EXPECT_FALSE(
      error_of([&] { PairReader bad({.source = file, .target = file, .format = PairFormat::kTable}); }).empty());
  EXPECT_FALSE(error_of([&] { PairReader bad({.source = file, .format = PairFormat::kLines}); }).empty());
  EXPECT_FALSE(error_of([&] { PairReader bad({.source = "-", .target = "-"}); }).empty());
}

TEST(Pairs, EveryFaultIsReportedWithFileAndLine) {
  const Folder folder;
  const std::string a = folder.write("a", std::string("good\nb\xFF\nc\n  \ne\0x\nf\ng\n", 21));
  const std::string b = folder.write("b", "gut\nb\nc\xE4\xBD\nd\ne\n" + std::string(50, 'f') + "\nG\n");
  PairReader reader({.source = a, .target = b, .longest = 20});
  EXPECT_EQ(all_pairs(reader), (Texts{"1|good|gut", "7|g|G"}));
  const LineReport& report = reader.report();
  EXPECT_EQ(report.read, 7u);
  EXPECT_EQ(report.dropped(), 5u);
  EXPECT_EQ(report.text(), "1 line left out: empty: " + a + ":4\n" +                                          //
                               "2 lines left out: not UTF-8: " + a + ":2 (byte 2), " + b + ":3 (byte 2)\n" +  //
                               "1 line left out: with a NUL: " + a + ":5 (byte 2)\n" +                        //
                               "1 line left out: too long: " + b + ":6 (50 bytes, at most 20)\n");
}

TEST(Pairs, OnlyTheFirstPlacesOfAFaultAreKept) {
  const Folder folder;
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "\t\n";
  PairReader reader({.source = folder.write("a", many)});
  EXPECT_EQ(all_pairs(reader), Texts{});
  EXPECT_EQ(reader.report().count(LineFault::kEmpty), 1000u);
  EXPECT_EQ(reader.report().places(LineFault::kEmpty).size(), LineReport::kPlaces);
  EXPECT_TRUE(reader.report().text().ends_with(", …\n"));
}

TEST(Pairs, UnequalLengthsAreAnErrorThatNamesBoth) {
  const Folder folder;
  const std::string a = folder.write("a", "1\n2\n3"), b = folder.write("b", "1\n2\n"), empty = folder.write("c", "");
  const auto read = [&](const std::string& first, const std::string& second) {
    return error_of([&] {
      PairReader reader({.source = first, .target = second});
      all_pairs(reader);
    });
  };
  EXPECT_NE(read(a, b).find("b' ends after line 2, '" + a + "' has 3 lines"), std::string::npos) << read(a, b);
  EXPECT_NE(read(b, a).find("b' ends after line 2, '" + a + "' has 3 lines"), std::string::npos);
  EXPECT_NE(read(empty, a).find("ends after line 0"), std::string::npos);
  EXPECT_EQ(read(empty, empty), "");
}

TEST(Pairs, GoOnFromEveryPosition) {
  const Folder folder;
  std::string a, b;
  for (int i = 0; i < 50; ++i) {
    a += i % 7 == 3 ? "\n" : "a" + std::to_string(i * i * i) + "\n";
    b += "b" + std::to_string(i) + "\r\n";
  }
  const PairFiles files = {.source = folder.write("a", a), .target = folder.write("b", b)};
  PairReader reader(files);
  std::vector<PairPosition> positions = {reader.position()};
  Texts whole;
  for (LinePair pair; reader.next(pair);) {
    whole.push_back(std::to_string(pair.line) + "|" + pair.source + "|" + pair.target);
    positions.push_back(reader.position());
  }
  ASSERT_EQ(whole.size(), 43u);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    PairReader again(files);
    again.seek(positions[i]);
    EXPECT_EQ(all_pairs(again), Texts(whole.begin() + static_cast<std::ptrdiff_t>(i), whole.end()));
  }
}

TEST(Pairs, ALargeFileIsReadInLittleMemory) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "some words of line " + std::to_string(i) + "\tand more of them\n";
  PairReader reader({.source = folder.write("a", text)});
  std::size_t most = 0, count = 0;
  for (LinePair pair; reader.next(pair); ++count) most = std::max(most, reader.held());
  EXPECT_EQ(count, 200'000u);
  EXPECT_GT(text.size(), std::size_t{8} << 20);
  EXPECT_LT(most, std::size_t{300'000});
}

}  // namespace
}  // namespace regard
