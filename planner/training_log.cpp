#include "planner/training_log.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

namespace ebb {

namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;
constexpr double kMostSeconds = 1e7;
constexpr double kMostMebibytes = 1 << 30;  // 1 PiB, in MiB: no device has it

/// The number that `text` begins with, after blanks; nullopt for "nan", "inf", and where there is none.
std::optional<double> number_in(std::string_view text) {
  const std::size_t at = text.find_first_not_of(" \t");
  if (at == std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> behind(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  return at == std::string_view::npos ? std::nullopt : number_in(text.substr(at + key.size()));
}

std::optional<std::int64_t> count_behind(std::string_view text, std::string_view key) {
  const auto value = behind(text, key);
  if (!value || *value < 0 || *value > 1e15) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

/// nullopt: not there, or no size that a memory can have.
std::optional<Bytes> mebibytes_behind(std::string_view text, std::string_view key) {
  const auto value = behind(text, key);
  if (!value || *value < 0 || *value > kMostMebibytes) return std::nullopt;
  return Bytes{std::llround(*value * kMebibyte)};
}

/// As above, and 0 where the line does not have it.
std::optional<Bytes> mebibytes_if_printed(std::string_view text, std::string_view key) {
  return text.find(key) == std::string_view::npos ? std::optional(Bytes{0}) : mebibytes_behind(text, key);
}

/// Without terminal colours and titles: ESC [ ... letter.
std::string without_escapes(std::string_view line) {
  std::string plain;
  plain.reserve(line.size());
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\033' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
    } else {
      plain += line[i];
    }
  }
  return plain;
}

class Reader {
 public:
  TrainingLog take() { return std::move(log_); }

  void line(std::string_view raw) {
    ++log_.lines;
    const std::string text = without_escapes(raw);
    pauses(text);
    // Messages of several ranks may stand in one line.
    for (std::size_t at = text.find("elapsed time per iteration (ms):"); at != std::string::npos;) {
      const std::size_t next = text.find("elapsed time per iteration (ms):", at + 1);
      iterations(text, at, next);
      at = next;
    }
    for (std::size_t at = text.find("memory (MB)"); at != std::string::npos;) {
      const std::size_t next = text.find("memory (MB)", at + 1);
      memory(text, at, next);
      at = next;
    }
    theoretical(text);
    dotted(text);
  }

 private:
  /// `at`: where the time's name begins; `next`: that of the next message, npos when there is none.
  void iterations(const std::string& text, std::size_t at, std::size_t next) {
    const std::size_t begin = text.rfind("iteration ", at);
    if (begin == std::string::npos) return;
    const std::string_view message =
        std::string_view(text).substr(begin, next == std::string::npos ? next : next - begin);
    const auto last = count_behind(message, "iteration ");
    const auto milliseconds = behind(message, "elapsed time per iteration (ms):");
    if (!last || !milliseconds || !(*milliseconds > 0) || *milliseconds / 1e3 > kMostSeconds) return;
    LoggedIterations read;
    read.last = *last;
    read.each = {*milliseconds / 1e3};
    read.line = static_cast<int>(log_.lines);
    read.global_batch = count_behind(message, "global batch size:");
    read.skipped = count_behind(message, "number of skipped iterations:").value_or(0);
    read.nan = count_behind(message, "number of nan iterations:").value_or(0);
    add(read);
  }

  /// Where numbers do not grow another process begins. Its first two lines hold its first iteration: some versions
  /// print that by itself, and then once more inside the next line's average.
  void add(LoggedIterations read) {
    const LoggedIterations* before = log_.iterations.empty() ? nullptr : &log_.iterations.back();
    if (before != nullptr && before->last == read.last && before->each == read.each) return;  // the same, twice
    if (before == nullptr || read.last <= before->last || restarted_) lines_of_run_ = 0;
    if (lines_of_run_ == 0) saved_ = false;
    if (lines_of_run_ > 0) read.count = read.last - before->last;
    read.first_of_run = lines_of_run_++ < 2;
    read.after_pause = std::exchange(paused_, false);
    restarted_ = false;
    log_.iterations.push_back(read);
  }

  /// "[Rank 3] (after 2 iterations) memory (MB) | allocated: ...".
  void memory(const std::string& text, std::size_t at, std::size_t next) {
    const std::size_t begin = text.rfind("[Rank ", at);
    if (begin == std::string::npos || at - begin > 80) return;
    const std::string_view head = std::string_view(text).substr(begin, at - begin);
    const auto rank = count_behind(head, "[Rank ");
    const auto after = count_behind(head, "(after ");
    if (!rank || !after || head.find("iterations)") == std::string_view::npos) return;
    const std::string_view message = std::string_view(text).substr(at, next == std::string::npos ? next : next - at);
    LoggedMemory read;
    read.rank = *rank;
    read.iterations = *after;
    read.after_save = saved_;
    const auto allocated = mebibytes_behind(message, "| allocated:");
    const auto max_allocated = mebibytes_behind(message, "| max allocated:");
    const bool old = message.find("| reserved:") == std::string_view::npos;
    const auto reserved = mebibytes_if_printed(message, old ? "| cached:" : "| reserved:");
    const auto max_reserved = mebibytes_if_printed(message, old ? "| max cached:" : "| max reserved:");
    if (!allocated || allocated->value == 0 || !max_allocated || !reserved || !max_reserved) {
      ++log_.memory_skipped;
      return;
    }
    read.allocated = *allocated;
    read.max_allocated = *max_allocated;
    read.reserved = *reserved;
    read.max_reserved = *max_reserved;
    log_.memory.push_back(read);
  }

  void pauses(std::string_view text) {
    const auto has = [text](std::string_view part) { return text.find(part) != std::string_view::npos; };
    if (has("saving checkpoint at iteration") || has("successfully saved checkpoint")) paused_ = saved_ = true;
    if (has("validation loss at iteration")) paused_ = true;
    if (has("[before the start of training step]")) restarted_ = true;
  }

  /// "Theoretical memory footprints: weight and optimizer=9884.48 MB, activation=1.00 MB, total=9885.48 MB".
  void theoretical(std::string_view text) {
    if (text.find("Theoretical memory footprints") == std::string_view::npos) return;
    if (const auto state = mebibytes_behind(text, "weight and optimizer="); state && state->value > 0)
      log_.theoretical_state = state;
    if (const auto total = mebibytes_behind(text, "total="); total && total->value > 0) log_.theoretical_total = total;
  }

  /// Timers have a colon behind the dots, arguments have none.
  void dotted(std::string_view text) {
    const std::size_t dots = text.find(" ...");
    if (dots == std::string_view::npos || dots == 0) return;
    const std::size_t before = text.find_last_of(" \t:", dots - 1);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const std::string key(text.substr(begin, dots - begin));
    const std::size_t end = text.find_first_not_of('.', dots + 1);
    if (key.empty() || end == std::string_view::npos) return;
    std::string_view value = text.substr(end);
    if (value.starts_with(": (")) {
      const std::size_t comma = value.find(", ");
      add_timer(key, comma == std::string_view::npos ? std::nullopt : number_in(value.substr(comma + 2)));
    } else if (value.starts_with(": ")) {
      add_timer(key, number_in(value.substr(2)));
    } else if (value.starts_with(" ")) {
      const std::size_t from = value.find_first_not_of(' ');
      if (from != std::string_view::npos)
        log_.arguments[key] = value.substr(from, value.find_last_not_of(' ') + 1 - from);
    }
  }

  void add_timer(const std::string& name, std::optional<double> milliseconds) {
    if (milliseconds && *milliseconds >= 0 && *milliseconds / 1e3 < kMostSeconds)
      log_.timers[name].push_back({*milliseconds / 1e3});
  }

  TrainingLog log_;
  bool paused_ = false;
  bool saved_ = false;
  bool restarted_ = false;
  std::int64_t lines_of_run_ = 0;
};

}  // namespace

TrainingLog read_training_log(const std::string& text) {
  Reader reader;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", at), text.size());
    if (end > at) reader.line(std::string_view(text).substr(at, end - at));
    at = end + 1;
  }
  return reader.take();
}

}  // namespace ebb
