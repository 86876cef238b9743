#include "models/nearest.hpp"

#include <algorithm>

namespace ebb {

namespace {

char folded(char c) {
  if (c == '-') return '_';  // "cpu_adam" for "cpu-adam"
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: swaps look two rows back.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int substitution = above[j - 1] + (folded(a[i - 1]) == folded(b[j - 1]) ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitution});
      const bool swapped =
          i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > 100) return "";  // not a misspelling of anything
  std::string_view best;
  int best_distance = std::max(2, static_cast<int>(word.size()) / 3) + 1;
  for (const std::string_view candidate : known) {
    // Short words are all near to each other: at least one letter must be right.
    const int distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < static_cast<int>(std::max(word.size(), candidate.size()))) {
      best = candidate;
      best_distance = distance;
    }
  }
  return std::string(best);
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known, std::string_view kind) {
  const std::string best = nearest(word, known);
  if (!best.empty()) return "did you mean \"" + best + "\"?";
  std::string cure = "known " + std::string(kind) + ":";
  for (std::size_t i = 0; i < known.size(); ++i) cure += (i == 0 ? " " : ", ") + std::string(known[i]);
  return cure;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known, std::string_view kind) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  return did_you_mean(word, views, kind);
}

}  // namespace ebb
