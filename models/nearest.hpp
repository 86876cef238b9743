// "Did you mean ...?": the known word nearest to a misspelled one. Used for keys, enumerations, library names and
// command-line arguments.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ebb {

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`; letter case counts as equal.
/// O(|a| * |b|).
int edit_distance(std::string_view a, std::string_view b);

/// The nearest of `known` when it is near enough to be what was meant (a third of the letters, at least 2), else "".
std::string nearest(std::string_view word, std::span<const std::string_view> known);

/// A cure for an unknown word: `did you mean "x"?`, else `known KIND: a, b, c`.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known, std::string_view kind);
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known, std::string_view kind);

}  // namespace ebb
