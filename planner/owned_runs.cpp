#include "planner/owned_runs.hpp"

#include <algorithm>

#include "planner/quantization.hpp"

namespace ebb {

std::vector<OwnedRun> owned_runs(const RankModel& rank, const Precision& precision, ElementRange range) {
  const bool apart = quantizes_explicitly(precision);
  std::vector<OwnedRun> runs;
  std::int64_t at = 0;
  for (const Shard& shard : rank.shards) {
    const ElementRange part{std::max(at, range.begin), std::min(at + shard.numel.value, range.end)};
    at += shard.numel.value;
    if (part.begin >= part.end) continue;
    const BufferLayout& buffer = rank.stage->buffers[shard.buffer];
    const bool quantized = apart && buffer.quantized;
    const bool expert = apart && buffer.expert;
    if (runs.empty() || runs.back().quantized != quantized || runs.back().expert != expert)
      runs.push_back({{part.begin, part.begin}, 0, quantized, expert});
    runs.back().range.end = part.end;
    ++runs.back().tensors;
  }
  return runs;
}

std::vector<OwnedRun> slot_chunks(const RankModel& rank, const Precision& precision, Numel numel) {
  std::vector<OwnedRun> chunks;
  std::vector<OwnedRun> runs;
  if (quantizes_explicitly(precision))
    runs = owned_runs(rank, precision, {0, rank.owned.value});
  else
    runs.push_back({{0, rank.owned.value}, 1});
  for (const OwnedRun& run : runs)
    for (std::int64_t begin = run.range.begin; begin < run.range.end; begin += numel.value)
      chunks.push_back({{begin, std::min(begin + numel.value, run.range.end)}, 1, run.quantized, run.expert});
  return chunks;
}

}  // namespace ebb
