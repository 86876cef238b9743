#include "models/quantity_text.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

namespace ebb {

namespace {

struct Unit {
  std::string_view name;
  long double factor;
};

constexpr long double kKibi = 1024.0L;

// The first of each list is what a bare number means.
constexpr std::array kByteUnits = {
    Unit{"B", 1},
    Unit{"kB", 1e3L},
    Unit{"MB", 1e6L},
    Unit{"GB", 1e9L},
    Unit{"TB", 1e12L},
    Unit{"KiB", kKibi},
    Unit{"MiB", kKibi* kKibi},
    Unit{"GiB", kKibi* kKibi* kKibi},
    Unit{"TiB", kKibi* kKibi* kKibi* kKibi},
    Unit{"KB", 1e3L},
    Unit{"Ki", kKibi},
    Unit{"Mi", kKibi* kKibi},
    Unit{"Gi", kKibi* kKibi* kKibi},
    Unit{"Ti", kKibi* kKibi* kKibi* kKibi},
};
constexpr std::array kNumelUnits = {
    Unit{"", 1},
    Unit{"k", 1e3L},
    Unit{"M", 1e6L},
    Unit{"G", 1e9L},
    Unit{"Ki", kKibi},
    Unit{"Mi", kKibi* kKibi},
    Unit{"Gi", kKibi* kKibi* kKibi},
};
// Network figures come in bits; "Gb/s" is not accepted because it reads as GB/s.
constexpr std::array kBandwidthUnits = {
    Unit{"B/s", 1},
    Unit{"kB/s", 1e3L},
    Unit{"MB/s", 1e6L},
    Unit{"GB/s", 1e9L},
    Unit{"TB/s", 1e12L},
    Unit{"KiB/s", kKibi},
    Unit{"MiB/s", kKibi* kKibi},
    Unit{"GiB/s", kKibi* kKibi* kKibi},
    Unit{"TiB/s", kKibi* kKibi* kKibi* kKibi},
    Unit{"Gbit/s", 1e9L / 8},
};
constexpr std::array kFlopUnits = {
    Unit{"FLOP/s", 1}, Unit{"GFLOP/s", 1e9L}, Unit{"TFLOP/s", 1e12L}, Unit{"PFLOP/s", 1e15L}, Unit{"TFLOPS", 1e12L},
};
constexpr std::array kTimeUnits = {
    Unit{"s", 1}, Unit{"ms", 1e-3L}, Unit{"us", 1e-6L}, Unit{"ns", 1e-9L}, Unit{"min", 60}, Unit{"h", 3600},
};
constexpr std::array kNoUnits = {Unit{"", 1}};

std::string unit_names(std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) {
    if (unit.name.empty()) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", unit.name);
  }
  return names.empty() ? "it takes no unit" : fmt::format("the units are {}", names);
}

[[noreturn]] void reject(std::string_view text, const Place& place, const std::string& problem,
                         const std::string& cure) {
  // A user's text goes into one line of message: keep it short.
  const std::string shown = text.size() <= 40 ? std::string(text) : fmt::format("{}...", text.substr(0, 37));
  throw InputError(place, fmt::format("\"{}\" {}", shown, problem), cure);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// `text` without each `_` that stands between two digits.
std::string without_separators(std::string_view text) {
  const auto is_digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_' && i > 0 && is_digit(i - 1) && is_digit(i + 1)) continue;
    plain += text[i];
  }
  return plain;
}

/// The number in base units. long double keeps every int64 exactly on the platforms that Ebb runs on.
long double parse(std::string_view text, std::span<const Unit> units, const Place& place, const char* example) {
  const std::string cure = fmt::format("write it like {}", example);
  const std::string plain = without_separators(trimmed(text));
  if (plain.empty()) reject(text, place, "is empty where a number belongs", cure);
  if (plain.front() == '-') reject(text, place, "is negative", "use a number that is zero or more");
  // from_chars would take "inf" and "nan"; a number of ours starts with a digit or a point.
  if ((plain.front() < '0' || plain.front() > '9') && plain.front() != '.')
    reject(text, place, "is not a number", cure);

  long double number = 0;
  const char* end = plain.data() + plain.size();
  const auto [rest, error] = std::from_chars(plain.data(), end, number);
  if (error == std::errc::result_out_of_range) reject(text, place, "is out of range", cure);
  if (error != std::errc{}) reject(text, place, "is not a number", cure);

  const std::string_view unit = trimmed({rest, static_cast<std::size_t>(end - rest)});
  if (unit.empty()) return number;
  for (const Unit& known : units)
    if (known.name == unit) return number * known.factor;
  reject(text, place, fmt::format("has the unknown unit \"{}\"", unit.substr(0, 20)), unit_names(units));
}

std::int64_t whole(long double number, std::string_view text, const Place& place) {
  constexpr auto kMost = static_cast<long double>(std::numeric_limits<std::int64_t>::max());
  if (!(number <= kMost)) reject(text, place, "is out of range", "use less than 2^63");
  return static_cast<std::int64_t>(std::llround(number));
}

double finite(long double number, std::string_view text, const Place& place) {
  const auto value = static_cast<double>(number);
  if (!std::isfinite(value)) reject(text, place, "is out of range", "");
  return value;
}

std::int64_t whole_or_reject(long double number, std::string_view text, const Place& place) {
  if (number < 1e18L && number != std::floor(number))
    reject(text, place, "is not a whole number", "use a whole number");
  return whole(number, text, place);
}

}  // namespace

