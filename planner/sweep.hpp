// What-ifs over ranges: the cross product of settings, one answer each. A job that breaks a rule, or that nothing fits,
// is a row that says so. Rows are computed in threads of their own and stand in the order of the values, the last
// setting fastest.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/search.hpp"

namespace ebb {

/// More rows than anyone reads.
inline constexpr std::size_t kMostSweepRows = 4096;

/// One `--set` with the values to try.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;
};

/// KEY=VALUE, KEY=V1,V2,..., KEY=A..B:STEP or KEY=A..B*FACTOR (both ends included, numbers with the same unit, written
/// behind either end: 16..64GB/s*2). Commas inside brackets and quotes belong to a value. InputError names the setting.
SweepAxis parse_axis(const std::string& text);

struct SweepRow {
  std::vector<std::string> values;  // of each axis
  std::optional<Answer> answer;     // recommended, or what needs least; none: no valid job
  bool fits = false;
  std::string obstacle;
};

/// `finish` changes each job after it was read (budgets, a policy). InputError where every row breaks a rule: the first
/// one's. IoError as for load_any_job().
std::vector<SweepRow> sweep(const std::string& file, std::span<const SweepAxis> axes, Megatron megatron,
                            const std::function<void(Job&)>& finish);

}  // namespace ebb
