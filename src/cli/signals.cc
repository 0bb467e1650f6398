#include "cli/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>
#include <thread>

namespace regard::cli {
namespace {

std::atomic<int> first{0};

void wait_for(const sigset_t& set, std::stop_source& source) {
  for (;;) {
    int number = 0;
    if (sigwait(&set, &number) != 0) return;
    int before = 0;
    if (!first.compare_exchange_strong(before, number)) _exit(128 + before);
    constexpr std::string_view kText = "regard: stopping; once more ends at once\n";
    if (isatty(STDERR_FILENO) == 1) [[maybe_unused]]
      const auto written = write(STDERR_FILENO, kText.data(), kText.size());
    source.request_stop();
  }
}

}  // namespace

std::stop_token stop_on_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction now;
    // A shell that starts a program in the background makes it ignore Ctrl-C: that stays so.
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::stop_source source;
  std::thread([set, source]() mutable { wait_for(set, source); }).detach();  // waits as long as the process lives
  return source.get_token();
}

int signal_received() { return first.load(); }

}  // namespace regard::cli
