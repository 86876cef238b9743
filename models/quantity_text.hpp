// Quantities as text: "130GiB", "55.3GB/s", "1e9", "3us". One parser for the YAML files and the command line, and the
// printers for messages and tables. Not here: where the text stands in a file (yaml_reader.hpp).
//
// A number is decimal, may use an exponent and `_` between digits, and may carry a unit. Decimal prefixes are powers
// of 1000, binary ones (KiB) of 1024, and letters mean what they say: GB is 1e9 bytes, GiB is 2^30.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "models/errors.hpp"
#include "models/units.hpp"

namespace ebb {

/// All of these throw InputError at `place` with the text in quotes, unless the whole text is one finite,
/// non-negative number in range with a unit of the quantity (or none: bytes, elements, bytes/s, FLOP/s, seconds).
Bytes parse_bytes(std::string_view text, const Place& place = {});
Numel parse_numel(std::string_view text, const Place& place = {});
BytesPerSecond parse_bandwidth(std::string_view text, const Place& place = {});
FlopsPerSecond parse_flop_rate(std::string_view text, const Place& place = {});
Seconds parse_seconds(std::string_view text, const Place& place = {});
/// A number without a unit.
double parse_ratio(std::string_view text, const Place& place = {});
/// A whole number without a unit; "1e3" and "1_000" are whole, "1.5" is not.
std::int64_t parse_count(std::string_view text, const Place& place = {});

/// For people: 3 to 4 significant digits and always the right letters. "130.0 GiB", "512 B".
std::string format_bytes(Bytes bytes);
/// "1.234 s", "17.50 ms", "3.400 us".
std::string format_seconds(Seconds seconds);
/// "1,000,000,000".
std::string format_numel(Numel numel);
/// "55.30 GB/s", "4.260 TB/s".
std::string format_bandwidth(BytesPerSecond rate);

/// For files: the shortest text that the parsers above turn back into exactly the same value.
std::string exact_text(Bytes bytes);
std::string exact_text(double ratio);
std::string exact_text(BytesPerSecond rate);
std::string exact_text(FlopsPerSecond rate);
std::string exact_text(Seconds seconds);

}  // namespace ebb
