// Timelines that were replayed on a GPU (a folder of tests/data/replay), each with what is planned and predicted for
// its job and candidate today.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/cluster_yaml.hpp"
#include "models/job_yaml.hpp"
#include "models/text_file.hpp"
#include "models/timeline_file.hpp"
#include "planner/host_plans.hpp"
#include "planner/prediction.hpp"

namespace ebb::test {

struct Replayed {
  std::string name;
  TimelineFile measured;
  HostPlans planned;
};

inline std::filesystem::path measured_folder(const std::string& name) {
  return std::filesystem::path(EBB_TEST_DATA) / "replay" / name;
}

inline Job job_called(const std::string& name) {
  const auto own = std::filesystem::path(EBB_SOURCE_DIR) / "tests" / "gpu" / (name + ".yaml");
  return load_job(std::filesystem::exists(own) ? own.string() : name);
}

/// By file name: the order of a directory is nobody's promise. `cluster`: what the jobs were planned for, where it is
/// not their own.
inline std::vector<Replayed> replayed_in(const std::filesystem::path& folder,
                                         const std::optional<Cluster>& cluster = std::nullopt) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().string().ends_with(".measured.json")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::map<std::string, Job> jobs;
  std::vector<Replayed> result;
  for (const std::filesystem::path& file : files) {
    constexpr std::int64_t kMost = 64 << 20;
    Replayed replay{.name = file.filename().string(),
                    .measured = timeline_file_from_json(read_text_file(file, kMost), file.string()),
                    .planned = {}};
    auto job = jobs.find(replay.measured.job);
    if (job == jobs.end()) {
      job = jobs.emplace(replay.measured.job, job_called(replay.measured.job)).first;
      if (cluster) job->second.cluster = *cluster;
    }
    replay.planned = host_plans(job->second, replay.measured.candidate);
    result.push_back(std::move(replay));
  }
  return result;
}

inline double seconds(Ticks ticks) { return to_seconds(ticks).value; }
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
inline double median_of(const std::vector<Ticks>& ticks) {
  std::vector<double> values;
  for (const Ticks t : ticks) values.push_back(seconds(t));
  return median(values);
}

/// How far the medians of what was measured are off, as parts of the prediction with that host's cluster.
struct Off {
  double step;
  double update;
};
inline Off off(const Replayed& replay, const Cluster& cluster) {
  const std::vector<Timeline> timelines = simulate_plans(replay.planned.plans, cluster, replay.name);
  const RankTimeline predicted = rank_timeline(replay.planned.plans[0], timelines[0]);
  const RankTimeline& measured = replay.measured.ranks[0];
  return {.step = std::abs(median_of(measured.steps) / seconds(predicted.steps[0]) - 1),
          .update = std::abs(median_of(measured.updates) / seconds(predicted.updates[0]) - 1)};
}

/// Live bytes equal the predicted ones in every phase, and host memory.
inline bool memory_as_planned(const Replayed& replay) {
  const MemoryFigures predicted = rank_timeline(replay.planned.plans[0], replay.planned.timelines[0]).memory;
  const MemoryFigures& measured = replay.measured.ranks[0].memory;
  return measured.live_peak == predicted.live_peak && measured.live_by_phase == predicted.live_by_phase &&
         measured.pinned == predicted.pinned && measured.pageable == predicted.pageable;
}

/// Ops that started before something that they depend on had ended.
///
/// On one clock, the device's or the host's, no slack: of some 30,000 pairs of device ops none is closer than 1.1 us.
/// From the host to the device the two clocks' zeros count too: the host reads its own just before it opens the gate,
/// the device's is the first event behind the gate, some microseconds later. So device times are that much early: the
/// thread that did a host op enqueues what waits for it only afterwards, yet starts up to 5.3 us before its end are in
/// the files.
inline std::size_t early_starts(const Replayed& replay) {
  constexpr Ticks kBetweenZeros = Ticks{10'000'000};  // 10 us
  const Plan& plan = replay.planned.plans[0];
  const std::vector<OpSpan>& spans = replay.measured.ranks[0].ops;
  const auto on_host = [&](const Op& op) { return plan.streams[op.stream.index].kind == StreamKind::host; };
  std::vector<Ticks> stream_end(plan.streams.size(), Ticks{0});
  std::size_t early = 0;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    Ticks ready = stream_end[op.stream.index];
    for (const OpId dep : plan.deps_of(op)) {
      const bool host_to_device = on_host(plan.ops[dep.index]) && !on_host(op);
      const Ticks end = spans[dep.index].end;
      ready = std::max(ready, host_to_device ? end - kBetweenZeros : end);
    }
    if (spans[i].start < ready) ++early;
    stream_end[op.stream.index] = spans[i].end;
  }
  return early;
}

}  // namespace ebb::test
