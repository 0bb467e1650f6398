// `regard serve` as its users meet it: started, asked, told to stop.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include "support/folder.h"
#include "support/http_client.h"
#include "support/paths.h"
#include "support/shell.h"

namespace regard {
namespace {

// The program in a process of its own. It has told where it listens when this is made.
class Program {
 public:
  explicit Program(const std::string& model) {
    std::array<int, 2> pipe_ends = {};
    if (pipe(pipe_ends.data()) != 0) return;
    process_ = fork();
    if (process_ == 0) {
      dup2(pipe_ends[1], STDOUT_FILENO);
      close(pipe_ends[0]);
      close(pipe_ends[1]);
      execl(build_path("/regard").c_str(), "regard", "serve", "-m", model.c_str(), "--port", "0", nullptr);
      _exit(127);
    }
    close(pipe_ends[1]);
    for (char letter = 0; read(pipe_ends[0], &letter, 1) == 1 && letter != '\n';) told_ += letter;
    close(pipe_ends[0]);
    const std::size_t colon = told_.rfind(':');
    port_ = colon == std::string::npos ? 0 : std::atoi(told_.c_str() + colon + 1);
  }
  ~Program() {
    if (process_ > 0) kill(process_, SIGKILL), wait();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const std::string& told() const { return told_; }
  int port() const { return port_; }
  void signal(int number) const { kill(process_, number); }
  int wait() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t process_ = -1;
  std::string told_;
  int port_ = 0;
};

class Serve : public testing::Test {
 protected:
  void SetUp() override {
    if (shell("$regard serve -m zh-en=/nowhere 2>&1").out.find("without Boost") != std::string::npos) {
      GTEST_SKIP() << "built without Boost";
    }
  }
  static void SetUpTestSuite() {
    folder_ = new Folder;
    const Outcome trained =
        shell("cd '" + folder_->path() +
              "' && $regard train translate --builtin zh-en --lines 60 --tokenizer words --model gru-attention "
              "--hidden 16 --embedding 12 --batch-tokens 300 --stop-after 12u --valid-every 100u --rate 0.01 "
              "--out zh-en.model 2>&1");
    ASSERT_EQ(trained.status, 0) << trained.out;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string model() { return *folder_ / "zh-en.model"; }

 private:
  inline static Folder* folder_ = nullptr;
};

TEST_F(Serve, TranslatesUntilItIsToldToStop) {
  for (const int number : {SIGTERM, SIGINT}) {
    Program program(model());
    EXPECT_TRUE(program.told().starts_with("serving zh-en on http://127.0.0.1:")) << program.told();
    {
      Client client(program.port());
      const std::string answer = client.ask(post("/translate", R"({"q": "他们在看。"})"));
      ASSERT_EQ(status_of(answer), 200) << answer;
      const Outcome same = shell("$regard translate -m '" + model() + "' '他们在看。'");
      EXPECT_NE(answer.find(same.out.substr(0, same.out.size() - 1)), std::string::npos) << answer;
    }
    program.signal(number);
    EXPECT_EQ(program.wait(), 0);
  }
}

TEST_F(Serve, ASecondSignalEndsItAtOnce) {
  Program program(model());
  Client client(program.port());
  ASSERT_EQ(status_of(client.ask("GET /health HTTP/1.1\r\n\r\n")), 200);
  client.send("POST /translate HTTP/1.1\r\nContent-Length: 100\r\n\r\n");  // and never sends them
  ASSERT_EQ(status_of(Client(program.port()).ask("GET /health HTTP/1.1\r\n\r\n")), 200);
  program.signal(SIGTERM);
  while (Client(program.port()).connected()) {  // it has understood
  }
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(), 128 + SIGTERM);
}

TEST_F(Serve, WhatItCannotDoItSaysInALine) {
  const Outcome missing = shell("$regard serve -m zh-en=/nowhere/m.model 2>&1");
  EXPECT_EQ(missing.status, 2);
  EXPECT_EQ(lines(missing.out), 1) << missing.out;
  const Outcome unnamed = shell("$regard serve -m /nowhere/m.model 2>&1");
  EXPECT_EQ(unnamed.status, 2);
  EXPECT_TRUE(has(unnamed, "-m zh-en=/nowhere/m.model")) << unnamed.out;
  const Outcome host = shell("$regard serve -m '" + model() + "' --port 0 --host nowhere.example 2>&1");
  EXPECT_EQ(host.status, 2);
  EXPECT_TRUE(has(host, "is no address")) << host.out;
  EXPECT_EQ(shell("$regard serve --port 70000 2>&1").status, 2);
  for (const char* option : {"--api-key ''", "--delay nan", "--request-seconds -1", "--workers 1025"}) {
    const Outcome wrong =
        shell("timeout -s KILL 9 $regard serve -m zh-en='" + model() + "' --port 0 " + option + " 2>&1");
    EXPECT_EQ(wrong.status, 2) << option;
    EXPECT_EQ(lines(wrong.out), 1) << wrong.out;
  }
  EXPECT_TRUE(has(shell("$regard serve --help"), "--api-key"));
}

}  // namespace
}  // namespace regard
