// Conditions of a shell script ([ ... ], [[ ... ]], test) on texts and whole numbers, and its patterns.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ebb {

/// The answer to the words between the brackets, or nothing when they are something else. No file exists.
std::optional<bool> shell_test(const std::vector<std::string>& words);

/// `*` stands for any text, `?` for any character.
bool matches_pattern(std::string_view text, std::string_view pattern);

}  // namespace ebb
