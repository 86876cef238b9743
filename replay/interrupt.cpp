#include "replay/interrupt.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <thread>

#include "replay/checkpoint/unfinished.hpp"

namespace ebb::replay {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
constexpr int kShellOffset = 128;

int writing_end = -1;
std::atomic<bool> interrupted{false};

/// Nothing but what a handler may do: the thread at the other end of the pipe does the rest.
void on_signal(int signal) {
  if (interrupted.exchange(true)) ::_exit(kShellOffset + signal);
  const int saved = errno;
  const auto byte = static_cast<unsigned char>(signal);
  if (::write(writing_end, &byte, 1) != 1) ::_exit(kShellOffset + signal);
  errno = saved;
}

const char* name_of(int signal) { return signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : "SIGHUP"; }

void wait_for_signal(int reading_end) {
  unsigned char signal = 0;
  ssize_t got = 0;
  do {
    got = ::read(reading_end, &signal, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) return;
  std::fprintf(stderr, "ebb-replay: interrupted by %s\n", name_of(signal));
  checkpoint::remove_unfinished();
  ::_exit(kShellOffset + signal);
}

}  // namespace

void watch_interrupts() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;  // then signals end it as they always do
  writing_end = ends[1];
  std::thread(wait_for_signal, ends[0]).detach();
  for (const int signal : kSignals) {
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace ebb::replay
