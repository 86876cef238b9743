// Whole-number expressions of $((...)): + - * / %, brackets, numbers and names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ebb {

/// Nothing when `text` is no such expression, when a name's value is no number, on a division by zero, and for results
/// beyond a million million.
std::optional<std::int64_t> shell_arithmetic(std::string_view text,
                                             const std::function<std::string(std::string_view)>& value_of);

}  // namespace ebb
