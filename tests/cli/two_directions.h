// Models of both directions that learned next to nothing, in a folder of their own, for tests of commands.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/folder.h"
#include "support/shell.h"

namespace regard {

class TwoDirections : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Folder;
    for (const char* pair : {"zh-en", "en-zh"}) {
      const Outcome made = in(std::string("$regard train translate --builtin ") + pair +
                              " --lines 60 --model transformer-tiny --hidden 16 --ffn 16 --heads 2 --encoder-layers 1 "
                              "--decoder-layers 2 --tokenizer words --stop-after 2u --valid-every 2u --best-by loss "
                              "--out " +
                              pair + ".model 2>&1");
      ASSERT_EQ(made.status, 0) << made.out;
    }
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static Outcome in(const std::string& command) { return shell("cd " + folder_->path() + " && " + command); }
  inline static Folder* folder_ = nullptr;
};

}  // namespace regard
