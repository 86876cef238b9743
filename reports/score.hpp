// What `ebb score` reports, as plain data, and the statistics of its errors. Fields are named like the keys of the JSON
// document. Writers: score_text.hpp, score_json.hpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/units.hpp"
#include "reports/answer.hpp"

namespace ebb::reports {

struct ScoreCase {
  std::string id;
  std::string reason;  // why it is not modelled; "": it is
  Bytes predicted_allocated{0};
  Bytes recorded_allocated{0};
  Bytes predicted_peak{0};
  Bytes recorded_peak{0};
  Seconds predicted_iteration{0};
  std::optional<Seconds> recorded_iteration;
  std::vector<NamedBytes> terms;       // of predicted_allocated; the last one is what the allocator rounds up
  std::vector<NamedBytes> peak_terms;  // of predicted_peak
  std::vector<std::string> traits;
  std::vector<std::string> unheeded;  // arguments that change answers and that Ebb does not model

  bool modelled() const { return reason.empty(); }
};

struct ScoreReport {
  std::string file;
  std::string ebb_version;
  std::vector<ScoreCase> cases;
};

/// Signed relative errors: predicted / recorded - 1.
struct ErrorSummary {
  std::size_t count = 0;
  double median = 0;  // of the absolute errors
  double p90 = 0;     // nine of ten are no larger
  double worst = 0;
  double bias = 0;  // mean of the signed errors
};
ErrorSummary summarize(std::vector<double> errors);

double relative(Bytes predicted, Bytes recorded);
/// Of all modelled cases that have the figure.
std::vector<double> allocated_errors(const ScoreReport& report);
std::vector<double> peak_errors(const ScoreReport& report);
std::vector<double> iteration_errors(const ScoreReport& report);

/// How many modelled cases have `predicted` within `part` of `recorded` or within `floor`, whichever is more.
std::size_t allocated_within(const ScoreReport& report, double part, Bytes floor);

/// Recorded less predicted bytes of the cases of one kind.
struct Remainder {
  std::string trait;
  std::size_t cases = 0;
  Bytes allocated{0};  // mean
  Bytes peak{0};       // mean
};
/// Traits in the order in which cases name them first.
std::vector<Remainder> remainders(const ScoreReport& report);

}  // namespace ebb::reports
