// What Megatron-LM took and held step by step in measured runs: tests/data/megatron/measured-steps.json, the runs of
// the 24-layer job.
#pragma once

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/policy.hpp"

namespace ebb::test {

struct MeasuredRun {
  std::string name;
  std::string tree;  // of Megatron-LM: pr or dev
  Candidate candidate;
  double allocated_at_start = 0;  // device bytes when the optimizer is built
  std::vector<double> optimizer;  // seconds, first step first
  std::vector<double> step;
  std::vector<double> rss;  // bytes after each step
};

inline std::vector<MeasuredRun> measured_runs() {
  std::ifstream in(EBB_TEST_DATA "/megatron/measured-steps.json");
  const auto document = nlohmann::json::parse(in);
  std::vector<MeasuredRun> runs;
  for (const auto& json : document.at("runs")) {
    MeasuredRun run{.name = json.at("run"),
                    .tree = json.at("tree"),
                    .candidate = {},
                    .allocated_at_start = json.at("allocated_at_start"),
                    .optimizer = json.at("optimizer_s"),
                    .step = json.at("step_s"),
                    .rss = json.at("rss")};
    if (run.name.find("24x2048") == std::string::npos) continue;
    const std::string policy = json.at("policy");
    run.candidate.policy =
        *std::find_if(kPolicies.begin(), kPolicies.end(), [&](Policy known) { return name_of(known) == policy; });
    run.candidate.chunk_numel.value = json.value("chunk_numel", std::int64_t{0});
    run.candidate.chunk_size_mb = json.value("chunk_size_mb", std::int64_t{0});
    runs.push_back(std::move(run));
  }
  return runs;
}

/// The run without offload of the same tree.
inline const MeasuredRun& base_of(const std::vector<MeasuredRun>& runs, const MeasuredRun& of) {
  return *std::find_if(runs.begin(), runs.end(), [&](const MeasuredRun& run) {
    return run.tree == of.tree && run.candidate.policy == Policy::resident;
  });
}

}  // namespace ebb::test
