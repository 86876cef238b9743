// What a command says beside its result, all of it on standard error: remarks (not with --quiet), details (with
// --verbose), and while it works, on a terminal, how far it is. One state for the process, set once by main().
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "planner/cli_options.hpp"
#include "planner/progress.hpp"
#include "planner/search.hpp"

namespace ebb::cli {

void set_talk(const Everywhere& everywhere);

/// "ebb: TEXT".
void remark(const std::string& text);
/// The same, only with --verbose.
void detail(const std::string& text);

/// Work that may take a while, from here to the end of the scope. On a terminal it is shown after 0.2 s, with
/// --verbose its time is printed at the end.
class Activity {
 public:
  /// "search", "reading plan.json".
  explicit Activity(std::string what);
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  /// From any thread.
  void update(const Progress& progress);
  /// For whatever counts; empty where nobody looks.
  ProgressHook hook();

 private:
  struct Display;
  std::string what_;
  double begin_ = 0;  // seconds of a steady clock
  std::unique_ptr<Display> display_;
};

/// search(), or with the start of a job at its worst (robust.hpp) search_robustly(), shown.
SearchResult shown_search(const Job& job, SearchOptions options, std::optional<Start> robust_start = std::nullopt);

}  // namespace ebb::cli
