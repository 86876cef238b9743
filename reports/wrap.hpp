// Lines of a report for a terminal that is 100 columns wide.
#pragma once

#include <string>
#include <string_view>

namespace ebb::reports {

inline constexpr std::size_t kColumns = 100;

/// Characters of UTF-8 text.
std::size_t width_of(std::string_view text);

/// The text broken at blanks, so that no line is wider than `columns` where it has a blank to break at; later lines
/// begin with `indent` blanks. `join` stands at the end of every line but the last ("\\" for a command to paste). Ends
/// with a line feed.
std::string wrapped(std::string_view text, std::size_t indent = 0, std::string_view join = "",
                    std::size_t columns = kColumns);

}  // namespace ebb::reports
