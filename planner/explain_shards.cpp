// The largest shard, which Megatron keeps whole, and which of Megatron's arguments make it smaller: each is tried.
#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"
#include "planner/constraints.hpp"
#include "planner/explain_parts.hpp"

namespace ebb {

namespace {

struct Largest {
  const RankModel* rank = nullptr;
  const Shard* shard = nullptr;

  Numel numel() const { return shard == nullptr ? Numel{0} : shard->numel; }
  const Parameter& parameter() const { return rank->stage->parameters[shard->parameter]; }
  const BufferLayout& buffer() const { return rank->stage->buffers[shard->buffer]; }
};

Largest largest_of(const std::vector<RankModel>& ranks) {
  Largest largest;
  for (const RankModel& rank : ranks)
    for (const Shard& shard : rank.shards)
      if (shard.numel > largest.numel()) largest = {&rank, &shard};
  return largest;
}

/// Why gradients of a stage or model chunk lie in one bucket. Source: layout.cpp.
std::string why_one_bucket(const Job& job, const Largest& largest) {
  if (!job.parallel.overlap_grad_reduce) return "gradients are not bucketed without --overlap-grad-reduce";
  if (largest.rank->stage->pipeline_rank > 0) return "Megatron buckets the first pipeline stage alone";
  if (largest.buffer().model_chunk > 0) return "Megatron buckets the first virtual stage alone";
  return "all of it fits one bucket";
}

std::string how_it_comes(const Job& job, const Largest& largest) {
  const BufferLayout& buffer = largest.buffer();
  const std::string whole =
      fmt::format("the parameter has {} elements on a rank", format_numel(largest.parameter().numel()));
  if (buffer.division == Division::whole) return whole + ", and a layer-wise optimizer keeps parameters whole";
  if (buffer.division == Division::none || buffer.shards == 1) return whole + ", and no other rank shares its state";
  if (buffer.buckets.size() == 1)
    return fmt::format("{}; {}, so that each of {} ranks owns one range of {} elements in a row", whole,
                       why_one_bucket(job, largest), buffer.shards, format_numel({buffer.numel.value / buffer.shards}));
  const Bucket& bucket = buffer.buckets[largest.shard->bucket];
  return fmt::format("{}; its bucket of {} is cut over {} ranks", whole, format_numel(bucket.numel()), buffer.shards);
}

/// The largest shard of a changed job; nullopt: it is no valid job.
std::optional<Numel> largest_with(const Job& job) {
  try {
    check(job);
    const RankSet ranks(job);
    return largest_of(ranks.ranks()).numel();
  } catch (const InputError&) {
    return std::nullopt;
  }
}

class Levers {
 public:
  Levers(const Job& job, Numel now, reports::ShardLimit& limit) : job_(job), now_(now), limit_(limit) {}

  template <class Change>
  void try_one(std::string argument, const Change& change) {
    Job changed = job_;
    change(changed);
    const std::optional<Numel> largest = largest_with(changed);
    if (!largest) return;
    if (*largest < now_)
      limit_.levers.push_back({std::move(argument), *largest});
    else
      limit_.without_effect.push_back(std::move(argument));
  }

 private:
  const Job& job_;
  Numel now_;
  reports::ShardLimit& limit_;
};

void try_levers(const Job& job, const Largest& largest, reports::ShardLimit& limit) {
  Levers levers(job, largest.numel(), limit);
  const Parallel& parallel = job.parallel;
  if (!parallel.overlap_grad_reduce && largest.buffer().shards > 1)
    levers.try_one("--overlap-grad-reduce", [](Job& j) { j.parallel.overlap_grad_reduce = true; });
  // The smallest bucket closes behind every parameter.
  if (parallel.overlap_grad_reduce && largest.buffer().buckets.size() > 1)
    levers.try_one("--ddp-bucket-size 1", [](Job& j) { j.parallel.bucket_numel = Numel{1}; });
  const bool expert = largest.parameter().expert;
  if (expert)
    levers.try_one(fmt::format("--expert-tensor-parallel-size {}", 2 * parallel.expert_tensor),
                   [](Job& j) { j.parallel.expert_tensor *= 2; });
  else
    levers.try_one(fmt::format("--tensor-model-parallel-size {}", 2 * parallel.tensor), [](Job& j) {
      if (j.parallel.expert_tensor == j.parallel.tensor) j.parallel.expert_tensor *= 2;
      j.parallel.tensor *= 2;
    });
}

}  // namespace

reports::ShardLimit shard_limit(const Evaluator& evaluator, const Candidate& candidate) {
  const Job& job = evaluator.job();
  const Largest largest = largest_of(evaluator.ranks());
  reports::ShardLimit limit;
  if (largest.shard == nullptr) return limit;
  limit.parameter = largest.parameter().name;
  limit.rank = largest.rank->rank;
  limit.largest = largest.numel();
  limit.window = bytes_of(largest.numel(), job.precision.state_bytes());
  limit.explanation = how_it_comes(job, largest);
  if (candidate.policy == Policy::chunked) {
    limit.chunk = fmt::format("{} elements", format_numel(candidate.chunk_numel));
    limit.decides = largest.numel() > candidate.chunk_numel;
  } else if (candidate.policy == Policy::windowed && candidate.chunk_size_mb > 0) {
    limit.chunk = fmt::format("{} MiB of moments", candidate.chunk_size_mb);
    limit.decides = bytes_of(largest.numel(), job.precision.moment_bytes()) > Bytes{candidate.chunk_size_mb << 20};
  }
  limit.cut = cuts_elements(candidate.policy);
  if (!limit.cut) try_levers(job, largest, limit);
  return limit;
}

}  // namespace ebb
