// Lines of a report for a terminal that is 100 columns wide.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ebb::reports {

inline constexpr std::size_t kColumns = 100;

/// Characters of UTF-8 text.
std::size_t width_of(std::string_view text);

/// Whether the blank at `at` stands between a number and its unit: no line ends there.
bool joins_unit(std::string_view text, std::size_t at);

/// The text broken at blanks, so that no line is wider than `columns` where it has a blank to break at, which one
/// between a number and its unit is not; later lines begin with `indent` blanks. `join` stands at the end of every line
/// but the last ("\\" for a command to paste). Ends with a line feed.
std::string wrapped(std::string_view text, std::size_t indent = 0, std::string_view join = "",
                    std::size_t columns = kColumns);

/// The same as lines without indent and line feeds.
std::vector<std::string> wrapped_lines(std::string_view text, std::size_t columns);

}  // namespace ebb::reports
