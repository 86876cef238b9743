// `ebb layout JOB --rank R`: what one rank's optimizer owns, and how a policy would pack it.
#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"
#include "planner/chunking.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/layout.hpp"
#include "reports/answer_json.hpp"
#include "reports/answer_text.hpp"

namespace ebb::cli {

namespace {

/// Where each buffer's buckets start in the list of all buckets.
std::vector<std::int64_t> first_buckets(const StageLayout& stage) {
  std::vector<std::int64_t> firsts;
  std::int64_t first = 0;
  for (const BufferLayout& buffer : stage.buffers) {
    firsts.push_back(first);
    first += static_cast<std::int64_t>(buffer.buckets.size());
  }
  return firsts;
}

std::vector<reports::LayoutChunk> chunks_of_shards(const std::vector<Chunk>& chunks) {
  std::vector<reports::LayoutChunk> list;
  for (const Chunk& chunk : chunks) {
    reports::LayoutChunk item{chunk.numel, {}};
    for (std::uint32_t i = 0; i < chunk.count; ++i) item.shards.push_back(chunk.first + i);
    list.push_back(std::move(item));
  }
  return list;
}

/// Ebb's own slots cut the packed elements every `numel`, through shards.
std::vector<reports::LayoutChunk> chunks_of_elements(const std::vector<Shard>& shards, Numel numel) {
  std::vector<reports::LayoutChunk> list;
  Numel room{0};
  for (std::size_t i = 0; i < shards.size(); ++i)
    for (Numel left = shards[i].numel; left > Numel{0};) {
      if (room == Numel{0}) {
        list.emplace_back();
        room = numel;
      }
      const Numel piece = std::min(left, room);
      list.back().numel += piece;
      if (list.back().shards.empty() || list.back().shards.back() != static_cast<std::int64_t>(i))
        list.back().shards.push_back(static_cast<std::int64_t>(i));
      left -= piece;
      room -= piece;
    }
  return list;
}

/// No packing was asked for, or the policy has none: nothing.
std::optional<std::vector<reports::LayoutChunk>> chunks_for(const Job& job, CandidateOptions options,
                                                            const std::vector<Shard>& shards) {
  if (!options.policy && options.chunk_numel) options.policy = "chunked";
  if (!options.policy && options.chunk_size_mb) options.policy = "windowed";
  if (!options.policy) return std::nullopt;
  const Candidate candidate = candidate_from(options, job);
  switch (candidate.policy) {
    case Policy::chunked:
      return chunks_of_shards(chunk_by_numel(shards, candidate.chunk_numel));
    case Policy::windowed:
      return chunks_of_shards(chunk_by_moments(shards, candidate.chunk_size_mb, job.precision.moment_bytes()));
    case Policy::pipelined:
    case Policy::tidal:
      return chunks_of_elements(shards, candidate.chunk_numel);
    case Policy::resident:
    case Policy::full_reload:
    case Policy::cpu_adam:
      return std::nullopt;
  }
  return std::nullopt;
}

void add_layout(reports::LayoutReport& report, const StageLayout& stage, const std::vector<Shard>& shards) {
  const std::vector<std::int64_t> firsts = first_buckets(stage);
  for (const Shard& shard : shards) {
    report.shards.push_back({stage.parameters[shard.parameter].name, shard.numel, firsts[shard.buffer] + shard.bucket,
                             shard.group, shard.optimizer, shard.offset});
    report.largest_shard = std::max(report.largest_shard, shard.numel);
    report.owned += shard.numel;
  }
  for (std::size_t b = 0; b < stage.buffers.size(); ++b)
    for (const Bucket& bucket : stage.buffers[b].buckets)
      report.buckets.push_back({bucket.start, bucket.numel(), bucket.unpadded, stage.buffers[b].expert ? 1 : 0,
                                static_cast<std::int64_t>(b)});
}

}  // namespace

int run_layout(const LayoutOptions& options) {
  const Job job = load_job_argument(options.job);
  check(job);
  const std::int64_t rank = parse_count(options.rank, Place{"--rank"});
  if (rank >= job.parallel.gpus)
    throw InputError(Place{"--rank"}, fmt::format("rank {} is outside the job's {} GPUs", rank, job.parallel.gpus),
                     fmt::format("use 0 to {}", job.parallel.gpus - 1));
  const RankCoordinates at = coordinates_of(job, rank);
  const StageLayout stage = stage_layout(job, at.pipeline);
  const std::vector<Shard> shards = rank_shards(stage, at.dense_shard, at.expert_shard);

  reports::LayoutReport report;
  report.header = header_of(job);
  report.rank = rank;
  report.coordinates = fmt::format("tensor {}, context {}, data {}, pipeline {}, expert {}, dense shard {}", at.tensor,
                                   at.context, at.data, at.pipeline, at.expert, at.dense_shard);
  add_layout(report, stage, shards);
  report.chunks = chunks_for(job, options.candidate, shards);
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return 0;
}

}  // namespace ebb::cli
