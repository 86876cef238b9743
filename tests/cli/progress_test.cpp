// Progress: what a terminal gets, with a clock of the test's own; and that the program writes it to terminals alone.
#include "planner/progress.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_ebb.hpp"

using namespace ebb;
using namespace ebb::test;

namespace {

const std::string kErase = "\r\033[K";

struct Screen {
  double now = 100;
  std::vector<std::string> writes;
  ProgressLine line;

  explicit Screen(std::size_t columns = 80)
      : line("search",
             {[this] { return Seconds{now}; }, [this](std::string_view text) { writes.emplace_back(text); }, columns}) {
  }
  void at(double seconds, const Progress& progress) {
    now = 100 + seconds;
    line.tick(progress);
  }
};

struct Terminal {
  int code = -1;    // exit status
  int signal = 0;   // or what it died of
  std::string err;  // what the terminal got
};

/// `command` (shell syntax) with standard error on a terminal of its own, standard output nowhere. `interrupt`:
/// SIGINT once something is shown.
Terminal on_terminal(const std::string& command, const char* term, bool interrupt = false) {
  int master = -1, slave = -1;
  REQUIRE(::openpty(&master, &slave, nullptr, nullptr, nullptr) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(master);
    ::setpgid(0, 0);
    ::dup2(slave, STDERR_FILENO);
    const int nowhere = ::open("/dev/null", O_RDWR);
    ::dup2(nowhere, STDIN_FILENO);
    ::dup2(nowhere, STDOUT_FILENO);
    ::setenv("TERM", term, 1);
    if (::chdir(EBB_SOURCE_DIR) == 0) ::execl("/bin/bash", "bash", "-c", command.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(slave);
  Terminal terminal;
  char buffer[4096];
  for (ssize_t n; (n = ::read(master, buffer, sizeof buffer)) > 0;) {
    terminal.err.append(buffer, static_cast<std::size_t>(n));
    if (interrupt) ::kill(-child, SIGINT);
    interrupt = false;
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  ::close(master);
  if (WIFEXITED(status)) terminal.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) terminal.signal = WTERMSIG(status);
  return terminal;
}

/// Every recorded case `times` times over: ten take a second or so, and nowhere less than 0.2 s.
std::string slow_score(int times) {
  const fs::path file = scratch() / ("score-" + std::to_string(times) + ".json");
  if (!fs::exists(file)) {
    auto recorded = nlohmann::json::parse(text_of_file(EBB_SOURCE_DIR "/tests/data/megatron/recorded.json"));
    const nlohmann::json once = recorded.at("cases");
    for (int copy = 1; copy < times; ++copy)
      for (nlohmann::json run : once) {
        run["id"] = run.at("id").get<std::string>() + "-" + std::to_string(copy);
        recorded["cases"].push_back(run);
      }
    std::ofstream(file) << recorded.dump();
  }
  return "exec '" EBB_BINARY "' score " + file.string() + " ";
}

}  // namespace

TEST_CASE("nothing in the first 0.2 s, then at most a line in 0.1 s, erased at the end") {
  Screen screen;
  screen.at(0.0, {1, 96, ""});
  screen.at(0.199, {20, 96, ""});
  CHECK(screen.writes.empty());
  CHECK_FALSE(screen.line.shown());
  screen.at(0.2, {24, 96, ""});
  REQUIRE(screen.writes.size() == 1);
  CHECK(screen.writes[0] == kErase + "search 24/96  eta 1 s");  // 24 took 0.2 s, 72 take 0.6
  screen.at(0.25, {30, 96, ""});
  screen.at(0.29, {32, 96, ""});
  CHECK(screen.writes.size() == 1);
  screen.at(0.31, {37, 96, "best 2.31 s @ 671M"});
  REQUIRE(screen.writes.size() == 2);
  CHECK(screen.writes[1] == kErase + "search 37/96  best 2.31 s @ 671M  eta 0 s");
  screen.line.finish();
  REQUIRE(screen.writes.size() == 3);
  CHECK(screen.writes[2] == kErase);
  screen.line.finish();
  CHECK(screen.writes.size() == 3);
}

TEST_CASE("what is done before it is due leaves no trace") {
  Screen screen;
  screen.at(0.1, {});
  screen.line.finish();
  CHECK(screen.writes.empty());
}

TEST_CASE("an unknown total shows the time so far, a long one minutes") {
  Screen screen;
  screen.at(75, {});
  CHECK(screen.writes.back() == kErase + "search  1 min 15 s");
  screen.at(100, {1, 5, ""});
  CHECK(screen.writes.back() == kErase + "search 1/5  eta 6 min 40 s");
}

TEST_CASE("a line stays narrower than the terminal, or it could not be erased") {
  Screen screen(20);
  screen.at(1, {1, 2, std::string(100, 'x')});
  CHECK(screen.writes.back().size() == kErase.size() + 19);
}

TEST_CASE("a terminal gets progress and loses it again; the answer is what it is in a pipe") {
  const Terminal terminal = on_terminal(slow_score(10), "xterm");
  INFO(terminal.err);
  CHECK(terminal.code == 0);
  CHECK(terminal.err.rfind(kErase + "score ", 0) == 0);
  CHECK(terminal.err.size() > 2 * kErase.size());
  CHECK(terminal.err.substr(terminal.err.size() - kErase.size()) == kErase);
  CHECK_FALSE(holds(terminal.err, "\n"));
}

TEST_CASE("no progress with --quiet, on a dumb terminal, and in a pipe") {
  CHECK(on_terminal(slow_score(10) + "--quiet", "xterm").err.empty());
  CHECK(on_terminal(slow_score(10) + "-q", "xterm").err.empty());
  CHECK(on_terminal(slow_score(10), "dumb").err.empty());
  CHECK(on_terminal("exec 2>/dev/null; " + slow_score(10), "xterm").err.empty());
  // A file, which run_ebb reads afterwards.
  CHECK(run_ebb("--version >/dev/null; (" + slow_score(10) + ")").err.empty());
}

TEST_CASE("what is done in less than 0.2 s shows nothing on a terminal either") {
  CHECK(on_terminal("exec '" EBB_BINARY "' --version", "xterm").err.empty());
}

TEST_CASE("interrupted, ebb leaves a clean line and dies of the signal, which shells call 130") {
  const Terminal terminal = on_terminal(slow_score(100), "xterm", true);
  CHECK(terminal.signal == SIGINT);
  CHECK(terminal.err.substr(terminal.err.size() - kErase.size()) == kErase);
  const Outcome shell = run_ebb("--version >/dev/null; bash -c 'kill -INT $$'; echo $?");
  CHECK(shell.out == "130\n");
}

TEST_CASE("--verbose says what was read and how long each part took, on standard error") {
  const Outcome quiet = run_ebb("plan " + kMeasured);
  const Outcome verbose = run_ebb("plan " + kMeasured + " -v");
  CHECK(quiet.err.empty());
  CHECK(verbose.out == quiet.out);
  CHECK(holds(verbose.err, "ebb: reading " + kMeasured + " took "));
  CHECK(holds(verbose.err, "ebb: search took "));
  check_rejected("plan " + kMeasured + " -v -q", 2, "exclude");
}

TEST_CASE("colour on a terminal unless NO_COLOR, --no-color or TERM=dumb") {
  // `script` is not everywhere: the answer goes to standard error, which is the terminal.
  const std::string plan = "exec '" EBB_BINARY "' plan " + kMeasured + " --budget 22GiB ";
  CHECK(holds(on_terminal(plan + "1>&2 -q", "xterm").err, "\033[1;32m"));
  CHECK_FALSE(holds(on_terminal(plan + "1>&2 -q --no-color", "xterm").err, "\033["));
  CHECK_FALSE(holds(on_terminal(plan + "1>&2 -q", "dumb").err, "\033["));
  CHECK_FALSE(holds(on_terminal("NO_COLOR=1 " + plan.substr(5) + "1>&2 -q", "xterm").err, "\033["));
}
