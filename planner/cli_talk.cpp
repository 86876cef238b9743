#include "planner/cli_talk.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "models/quantity_text.hpp"
#include "models/terminal_text.hpp"
#include "planner/robust.hpp"

namespace ebb::cli {

namespace {

Everywhere talk;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool on_terminal() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr && *terminal != '\0' &&
         std::string_view(terminal) != "dumb";
}

void write_stderr(std::string_view text) {
  // What a terminal does not take is not worth a message.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

std::size_t columns() {
  struct winsize size {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// Interrupted while a line is shown: leave a clean line, then die of the signal as if nothing had been installed.
extern "C" void erase_and_die(int signal) {
  constexpr std::string_view kErase = "\r\033[K";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kErase.data(), kErase.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// "@ 671M": the chunk of a candidate in a few letters.
std::string chunk_of(const Candidate& candidate) {
  const auto numel = static_cast<double>(candidate.chunk_numel.value);
  if (candidate.chunk_size_mb > 0) return fmt::format(" @ {} MiB", candidate.chunk_size_mb);
  if (numel >= 1e6) return fmt::format(" @ {:.0f}M", numel / 1e6);
  return numel > 0 ? fmt::format(" @ {:.0f}", numel) : std::string();
}

}  // namespace

void set_talk(const Everywhere& everywhere) {
  talk = everywhere;
  // Whoever asks whether colour is wanted looks at NO_COLOR (reports/style.hpp).
  if (everywhere.no_colour) ::setenv("NO_COLOR", "1", 1);
}

void remark(const std::string& text) {
  if (!talk.quiet) write_message("ebb", text);
}

void detail(const std::string& text) {
  if (talk.verbose) write_message("ebb", text);
}

/// The line and the thread that draws it: the work itself may be silent for long.
struct Activity::Display {
  explicit Display(const std::string& what)
      : line(what, {[] { return Seconds{now()}; }, write_stderr, columns()}), thread([this] { draw(); }) {}
  ~Display() {
    {
      const std::lock_guard lock(mutex);
      over = true;
    }
    wake.notify_one();
    thread.join();
    line.finish();
    std::signal(SIGINT, SIG_DFL);
  }
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  void draw() {
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, std::chrono::duration<double>(kProgressEvery.value), [this] { return over; })) {
      line.tick(progress);
      if (line.shown()) std::signal(SIGINT, erase_and_die);
    }
  }

  std::mutex mutex;
  std::condition_variable wake;
  bool over = false;
  Progress progress;
  ProgressLine line;
  std::thread thread;
};

Activity::Activity(std::string what) : what_(std::move(what)), begin_(now()) {
  if (!talk.quiet && on_terminal()) display_ = std::make_unique<Display>(what_);
}

Activity::~Activity() {
  display_.reset();
  detail(fmt::format("{} took {}", what_, format_seconds({now() - begin_})));
}

void Activity::update(const Progress& progress) {
  if (!display_) return;
  const std::lock_guard lock(display_->mutex);
  display_->progress = progress;
}

ProgressHook Activity::hook() {
  if (!display_) return {};
  return [this](const Progress& progress) { update(progress); };
}

SearchResult shown_search(const Job& job, SearchOptions options, std::optional<Start> robust_start) {
  Activity activity("search");
  if (const ProgressHook hook = activity.hook())
    options.progress = [hook](const SearchProgress& search) {
      Progress progress{search.done, search.total, {}};
      if (search.best != nullptr)
        progress.note = fmt::format("best {}{}", format_seconds(search.best->step), chunk_of(search.best->candidate));
      hook(progress);
    };
  return robust_start ? search_robustly(job, *robust_start, options) : search(job, options);
}

}  // namespace ebb::cli
