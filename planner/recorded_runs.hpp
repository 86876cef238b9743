// RecordedRun: a training run whose memory and time somebody recorded, as arguments of Megatron-LM and what was
// measured. The file format is that of tests/data/megatron/recorded.json:
//   {"cases": [{"id", "gpu", "args": {"num-layers": 12, "bf16": true, ...}, "env": {...}, "gpus": 8,
//               "measured": {"allocated_bytes_last", "max_allocated_bytes_last", "iteration_s_median", ...}}]}
// The figures are those of the last global rank. Not here: what Ebb predicts for it (score.hpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/units.hpp"
#include "planner/megatron_arguments.hpp"

namespace ebb {

struct RecordedRun {
  std::string id;
  std::string gpu;  // as recorded: "H100-80GB"
  /// Unset where the file does not say and the run is a release test, whose world size is not published; else 8, the
  /// one node of the functional tests.
  std::optional<std::int64_t> gpus;
  MegatronArguments arguments;
  Bytes allocated{0};  // torch's allocated bytes after a later step
  Bytes peak{0};       // torch's maximum since the start, at the end of the run
  std::optional<Seconds> iteration;
};

/// InputError: no such file, no JSON, or a case without one of the keys above.
std::vector<RecordedRun> load_recorded_runs(const std::string& file);

}  // namespace ebb
