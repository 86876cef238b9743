// Which iteration lines show the steady step (learn.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/errors.hpp"
#include "planner/learn.hpp"

namespace ebb {

namespace {

double median_of(std::vector<double> values) {
  EBB_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double deviation_of(const std::vector<double>& values, double median) {
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - median));
  return median_of(distances);
}

std::vector<double> seconds_of(const std::vector<LoggedIterations>& lines) {
  std::vector<double> seconds;
  seconds.reserve(lines.size());
  for (const LoggedIterations& line : lines) seconds.push_back(line.each.value);
  return seconds;
}

/// How many `unwanted` were taken out.
template <class Unwanted>
std::int64_t drop(std::vector<LoggedIterations>& lines, const Unwanted& unwanted) {
  const std::size_t before = lines.size();
  lines.erase(std::remove_if(lines.begin(), lines.end(), unwanted), lines.end());
  return static_cast<std::int64_t>(before - lines.size());
}

/// As drop(), but never all of them.
template <class Unwanted>
std::int64_t drop_some(std::vector<LoggedIterations>& lines, const Unwanted& unwanted) {
  if (std::all_of(lines.begin(), lines.end(), unwanted)) return 0;
  return drop(lines, unwanted);
}

[[noreturn]] void reject_empty(const TrainingLog& log, const std::string& file) {
  throw InputError(
      {file},
      fmt::format("none of its {} lines is \"iteration N/M | ... | elapsed time per iteration (ms): T | "
                  "...\"",
                  log.lines),
      "give what the last rank of a Megatron-LM run prints (training_log), with --log-interval low enough");
}

[[noreturn]] void reject_batch(const TrainingLog& log, std::int64_t wanted, const std::string& file) {
  throw InputError({file},
                   fmt::format("its iterations have a global batch of {}, the job's is {}",
                               log.iterations.back().global_batch.value_or(0), wanted),
                   "give the job of this run, or --set batch.global=N");
}

}  // namespace

StepSample steady_step(const TrainingLog& log, std::int64_t global_batch, const std::string& file) {
  constexpr double kDeviations = 5 * 1.4826;  // of a normal distribution: median deviation to standard deviation
  constexpr double kLeast = 0.05;
  StepSample sample;
  sample.lines = static_cast<std::int64_t>(log.iterations.size());
  std::vector<LoggedIterations> lines = log.iterations;
  if (lines.empty()) reject_empty(log, file);
  sample.other_batch = drop(
      lines, [&](const LoggedIterations& line) { return line.global_batch && *line.global_batch != global_batch; });
  if (lines.empty()) reject_batch(log, global_batch, file);
  sample.skipped = drop_some(lines, [](const LoggedIterations& line) { return line.skipped > 0 || line.nan > 0; });
  sample.first = drop_some(lines, [](const LoggedIterations& line) { return line.first_of_run; });
  sample.warm_up_only = lines.front().first_of_run;
  if (sample.warm_up_only) {
    sample.first = static_cast<std::int64_t>(lines.size()) - 1;
    lines = {lines.back()};
  }
  sample.after_pause = drop_some(lines, [](const LoggedIterations& line) { return line.after_pause; });
  const std::vector<double> all = seconds_of(lines);
  const double middle = median_of(all);
  const double far = std::max(kDeviations * deviation_of(all, middle), kLeast * middle);
  sample.outliers = drop(lines, [&](const LoggedIterations& line) { return std::abs(line.each.value - middle) > far; });
  const std::vector<double> kept = seconds_of(lines);
  sample.used = static_cast<std::int64_t>(kept.size());
  sample.median = {median_of(kept)};
  sample.deviation = {deviation_of(kept, sample.median.value)};
  return sample;
}

}  // namespace ebb
