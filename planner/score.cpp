#include "planner/score.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "models/cluster_yaml.hpp"
#include "models/errors.hpp"
#include "models/library.hpp"
#include "planner/constraints.hpp"
#include "planner/evaluator.hpp"
#include "planner/reserved.hpp"

namespace ebb {

namespace {

/// The policy that the arguments ask for; resident where they ask for none.
Candidate candidate_of(const Job& job) {
  const Offload& o = job.offload;
  if (!o.policy) return {};
  return ebb::candidate_of({o.policy, o.chunk_numel, o.chunk_size_mb, o.fraction, o.slots, o.cap}, {});
}

/// Settings under which the recorded bytes are another program's: stated, never predicted.
std::string not_modelled(const RecordedRun& run, const Job& job) {
  if (job.megatron.fsdp) return "Megatron-FSDP shards parameters by itself";
  for (const MegatronArgument& argument : run.arguments.arguments)
    if (argument.name == "perform-rl-step") return "reinforcement learning: an inference engine shares the device";
  return "";
}

std::vector<std::string> traits_of(const Job& job) {
  const Parallel& p = job.parallel;
  const std::vector<std::pair<bool, const char*>> all = {
      {p.tensor > 1, "tensor parallel"},
      {p.pipeline > 1, "pipeline"},
      {p.virtual_pipeline > 1, "virtual pipeline"},
      {p.context > 1, "context parallel"},
      {job.model.moe.has_value(), "experts"},
      {job.model.moe && job.experts.grouped_matmul, "grouped experts"},
      {job.model.mla.has_value(), "latent attention"},
      {job.model.mtp_layers() > 0, "prediction layers"},
      {!job.optimizer.distributed, "no distributed optimizer"},
      {job.optimizer.kind == OptimizerKind::muon, "Muon"},
      {job.precision.params == Dtype::fp16, "fp16"},
      {job.precision.fp8 != Fp8Recipe::none, "FP8"},
      {job.compute.attention == Attention::unfused, "unfused attention"},
      {job.compute.attention == Attention::local, "local layers"},
  };
  std::vector<std::string> traits;
  for (const auto& [holds, name] : all)
    if (holds) traits.emplace_back(name);
  if (traits.empty()) traits.emplace_back("one dense stage");
  return traits;
}

void predict(const Job& job, ScoredRun& scored) {
  const Candidate candidate = candidate_of(job);
  const std::int64_t last = job.parallel.gpus - 1;
  const StageLayout stage = stage_layout(job, coordinates_of(job, last).pipeline);
  const RankModel rank = rank_model(job, stage, last);
  const AllocationTrace trace = allocation_trace(rank, candidate);
  const ReservedOptions options{.expandable_segments = job.megatron.expandable_segments};
  const PredictedMemory memory = replay(trace, kUnlimited, options);
  scored.allocated = memory.allocated;
  scored.peak = std::max({memory.peak_allocated, memory.first_peak, memory.init_peak});
  scored.between = terms_between_steps(trace);
  scored.at_peak = terms_at_peak(trace);
  scored.iteration = Evaluator(job).answer(candidate).step;
}

ScoredRun score(const RecordedRun& run) {
  ScoredRun scored;
  scored.run = &run;
  if (!run.gpus) {
    scored.reason = "world size not published";
    return scored;
  }
  try {
    const std::string name = cluster_with(run.gpu);
    const Cluster cluster = load_cluster(resolve(Library::clusters, name, "", Place{}));
    ImportedJob imported = job_of(run.arguments, cluster);
    imported.job.name = run.id;
    scored.reason = not_modelled(run, imported.job);
    for (const ImportNote& note : imported.notes)
      if (note.kind == ImportNoteKind::not_modelled) scored.unheeded.push_back(note.argument);
    if (!scored.modelled()) return scored;
    scored.traits = traits_of(imported.job);
    check(imported.job);
    predict(imported.job, scored);
  } catch (const InputError& error) {
    scored.reason = error.what();
  }
  return scored;
}

}  // namespace

std::string cluster_with(const std::string& gpu) {
  constexpr std::array<std::pair<const char*, const char*>, 6> kClusters = {{{"GB200", "gb200-nvl72"},
                                                                             {"GH200", "gh200"},
                                                                             {"B200", "hgx-b200"},
                                                                             {"H200", "hgx-h200"},
                                                                             {"H100", "hgx-h100"},
                                                                             {"A100", "dgx-a100"}}};
  for (const auto& [part, cluster] : kClusters)
    if (gpu.find(part) != std::string::npos) return cluster;
  throw InputError(Place{}, "no cluster of the library has the GPU \"" + gpu.substr(0, 60) + "\"",
                   "use one of A100, H100, H200, GH200, B200, GB200");
}

std::vector<ScoredRun> score(const std::vector<RecordedRun>& runs, const ProgressHook& progress) {
  std::vector<ScoredRun> scored;
  scored.reserve(runs.size());
  for (const RecordedRun& run : runs) {
    if (progress) progress({static_cast<std::int64_t>(scored.size()), static_cast<std::int64_t>(runs.size()), run.id});
    scored.push_back(score(run));
  }
  return scored;
}

}  // namespace ebb
