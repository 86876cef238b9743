// The values of one `--set` of a sweep.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "planner/set_value.hpp"
#include "planner/sweep.hpp"

namespace ebb {

namespace {

struct Number {
  double value = 0;
  std::string_view unit;
};

/// "16GB/s" apart. nullopt: it does not begin with a number.
std::optional<Number> number_of(std::string_view text) {
  Number number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  if (error != std::errc{} || !std::isfinite(number.value)) return std::nullopt;
  number.unit = text.substr(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// At commas outside brackets and quotes.
std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  return values;
}

[[noreturn]] void reject_range(const Setting& setting, const char* problem) {
  throw InputError(setting.place(), problem, "write A..B:STEP or A..B*FACTOR, like 4096..16384:4096 or 1..8*2");
}

std::vector<std::string> range_values(const Setting& setting, std::string_view from, std::string_view rest) {
  const std::size_t mark = rest.find_first_of(":*");
  if (mark == std::string_view::npos) reject_range(setting, "a range needs a step");
  const std::optional<Number> first = number_of(from);
  const std::optional<Number> last = number_of(rest.substr(0, mark));
  const std::optional<Number> step = number_of(rest.substr(mark + 1));
  if (!first || !last || !step) reject_range(setting, "a range is made of numbers");
  std::string_view unit;
  for (const std::string_view other : {first->unit, last->unit, step->unit}) {
    if (!unit.empty() && !other.empty() && other != unit) reject_range(setting, "the units of a range differ");
    if (!other.empty()) unit = other;
  }
  const bool factor = rest[mark] == '*';
  if (first->value > last->value) reject_range(setting, "the range is empty");
  if (factor ? step->value <= 1 || first->value <= 0 : step->value <= 0)
    reject_range(setting, factor ? "a factor above 1 and a start above 0 are needed" : "the step must be above 0");
  std::vector<std::string> values;
  // Each from the first, not from the one before: steps of 0.1 must end at the end.
  for (int i = 0;; ++i) {
    const double value = factor ? first->value * std::pow(step->value, i) : first->value + i * step->value;
    if (value > last->value * (1 + 1e-12)) return values;
    if (values.size() == kMostSweepRows) reject_range(setting, "this range has too many values");
    values.push_back(fmt::format("{:.12g}{}", value, unit));
  }
}

}  // namespace

SweepAxis parse_axis(const std::string& text) {
  const Setting setting = parse_setting(text);
  SweepAxis axis{.key = setting.key(), .values = {}};
  for (const std::string& part : split_values(setting.value)) {
    const std::size_t dots = part.find("..");
    const bool is_range = dots != std::string::npos && number_of(part).has_value();
    if (!is_range && part.find_first_not_of(' ') == std::string::npos)
      throw InputError(setting.place(), "a value is empty", "write it like --set batch.sequence=4096,8192");
    const std::string_view whole = part;
    std::vector<std::string> more = is_range ? range_values(setting, whole.substr(0, dots), whole.substr(dots + 2))
                                             : std::vector<std::string>{part};
    axis.values.insert(axis.values.end(), more.begin(), more.end());
  }
  return axis;
}

}  // namespace ebb
