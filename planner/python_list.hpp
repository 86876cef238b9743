// Lists of numbers as Megatron-LM's arguments write them: Python expressions of lists, sums and products, for example
// "([0]*3+[1]*58)" (--moe-layer-freq).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/errors.hpp"

namespace ebb {

/// The list that `text` stands for. InputError at `place` for anything else, for numbers above a million and for
/// lists of more than `most` numbers.
std::vector<std::int64_t> parse_python_list(std::string_view text, std::size_t most, const Place& place);

}  // namespace ebb
