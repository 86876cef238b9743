// One function a policy, and the ops they have in common. Internal to lowering: everyone else uses lower.hpp.
#pragma once

#include <span>

#include "planner/lower.hpp"
#include "planner/plan_builder.hpp"

namespace ebb {

void lower_resident(PlanBuilder& plan, const RankModel& rank);
void lower_full_reload(PlanBuilder& plan, const RankModel& rank);
void lower_chunked(PlanBuilder& plan, const RankModel& rank, Numel chunk_numel);
/// chunked's second pass over gathered FP8 and FP4 weights (lower_quantize.cpp); its chunks count on from
/// `first_chunk`.
void quantize_chunks(PlanBuilder& plan, const RankModel& rank, Numel chunk_numel, std::uint32_t first_chunk,
                     Phase phase = Phase::step);
void lower_windowed(PlanBuilder& plan, const RankModel& rank, std::int64_t chunk_size_mb, double fraction);
void lower_cpu_adam(PlanBuilder& plan, const RankModel& rank, double fraction);
void lower_pipelined(PlanBuilder& plan, const RankModel& rank, Numel slot_numel, int slots);
void lower_tidal(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate);

// Parts of life without training.
void lower_init(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate);
void lower_save(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate);
/// load, load_params and reload.
void lower_load(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate);

/// Consecutive shards of a rank and where they lie in its owned elements.
struct Part {
  std::span<const Shard> shards;
  ElementRange range;
  std::uint32_t chunk = kNoChunk;
  std::uint32_t tensors() const { return static_cast<std::uint32_t>(shards.size()); }
};
Part whole(const RankModel& rank);

/// cpu-adam: how many leading shards step on the host: whole shards while fewer than `fraction` of the owned elements
/// are taken. Source: Megatron-LM hybrid_optimizer.py, _get_sub_optimizer_param_groups.
std::size_t shards_on_host(const RankModel& rank, double fraction);

/// ... and the others.
struct HybridParts {
  Part moves;
  Part stays;
};
HybridParts hybrid_parts(const RankModel& rank, double fraction);

/// cpu-adam: masters of `moves`, which the host keeps, into the parameters, tensor by tensor through a buffer of its
/// own.
void params_from_host(PlanBuilder& plan, const RankModel& rank, const Part& moves, Phase phase);

/// The host prepares an optimizer call: its fixed cost and `passes` walks over all parameters of the rank.
void host_call(PlanBuilder& plan, const RankModel& rank, std::uint32_t chunk, std::uint32_t passes);

/// Moves `states` of `part` between `buffer` and its pinned copy, one piece a tensor and state.
OpId copy_state(PlanBuilder& plan, const RankModel& rank, OpKind direction, Phase phase, std::uint8_t states,
                const Part& part, BufferId buffer, std::initializer_list<OpId> deps);

/// Adam over `part`, whose moments (and masters, unless they lie elsewhere) are in `buffer`, in types `precision`.
OpId adam(PlanBuilder& plan, const Precision& precision, AdamKernel kernel, const Part& part, BufferId buffer,
          std::initializer_list<OpId> deps);

/// Masters of `part` in `buffer` to model parameters, one launch a shard, but for those that Adam has written and those
/// that are quantised apart. Returns the last op on `part`, which is `stepped` where there is nothing to do.
OpId cast_to_params(PlanBuilder& plan, const RankModel& rank, const Precision& precision, const Part& part,
                    BufferId buffer, OpId stepped);

/// Quantises all gathered FP8 and FP4 weights from masters on the device, where the recipe does so after the step.
/// `cuts`: owned elements at which another buffer of masters begins.
void quantize_params(PlanBuilder& plan, const RankModel& rank, Phase phase = Phase::step,
                     std::span<const std::int64_t> cuts = {});

/// Memory that Adam needs while it runs, held from construction to release().
class AdamScratch {
 public:
  /// Nothing is allocated when `bytes` is 0.
  AdamScratch(PlanBuilder& plan, Bytes bytes);
  void release();

 private:
  PlanBuilder& plan_;
  BufferId buffer_;
};

struct DeviceState;
/// One optimizer call over `part`, whose state is all in `state`, or comes into being there: Adam with its scratch,
/// then the cast.
void step_on_device(PlanBuilder& plan, const RankModel& rank, const Precision& precision, AdamKernel kernel,
                    const Part& part, const DeviceState& state);

}  // namespace ebb