Bytes parse_bytes(std::string_view text, const Place& place) {
  // "0.1GiB" is not a whole number of bytes; the nearest is what its writer means.
  return {whole(parse(text, kByteUnits, place, "20GiB or 1.5e9"), text, place)};
}

Numel parse_numel(std::string_view text, const Place& place) {
  return {whole_or_reject(parse(text, kNumelUnits, place, "1e9 or 671088640"), text, place)};
}

BytesPerSecond parse_bandwidth(std::string_view text, const Place& place) {
  return {finite(parse(text, kBandwidthUnits, place, "55.3GB/s"), text, place)};
}

FlopsPerSecond parse_flop_rate(std::string_view text, const Place& place) {
  return {finite(parse(text, kFlopUnits, place, "790TFLOP/s"), text, place)};
}

Seconds parse_seconds(std::string_view text, const Place& place) {
  return {finite(parse(text, kTimeUnits, place, "0.34s or 3us"), text, place)};
}

double parse_ratio(std::string_view text, const Place& place) {
  return finite(parse(text, kNoUnits, place, "0.5"), text, place);
}

std::int64_t parse_count(std::string_view text, const Place& place) {
  return whole_or_reject(parse(text, kNoUnits, place, "8"), text, place);
}

namespace {

/// Four significant digits of a value that the caller scaled below 10,000.
std::string digits(double value) {
  if (value >= 1000) return fmt::format("{:.0f}", value);
  if (value >= 100) return fmt::format("{:.1f}", value);
  if (value >= 10) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

template <class Value>
struct Scale {
  Value at_least;
  const char* name;
};

template <class Value, std::size_t N>
std::string scaled(double value, const std::array<Scale<Value>, N>& scales) {
  for (const auto& scale : scales)
    if (std::abs(value) >= static_cast<double>(scale.at_least))
      return fmt::format("{} {}", digits(value / static_cast<double>(scale.at_least)), scale.name);
  return fmt::format("{} {}", digits(value / static_cast<double>(scales.back().at_least)), scales.back().name);
}

}  // namespace

std::string format_bytes(Bytes bytes) {
  if (std::abs(bytes.value) < 1024) return fmt::format("{} B", bytes.value);
  constexpr std::array kScales = {Scale<std::int64_t>{1LL << 40, "TiB"}, Scale<std::int64_t>{1LL << 30, "GiB"},
                                  Scale<std::int64_t>{1LL << 20, "MiB"}, Scale<std::int64_t>{1LL << 10, "KiB"}};
  return scaled(static_cast<double>(bytes.value), kScales);
}

std::string format_seconds(Seconds seconds) {
  if (seconds.value == 0) return "0 s";
  constexpr std::array kScales = {Scale<double>{1, "s"}, Scale<double>{1e-3, "ms"}, Scale<double>{1e-6, "us"},
                                  Scale<double>{1e-9, "ns"}};
  return scaled(seconds.value, kScales);
}

std::string format_bandwidth(BytesPerSecond rate) {
  constexpr std::array kScales = {Scale<double>{1e12, "TB/s"}, Scale<double>{1e9, "GB/s"}, Scale<double>{1e6, "MB/s"},
                                  Scale<double>{1, "B/s"}};
  return scaled(rate.value, kScales);
}

std::string format_numel(Numel numel) {
  const std::string plain = std::to_string(numel.value);
  const std::size_t first = numel.value < 0 ? 1 : 0;
  std::string text;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (i > first && (plain.size() - i) % 3 == 0) text += ',';
    text += plain[i];
  }
  return text;
}

namespace {

/// `value` in the largest of `units` (biggest first) in which it is short and reads back exactly; else bare.
template <class Parse>
std::string shortest_exact(double value, std::initializer_list<const char*> units, const Parse& parse_text) {
  std::string best = fmt::format("{}", value);
  // The parser goes by way of a long double: a text half-way between two doubles there may come back as the other.
  // With all that a long double holds, the value itself is what is nearest.
  if (parse_text(best) != value) best = fmt::format("{:.21g}", value);
  for (const char* unit : units) {
    const double factor = parse_text(fmt::format("1{}", unit));
    const std::string text = fmt::format("{}{}", value / factor, unit);
    if (value >= factor && parse_text(text) == value) return text;
  }
  return best;
}

}  // namespace

std::string exact_text(Bytes bytes) {
  for (const char* unit : {"TiB", "GiB", "MiB", "TB", "GB", "MB"}) {
    const std::int64_t factor = parse_bytes(fmt::format("1{}", unit)).value;
    if (bytes.value >= factor && bytes.value % factor == 0) return fmt::format("{}{}", bytes.value / factor, unit);
  }
  return std::to_string(bytes.value);
}

std::string exact_text(double ratio) {
  return shortest_exact(ratio, {}, [](const std::string& text) { return parse_ratio(text); });
}

std::string exact_text(BytesPerSecond rate) {
  return shortest_exact(rate.value, {"TB/s", "GB/s", "MB/s"},
                        [](const std::string& text) { return parse_bandwidth(text).value; });
}

std::string exact_text(FlopsPerSecond rate) {
  return shortest_exact(rate.value, {"PFLOP/s", "TFLOP/s", "GFLOP/s"},
                        [](const std::string& text) { return parse_flop_rate(text).value; });
}

std::string exact_text(Seconds seconds) {
  return shortest_exact(seconds.value, {"s", "ms", "us", "ns"},
                        [](const std::string& text) { return parse_seconds(text).value; });
}

}  // namespace ebb
