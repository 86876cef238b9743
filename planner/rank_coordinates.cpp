// Where a global rank stands. Source: Megatron-LM main d98e8a64dd, core/parallel_state.py (RankGenerator), 617 (the
// order), 927-990 (instances of the optimizer are slices of the dp_cp group).
//   dense   rank = tp  + TP  (cp + CP (dp  + DP  pp)), the dp_cp rank is dp CP + cp
//   expert  rank = etp + ETP (ep + EP (edp + EDP pp))
// With --use-tp-pp-dp-mapping pp and dp change places; both decompositions must agree in the pipeline rank then, which
// is why Megatron-LM asks for equal data-parallel sizes.
#include <fmt/format.h>

#include "models/errors.hpp"
#include "planner/layout.hpp"

namespace ebb {

RankCoordinates coordinates_of(const Job& job, std::int64_t rank) {
  const Parallel& p = job.parallel;
  if (rank < 0 || rank >= p.gpus) {
    throw InputError(Place{}, fmt::format("rank {} does not exist", rank),
                     fmt::format("the job has ranks 0 to {}", p.gpus - 1));
  }
  EBB_ASSERT(p.dense_shards() > 0 && p.expert_shards() > 0);
  const std::int64_t dense = rank / (p.tensor * p.context);         // pipeline and data
  const std::int64_t expert = rank / (p.expert_tensor * p.expert);  // pipeline and expert data
  RankCoordinates at;
  at.tensor = rank % p.tensor;
  at.context = rank / p.tensor % p.context;
  at.expert = rank / p.expert_tensor % p.expert;
  at.pipeline = p.pipeline_inner ? dense % p.pipeline : dense / p.data();
  at.data = p.pipeline_inner ? dense / p.pipeline : dense % p.data();
  at.dense_shard = (at.data * p.context + at.context) % p.dense_shards();
  at.expert_shard = (p.pipeline_inner ? expert / p.pipeline : expert % p.expert_data()) % p.expert_shards();
  return at;
}

}  // namespace ebb
