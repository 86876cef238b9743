// Text on its way to a terminal. A file's or a job's name may hold bytes that a terminal obeys (move the cursor, set
// the title, hide what follows); they are shown as escapes, in the one place that all messages and results pass.
#pragma once

#include <string>
#include <string_view>

namespace ebb {

/// The few styles of results (reports/style.hpp): bold, bold green, dim, and back (ECMA-48, SGR).
inline constexpr std::string_view kBold = "\033[1m";
inline constexpr std::string_view kGreen = "\033[1;32m";
inline constexpr std::string_view kDim = "\033[2m";
inline constexpr std::string_view kPlain = "\033[0m";

enum class Styles { escaped, kept };

/// Control characters but line feed and tab (C0, DEL, and C1 in UTF-8) as "\u001b", which JSON reads as the same text.
std::string terminal_text(std::string_view text, Styles styles = Styles::escaped);

/// A message of a program on stderr, on lines of its own: "ebb: text". What stderr does not take is lost.
void write_message(std::string_view program, std::string_view text);

}  // namespace ebb
