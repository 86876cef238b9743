#include "reports/score.hpp"

#include <algorithm>
#include <cmath>

namespace ebb::reports {

ErrorSummary summarize(std::vector<double> errors) {
  ErrorSummary summary;
  summary.count = errors.size();
  if (errors.empty()) return summary;
  for (double& error : errors) {
    summary.bias += error / static_cast<double>(summary.count);
    error = std::abs(error);
  }
  std::sort(errors.begin(), errors.end());
  // The least value that `tenths` of ten cases do not exceed.
  const auto quantile = [&](std::size_t tenths) { return errors[(errors.size() * tenths + 9) / 10 - 1]; };
  summary.median = quantile(5);
  summary.p90 = quantile(9);
  summary.worst = errors.back();
  return summary;
}

double relative(Bytes predicted, Bytes recorded) {
  return static_cast<double>(predicted.value) / static_cast<double>(recorded.value) - 1;
}

std::vector<double> allocated_errors(const ScoreReport& report) {
  std::vector<double> errors;
  for (const ScoreCase& c : report.cases)
    if (c.modelled()) errors.push_back(relative(c.predicted_allocated, c.recorded_allocated));
  return errors;
}

std::vector<double> peak_errors(const ScoreReport& report) {
  std::vector<double> errors;
  for (const ScoreCase& c : report.cases)
    if (c.modelled()) errors.push_back(relative(c.predicted_peak, c.recorded_peak));
  return errors;
}

std::vector<double> iteration_errors(const ScoreReport& report) {
  std::vector<double> errors;
  for (const ScoreCase& c : report.cases)
    if (c.modelled() && c.recorded_iteration)
      errors.push_back(c.predicted_iteration.value / c.recorded_iteration->value - 1);
  return errors;
}

std::size_t allocated_within(const ScoreReport& report, double part, Bytes floor) {
  return static_cast<std::size_t>(std::count_if(report.cases.begin(), report.cases.end(), [&](const ScoreCase& c) {
    const auto off = static_cast<double>(std::abs(c.predicted_allocated.value - c.recorded_allocated.value));
    const auto allowed =
        std::max(part * static_cast<double>(c.recorded_allocated.value), static_cast<double>(floor.value));
    return c.modelled() && off <= allowed;
  }));
}

std::vector<Remainder> remainders(const ScoreReport& report) {
  std::vector<Remainder> all;
  for (const ScoreCase& c : report.cases) {
    if (!c.modelled()) continue;
    for (const std::string& trait : c.traits) {
      auto known = std::find_if(all.begin(), all.end(), [&](const Remainder& r) { return r.trait == trait; });
      if (known == all.end()) known = all.insert(all.end(), Remainder{trait});
      ++known->cases;
      known->allocated += c.recorded_allocated - c.predicted_allocated;
      known->peak += c.recorded_peak - c.predicted_peak;
    }
  }
  for (Remainder& r : all) {
    r.allocated = Bytes{r.allocated.value / static_cast<std::int64_t>(r.cases)};
    r.peak = Bytes{r.peak.value / static_cast<std::int64_t>(r.cases)};
  }
  return all;
}

}  // namespace ebb::reports
