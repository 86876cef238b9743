// Highest allocation of Megatron-LM's own functional tests, as their arguments say it, against what they recorded.
#include <algorithm>
#include <cmath>
#include <set>

#include "planner/recorded_runs.hpp"
#include "planner/score.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

double off(const ScoredRun& scored) {
  return static_cast<double>(scored.peak.value) / static_cast<double>(scored.run->peak.value) - 1;
}

/// What is known to be missing, and which way it pulls the prediction.
bool is_short_of_something(const std::string& id) {
  static const std::set<std::string> kCases = {
      // Keeps the logits' gradients of two micro-batches for later (--wgrad-deferral-limit).
      "gpt/gpt3_mcore_te_tp2_pp2_resume_torch_dist_defer_embedding_wgrad_compute",
      // User buffers of --tp-comm-overlap stay between steps.
      "gpt/gpt3_weekly_mcore_tp2_pp2_current_scaling_native_fp8_tp_pp_sp_tp_overlap",
      // Between steps 240 MiB more than the state that Muon's layout holds.
      "moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_muon",
      // Moves activations to the host (--fine-grained-activation-offloading, which the record leaves out).
      "moe/gpt3_moe_mcore_te_tp2_pp2_ep4_etp1_fine_grained_offloading",
  };
  return kCases.contains(id);
}

}  // namespace

TEST_CASE("recorded peaks: within 0.6 percent in the median, 4 percent for nine of ten, 6 percent but for four known") {
  const std::vector<RecordedRun> runs = load_recorded_runs(EBB_SOURCE_DIR "/tests/data/megatron/recorded.json");
  const std::vector<ScoredRun> all = score(runs);
  std::vector<double> errors;
  for (const ScoredRun& scored : all) {
    if (!scored.modelled()) continue;
    INFO(scored.run->id << ": " << 100 * off(scored) << " %");
    errors.push_back(std::abs(off(scored)));
    if (!is_short_of_something(scored.run->id)) CHECK(errors.back() < 0.06);
  }
  REQUIRE(errors.size() == 51);
  std::sort(errors.begin(), errors.end());
  CHECK(errors[errors.size() / 2] < 0.006);
  CHECK(errors[errors.size() * 9 / 10] < 0.04);
}

TEST_CASE("recorded peaks without experts, deferred gradients and user buffers: within 2.5 percent") {
  const std::vector<RecordedRun> runs = load_recorded_runs(EBB_SOURCE_DIR "/tests/data/megatron/recorded.json");
  for (const ScoredRun& scored : score(runs)) {
    if (!scored.modelled() || scored.run->id.starts_with("moe/") || is_short_of_something(scored.run->id)) continue;
    INFO(scored.run->id << ": " << 100 * off(scored) << " %");
    CHECK(std::abs(off(scored)) < 0.025);
  }
}

TEST_CASE("recorded peaks: the terms of the highest moment are what is allocated but for the allocator's rounding") {
  const std::vector<RecordedRun> runs = load_recorded_runs(EBB_SOURCE_DIR "/tests/data/megatron/recorded.json");
  for (const ScoredRun& scored : score(runs)) {
    if (!scored.modelled()) continue;
    INFO(scored.run->id);
    CHECK(scored.at_peak.total() <= scored.peak);
    CHECK(static_cast<double>(scored.at_peak.total().value) > 0.97 * static_cast<double>(scored.peak.value));
    CHECK(scored.at_peak.of(MemoryTerm::other) == Bytes{0});
  }
}
