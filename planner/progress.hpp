// How far something is, for people who wait at a terminal: nothing in the first 0.2 s, then a line that is drawn over
// at most ten times a second, and erased at the end. Not here: whether there is a terminal (cli_talk.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "models/units.hpp"

namespace ebb {

struct Progress {
  std::int64_t done = 0;
  std::int64_t total = 0;  // 0: not known
  std::string note;        // "best 2.31 s @ 671M"
};

/// Called by whoever works, often, from one thread at a time.
using ProgressHook = std::function<void(const Progress&)>;

inline constexpr Seconds kProgressAfter{0.2};
inline constexpr Seconds kProgressEvery{0.1};

class ProgressLine {
 public:
  struct Terminal {
    std::function<Seconds()> clock;  // from any beginning
    std::function<void(std::string_view)> write;
    std::size_t columns = 80;
  };

  ProgressLine(std::string what, Terminal terminal);

  /// Draws when it is due.
  void tick(const Progress& progress);
  /// Erases what is shown.
  void finish();
  bool shown() const { return shown_; }

 private:
  std::string text(const Progress& progress, Seconds elapsed) const;

  std::string what_;
  Terminal terminal_;
  Seconds begin_;
  Seconds due_;
  bool shown_ = false;
};

}  // namespace ebb
