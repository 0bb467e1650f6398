#include "io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regard/error.h"
#include "support/cases.h"
#include "support/error_of.h"
#include "support/files.h"

namespace regard {
namespace {

void put(Files& files, const std::string& path, std::string_view bytes) {
  replace_file(files, path, [&](FileWriter& out) { out.write(bytes); });
}

TEST(ReplaceFile, WritesAndReplaces) {
  const Folder folder;
  put(disk(), folder / "a", "one");
  EXPECT_EQ(read_file(disk(), folder / "a"), "one");
  put(disk(), folder / "a", std::string(3'000'000, 'x'));
  EXPECT_EQ(read_file(disk(), folder / "a").size(), 3'000'000u);
  put(disk(), folder / "a", "");
  EXPECT_EQ(read_file(disk(), folder / "a"), "");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(ReplaceFile, WhatIsNoFileStaysWhatItIs) {  // root may rename a file over /dev/null
  const Folder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  ASSERT_EQ(symlink("pipe", (folder / "link").c_str()), 0);
  for (const char* name : {"pipe", "link"}) {
    EXPECT_EQ(error_of([&] { put(disk(), folder / name, "x"); }),
              "cannot replace '" + (folder / name) + "': Invalid argument (a device or a pipe? expected a file)");
  }
  struct stat about;
  ASSERT_EQ(stat((folder / "pipe").c_str(), &about), 0);
  EXPECT_TRUE(S_ISFIFO(about.st_mode));
  EXPECT_NE(error_of([&] { put(disk(), folder.path(), "x"); }).find("Is a directory"), std::string::npos);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"link", "pipe"}));
}

TEST(ReplaceFile, OfALinkItIsTheFileItLeadsTo) {
  const Folder folder;
  put(disk(), folder / "file", "old");
  ASSERT_EQ(symlink("file", (folder / "link").c_str()), 0);
  put(disk(), folder / "link", "new");
  EXPECT_EQ(read_file(disk(), folder / "file"), "new");
  struct stat about;
  ASSERT_EQ(lstat((folder / "link").c_str(), &about), 0);
  EXPECT_TRUE(S_ISLNK(about.st_mode));
  ASSERT_EQ(symlink("none", (folder / "loose").c_str()), 0);  // one that leads nowhere becomes a file
  put(disk(), folder / "loose", "new");
  EXPECT_EQ(read_file(disk(), folder / "loose"), "new");
}

