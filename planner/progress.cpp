#include "planner/progress.hpp"

#include <fmt/format.h>

#include <cmath>

#include "models/terminal_text.hpp"

namespace ebb {

namespace {

// Back to the first column, and erase to the end of the line (ECMA-48, CR and EL).
constexpr std::string_view kErase = "\r\033[K";

std::string duration(Seconds seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(seconds.value));
  if (whole < 60) return fmt::format("{} s", whole);
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

}  // namespace

ProgressLine::ProgressLine(std::string what, Terminal terminal)
    : what_(std::move(what)),
      terminal_(std::move(terminal)),
      begin_(terminal_.clock()),
      due_{begin_.value + kProgressAfter.value} {}

std::string ProgressLine::text(const Progress& progress, Seconds elapsed) const {
  std::string text = terminal_text(what_);
  if (progress.total > 0) text += fmt::format(" {}/{}", progress.done, progress.total);
  if (!progress.note.empty()) text += "  " + progress.note;
  // What is done took as long as the rest will, piece by piece.
  if (progress.total > 0 && progress.done > 0)
    text += "  eta " + duration({elapsed.value * static_cast<double>(progress.total - progress.done) /
                                 static_cast<double>(progress.done)});
  else
    text += "  " + duration(elapsed);
  // A line as wide as the terminal would wrap, and could not be erased.
  if (terminal_.columns > 0 && text.size() >= terminal_.columns) text.resize(terminal_.columns - 1);
  return text;
}

void ProgressLine::tick(const Progress& progress) {
  const Seconds now = terminal_.clock();
  if (now.value < due_.value) return;
  due_ = {now.value + kProgressEvery.value};
  terminal_.write(std::string(kErase) + text(progress, {now.value - begin_.value}));
  shown_ = true;
}

void ProgressLine::finish() {
  if (shown_) terminal_.write(kErase);
  shown_ = false;
}

}  // namespace ebb
