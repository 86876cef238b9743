// A timeline file: what `ebb simulate --timeline` predicts and `ebb-replay run` measures, for every rank of a host,
// with enough of the plan (OpSpan) that two of them can be compared without it. JSON; `ebb diff` reads both kinds.
//
// Predicted and measured files differ in `source` and in what only a run can know: repeats, what torch's allocator and
// the driver would show, instruments, provenance.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/plan.hpp"
#include "models/timeline.hpp"

namespace ebb {

/// One op: what the plan says of it, and when it ran. Ticks count from the start of the step.
struct OpSpan {
  OpKind kind = OpKind::compute;
  Phase phase = Phase::forward;
  Work work = Work::none;
  StreamKind stream = StreamKind::compute;
  std::uint32_t chunk = kNoChunk;
  std::uint32_t calls = 1;
  std::uint32_t members = 1;
  std::uint32_t domains = 1;
  Bytes bytes{0};
  Ticks start{0};
  Ticks end{0};

  bool operator==(const OpSpan&) const = default;
};

/// Bytes on the device and the host. "Live" counts in the order of issue (live_meter.hpp): of the plan in a prediction,
/// of what was really allocated and released in a run.
struct MemoryFigures {
  Bytes live_peak{0};
  std::vector<std::pair<Phase, Bytes>> live_by_phase;  // peak, in order of appearance
  Bytes pinned{0};
  Bytes pageable{0};
  // Of a run:
  std::optional<Bytes> torch_allocated_peak;  // tensor by tensor, as torch.cuda.max_memory_allocated() would say
  std::optional<Bytes> torch_reserved_peak;
  std::optional<Bytes> driver_peak;  // used according to cudaMemGetInfo, context included
  std::optional<Bytes> instruments;  // replay's own device memory, in driver_peak and in none of the others

  bool operator==(const MemoryFigures&) const = default;
};

struct RankTimeline {
  std::int64_t rank = 0;
  std::vector<OpSpan> ops;     // by op id; measured: of the repeat with the median step
  std::vector<Ticks> steps;    // whole step of each repeat; predicted: one
  std::vector<Ticks> updates;  // ... its optimizer step (Phase::step)
  MemoryFigures memory;

  bool operator==(const RankTimeline&) const = default;
};

struct TimelineFile {
  TimelineSource source = TimelineSource::predicted;
  std::string job;
  Candidate candidate;
  std::string plan_digest;                                      // digest_of(plans)
  std::string cluster;                                          // predicted: whose figures
  std::vector<std::pair<std::string, std::string>> provenance;  // device, driver, date, ... in order
  std::vector<RankTimeline> ranks;                              // ascending
};

inline constexpr int kTimelineJsonVersion = 2;

/// 16 hexadecimal digits that differ where plans differ in anything a replay does: ranks, streams, buffers, ops,
/// shards, types. Not the cluster's figures: durations of compute and host work do not count; nor what the job and
/// its parameters are called, and where shards lie in them.
std::string digest_of(std::span<const Plan> plans);

/// One repeat. Its step, its optimizer step and memory follow from summarize(); what only a run can know is left open.
/// Precondition: timeline has the plan's ops.
RankTimeline rank_timeline(const Plan& plan, const Timeline& timeline);

/// One line an op; the same file is always the same bytes. Preconditions: ranks ascending, each with as many steps as
/// updates.
std::string to_json(const TimelineFile& file);
/// InputError as in plan_json.hpp. At least one rank, each with at least one step (predicted: exactly one); no op ends
/// before it starts.
TimelineFile timeline_file_from_json(std::string_view text, const std::string& file);

}  // namespace ebb