TEST(ReplaceFile, ATemporaryLeftByAKilledProcessIsInNobodysWay) {
  const Folder folder;
  put(disk(), temporary_of(folder / "a"), "half of something longer than what comes");
  put(disk(), folder / "a", "new");
  EXPECT_EQ(read_file(disk(), folder / "a"), "new");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(ReplaceFile, ATemporaryIsNeverTheFileThatALinkLeadsTo) {
  const Folder folder;
  put(disk(), folder / "precious", "precious");
  ASSERT_EQ(symlink("precious", temporary_of(folder / "a").c_str()), 0);
  ASSERT_EQ(link((folder / "precious").c_str(), temporary_of(folder / "b").c_str()), 0);
  ASSERT_EQ(symlink("nothing", temporary_of(folder / "c").c_str()), 0);
  ASSERT_EQ(mkfifo(temporary_of(folder / "d").c_str(), 0600), 0);
  for (const char* name : {"a", "b", "c", "d"}) {
    put(disk(), folder / name, "new");
    EXPECT_EQ(read_file(disk(), folder / name), "new");
    struct stat about;
    ASSERT_EQ(lstat((folder / name).c_str(), &about), 0);
    EXPECT_TRUE(S_ISREG(about.st_mode)) << name;
  }
  EXPECT_EQ(read_file(disk(), folder / "precious"), "precious");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a", "b", "c", "d", "precious"}));
  ASSERT_EQ(mkdir(temporary_of(folder / "e").c_str(), 0700), 0);
  EXPECT_NE(error_of([&] { put(disk(), folder / "e", "new"); }).find("Is a directory"), std::string::npos);
}

TEST(ReplaceFile, WhoMayReadAndWriteStaysAsItWas) {
  const Folder folder;
  const mode_t before = umask(022);
  const auto mode = [&](const char* name) {
    struct stat about;
    EXPECT_EQ(stat((folder / name).c_str(), &about), 0);
    return about.st_mode & 07777;
  };
  put(disk(), folder / "a", "one");
  EXPECT_EQ(mode("a"), 0644u);
  ASSERT_EQ(symlink("a", (folder / "link").c_str()), 0);
  for (const mode_t each : {0600, 0640, 0666, 0444, 0755}) {
    ASSERT_EQ(chmod((folder / "a").c_str(), each), 0);
    for (const char* name : {"a", "link"}) {
      put(disk(), temporary_of(folder / "a"), "left by a killed process");  // for all to read
      replace_file(disk(), folder / name, [&](FileWriter& out) {
        EXPECT_EQ(mode("a.tmp"), each);  // while it is written, too
        out.write("two");
      });
      EXPECT_EQ(mode("a"), each) << name;
    }
  }
  umask(before);
}

TEST(ReplaceFile, WhateverCallFailsTheOldFileStaysAndNoTemporaryIsLeft) {
  const std::string fresh(5000, 'n');
  int failures = 0;
  for (const int error : {EIO, ENOSPC, EACCES, EROFS}) {
    for (std::int64_t n = 0;; ++n) {
      const Folder folder;
      const std::string path = folder / "model";
      put(disk(), path, "old");
      FailingFiles files(disk());
      files.first_failing = n;
      files.error = error;
      files.most_bytes = 1000;
      const std::string text = error_of([&] { put(files, path, fresh); });
      if (files.last.empty()) break;  // there is no n-th call
      ++failures;
      EXPECT_EQ(folder.names(), std::vector<std::string>{"model"}) << files.last;
      // After the rename it is the new one: whole, but perhaps not for ever. Closing what is synced cannot lose it.
      const bool renamed = files.last == "sync_folder" || files.last == "close";
      EXPECT_EQ(read_file(disk(), path), renamed ? fresh : "old") << files.last;
      if (files.last == "close") continue;
      EXPECT_NE(text.find("model"), std::string::npos) << text;
      EXPECT_NE(text.find(std::generic_category().message(error)), std::string::npos) << text;
    }
  }
  EXPECT_GE(failures, 4 * 9);  // create, five writes, sync, rename, folder
}

TEST(ReplaceFile, WhatLastsSoonIsNotWaitedForAndWhateverFailsTheOldFileStays) {
  const std::string fresh(5000, 'n');
  int failures = 0;
  for (std::int64_t n = 0;; ++n) {
    const Folder folder;
    const std::string path = folder / "trace";
    put(disk(), path, "old");
    FailingFiles files(disk());
    files.first_failing = n;
    files.error = ENOSPC;
    files.most_bytes = 1000;
    const auto write = [&] {
      replace_file(
          files, path, [&](FileWriter& out) { out.write(fresh); }, Lasting::kSoon);
    };
    const std::string text = error_of(write);
    if (files.last.empty()) break;
    ++failures;
    EXPECT_TRUE(files.last != "sync" && files.last != "sync_folder") << files.last;
    EXPECT_EQ(folder.names(), std::vector<std::string>{"trace"}) << files.last;
    EXPECT_EQ(read_file(disk(), path), files.last == "close" ? fresh : "old") << files.last;
    EXPECT_NE(text.find("trace"), std::string::npos) << text;
  }
  EXPECT_EQ(failures, 8);  // create, five writes, rename, close
}

TEST(ReplaceFile, WhatTheWriterThrowsComesThroughAndTheOldFileStays) {
  const Folder folder;
  put(disk(), folder / "a", "old");
  EXPECT_THROW(replace_file(disk(), folder / "a",
                            [](FileWriter& out) {
                              out.write("half");
                              throw std::runtime_error("no more");
                            }),
               std::runtime_error);
  EXPECT_EQ(read_file(disk(), folder / "a"), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(ReplaceFile, ADiskThatTakesNothingIsFull) {
  const Folder folder;
  FailingFiles files(disk());
  files.most_bytes = 0;
  EXPECT_NE(error_of([&] { put(files, folder / "a", "text"); }).find("No space left"), std::string::npos);
  EXPECT_TRUE(folder.names().empty());
}

TEST(ReplaceFile, WhenThePowerGoesItIsTheOldOneOrTheNewOne) {
  const std::string old_bytes(2100, 'o'), new_bytes(4700, 'n');
  int old_found = 0, new_found = 0;
  for (int i = 0; i < cases(2000); ++i) {
    const RandomKey key = RandomKey(11).at(static_cast<std::uint64_t>(i));
    MemoryFiles memory;
    put(memory, "model", old_bytes);
    // The power goes after so many calls, or after all of them.
    FailingFiles files(memory);
    files.first_failing = static_cast<std::int64_t>(random_below(key, 0, 11));
    files.failing = std::numeric_limits<std::int64_t>::max();
    bool done = true;
    try {
      put(files, "model", new_bytes);
    } catch (const Error&) {
      done = false;
    }
    const auto found = memory.after_power_loss(key.at(1));
    ASSERT_TRUE(found.contains("model")) << i;
    const std::string& bytes = found.at("model");
    ASSERT_TRUE(bytes == new_bytes || (!done && bytes == old_bytes)) << i << ": " << bytes.size() << " bytes";
    (bytes == new_bytes ? new_found : old_found) += 1;
    MemoryFiles next = MemoryFiles::found(found);  // and life goes on
    put(next, "model", "third");
    ASSERT_EQ(read_file(next, "model"), "third");
    ASSERT_FALSE(exists(next, temporary_of("model")));
  }
  EXPECT_GT(old_found, 0);
  EXPECT_GT(new_found, 0);
}

TEST(ReplaceFile, WithoutSyncingThePowerLossWouldShow) {  // the disk of the test above is able to do harm
  int bad = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    MemoryFiles memory;
    const std::string bytes(4700, 'n');
    const auto handle = memory.create("model.tmp", "").value;
    FileWriter(memory, "model.tmp", handle).write(bytes);
    memory.rename("model.tmp", "model");
    const auto found = memory.after_power_loss(RandomKey(12).at(i));
    bad += found.contains("model") && found.at("model") != bytes ? 1 : 0;
  }
  EXPECT_GT(bad, 20);
}

TEST(BufferedWriter, WritesWhatItWasGivenInFewCalls) {
  const Folder folder;
  std::string all;
  FailingFiles files(disk());
  replace_file(files, folder / "a", [&](FileWriter& out) {
    BufferedWriter buffered(out);
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1'000'000}, std::size_t{262'143}}) {
      for (int i = 0; i < 20; ++i) {
        const std::string some(size, static_cast<char>('a' + i));
        buffered.write(std::as_bytes(std::span(some)));
        all += some;
      }
    }
    buffered.flush();
  });
  EXPECT_TRUE(read_file(disk(), folder / "a") == all);
  const std::int64_t calls = files.calls;
  EXPECT_LT(calls, 110);
  const auto small = [](Files& to, const std::string& path) {
    replace_file(to, path, [](FileWriter& out) {
      BufferedWriter buffered(out);
      for (int i = 0; i < 5000; ++i) buffered.write(std::as_bytes(std::span("small", 5)));
      buffered.flush();
    });
  };
  small(files, folder / "b");
  EXPECT_EQ(read_file(disk(), folder / "b").size(), 25'000u);
  EXPECT_LT(files.calls - calls, 8);
  FailingFiles full(disk());
  full.first_failing = 1;  // behind create
  full.error = ENOSPC;
  EXPECT_NE(error_of([&] { small(full, folder / "c"); }).find("No space left"), std::string::npos);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a", "b"}));
}

TEST(Disk, ErrorsNameTheFileAndTheReason) {
  const Folder folder;
  EXPECT_EQ(error_of([&] { read_file(disk(), folder / "none"); }),
            "cannot read '" + (folder / "none") + "': No such file or directory");
  EXPECT_NE(error_of([&] { read_file(disk(), folder.path()); }).find("Is a directory"), std::string::npos);
  EXPECT_NE(error_of([&] { read_file(disk(), "/dev/zero"); }).find("/dev/zero"), std::string::npos);
  EXPECT_NE(error_of([&] { put(disk(), folder / "no/a", "x"); }).find("No such file"), std::string::npos);
  put(disk(), folder / "file", "x");
  EXPECT_NE(error_of([&] { put(disk(), folder / "file/a", "x"); }).find("Not a directory"), std::string::npos);
  EXPECT_NE(error_of([&] { put(disk(), folder / std::string(300, 'n'), "x"); }).find("too long"), std::string::npos);
}

TEST(Disk, WhereOneMayNotWriteNothingChanges) {
  const Folder folder;
  put(disk(), folder / "model", "old");
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  const pid_t child = fork();
  if (child == 0) {  // root may write anywhere
    if (geteuid() == 0 && setuid(65534) != 0) _exit(3);
    try {
      put(disk(), folder / "model", "new");
    } catch (const Error& error) {
      _exit(std::string(error.what()).find("Permission denied") != std::string::npos ? 0 : 1);
    }
    _exit(2);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(chmod(folder.path().c_str(), 0755), 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(read_file(disk(), folder / "model"), "old");
}

TEST(Disk, WhatOneProcessWritesAnotherCannotOpen) {
  const Folder folder;
  const std::string path = folder / "log";
  const Files::Result first = disk().append(path);
  ASSERT_EQ(first.error, 0);
  EXPECT_EQ(disk().append(path).error, EBUSY);
  EXPECT_EQ(disk().create(path, "").error, EBUSY);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"log"});
  EXPECT_EQ(disk().close(first.value), 0);
  const Files::Result second = disk().append(path);
  EXPECT_EQ(second.error, 0);
  disk().close(second.value);
}

TEST(Disk, AppendsAndCuts) {
  const Folder folder;
  for (const char* line : {"one\n", "two\n"}) {
    FileWriter out(disk(), folder / "log", disk().append(folder / "log").value);
    out.write(line);
    out.close();
  }
  EXPECT_EQ(read_file(disk(), folder / "log"), "one\ntwo\n");
  FileWriter out(disk(), folder / "log", disk().append(folder / "log").value);
  out.cut(4);
  out.write("three\n");
  out.close();
  EXPECT_EQ(read_file(disk(), folder / "log"), "one\nthree\n");
  EXPECT_EQ(disk().size(folder / "log").value, 10);
}

TEST(Disk, KnowsWhatExists) {
  const Folder folder;
  put(disk(), folder / "a", "");
  EXPECT_TRUE(exists(disk(), folder / "a"));
  EXPECT_TRUE(exists(disk(), folder.path()));
  EXPECT_FALSE(exists(disk(), folder / "b"));
  EXPECT_FALSE(exists(disk(), folder / "a/b"));
  EXPECT_FALSE(exists(disk(), folder / "c/b"));
}

TEST(Disk, FoldersOfPaths) {
  EXPECT_EQ(folder_of("a"), ".");
  EXPECT_EQ(folder_of("/a"), "/");
  EXPECT_EQ(folder_of("x/y/a"), "x/y");
}

}  // namespace
}  // namespace regard
