// Proves that the sentence of `ebb diff` names the one figure in which two predictions of a plan differ, in whichever
// direction, for the policies where that figure counts; that charged seconds add up to the step; and when two files are
// of one plan and when a comparison fails.
#include "planner/diff.hpp"

#include <functional>

#include "models/job_yaml.hpp"
#include "planner/diff_assumption.hpp"
#include "planner/diff_exposure.hpp"
#include "planner/host_plans.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;

namespace {

TimelineFile predict(const Job& job, const Candidate& candidate) {
  const HostPlans host = host_plans(job, candidate);
  TimelineFile file;
  file.job = job.name;
  file.candidate = candidate;
  file.plan_digest = digest_of(host.plans);
  file.cluster = job.cluster.name;
  for (std::size_t i = 0; i < host.plans.size(); ++i)
    file.ranks.push_back(rank_timeline(host.plans[i], host.timelines[i]));
  return file;
}

using Change = std::function<void(Job&)>;

/// The sentence where `change` is what a prediction did not know.
std::string sentence(const Job& job, const Candidate& candidate, const Change& change) {
  Job changed = job;
  change(changed);
  const reports::DiffReport report =
      diff(predict(job, candidate), predict(changed, candidate), 0.05, "predicted.json", "measured.json");
  return report.decides().verdict;
}

Job one_gpu() { return load_job("measured-1.8b-1xh200"); }

/// No collective runs beside anything.
Job eight_gpus() {
  Job job = load_job("llama3-8b-hgx-h200");
  job.parallel.overlap_grad_reduce = job.parallel.overlap_param_gather = false;
  job.batch.global = 8;
  return job;
}

const Candidate kResident{.policy = Policy::resident};
const Candidate kChunked{.policy = Policy::chunked, .chunk_numel = {200'000'000}};
const Candidate kPipelined{.policy = Policy::pipelined, .chunk_numel = {4 << 20}, .slots = 3};
const Candidate kWindowed{.policy = Policy::windowed, .chunk_size_mb = 256};
const Candidate kReload{.policy = Policy::full_reload};
const Candidate kCpuAdam{.policy = Policy::cpu_adam};

struct Case {
  const char* figure;
  Candidate candidate;
  Change change;
};

void scale_both(Job& job, double factor) {
  HostLink& link = job.cluster.host_link;
  link.both.value.value *= factor;
  for (SizedRate& size : link.both_by_size.value) size.rate.value *= factor;
}

OpSpan span(OpKind kind, Work work, Phase phase, std::int64_t start, std::int64_t end, std::int64_t bytes = 0) {
  return {.kind = kind, .phase = phase, .work = work, .bytes = {bytes}, .start = {start}, .end = {end}};
}

}  // namespace

TEST_CASE("diff: the sentence names the figure that is off, for one GPU") {
  const std::vector<Case> cases = {
      {"host_link.h2d", kChunked, [](Job& j) { j.cluster.host_link.h2d.value.value *= 0.8; }},
      {"host_link.h2d", kPipelined, [](Job& j) { j.cluster.host_link.h2d.value.value *= 0.6; }},
      {"host_link.h2d", kReload, [](Job& j) { j.cluster.host_link.h2d.value.value *= 0.8; }},
      {"host_link.d2h", kChunked, [](Job& j) { j.cluster.host_link.d2h.value.value *= 0.8; }},
      {"host_link.d2h", kPipelined, [](Job& j) { j.cluster.host_link.d2h.value.value *= 0.6; }},
      {"host_link.both", kPipelined, [](Job& j) { scale_both(j, 0.7); }},
      {"host_link.both", kWindowed, [](Job& j) { scale_both(j, 0.7); }},
      {"gpu.adam", kResident, [](Job& j) { j.cluster.gpu.adam.value.value *= 0.6; }},
      {"gpu.adam", kChunked, [](Job& j) { j.cluster.gpu.adam.value.value *= 0.6; }},
      {"gpu.adam_foreach", kWindowed, [](Job& j) { j.cluster.gpu.adam_foreach.value.value *= 0.1; }},
      {"gpu.hbm", kResident, [](Job& j) { j.cluster.gpu.hbm.value.value *= 0.8; }},
      {"calls.chunk", kChunked, [](Job& j) { j.cluster.calls.chunk.value.value *= 4; }},
      {"calls.tensor_scan", kChunked, [](Job& j) { j.cluster.calls.tensor_scan.value.value *= 20; }},
      {"calls.launch", kResident, [](Job& j) { j.cluster.calls.launch.value.value *= 60; }},
      {"host.cpu_adam", kCpuAdam, [](Job& j) { j.cluster.host.cpu_adam.value.value *= 0.8; }},
      {"gpu.compute_efficiency", kResident, [](Job& j) { j.compute.step_seconds = Seconds{0.6}; }},
      {"gpu.compute_efficiency", kPipelined, [](Job& j) { j.compute.step_seconds = Seconds{0.6}; }},
  };
  for (const Case& c : cases) {
    INFO(c.figure << " with " << name_of(c.candidate.policy));
    const Job job = one_gpu();
    Job changed = job;
    c.change(changed);
    const std::string slower = sentence(job, c.candidate, c.change);
    // The same figure, had the prediction been too pessimistic.
    const std::string faster = sentence(changed, c.candidate, [&job](Job& j) { j = job; });
    INFO(slower << "\n" << faster);
    CHECK(slower.find(std::string("(") + c.figure + " of cluster h200-1gpu") != std::string::npos);
    CHECK(faster.find(std::string("(") + c.figure + " of cluster h200-1gpu") != std::string::npos);
    CHECK(slower.find("difference") != std::string::npos);
  }
}

TEST_CASE("diff: small errors everywhere else do not hide the one that counts") {
  const auto shaken = [](Job& j) {
    Cluster& c = j.cluster;
    c.host_link.h2d.value.value *= 0.85;
    c.host_link.d2h.value.value *= 1.01;
    c.gpu.adam.value.value *= 0.98;
    c.gpu.hbm.value.value *= 1.01;
    c.calls.launch.value.value *= 1.5;
    c.calls.synchronize.value.value *= 2;
    c.calls.copy.value.value *= 1.3;
    j.compute.step_seconds->value *= 0.995;
  };
  const std::string said = sentence(one_gpu(), kChunked, shaken);
  INFO(said);
  CHECK(said.find("(host_link.h2d of cluster h200-1gpu)") != std::string::npos);
}

TEST_CASE("diff: of two directions that are off, each alone, the one that counts more is named with its share") {
  const std::string said = sentence(one_gpu(), kChunked, [](Job& j) {
    j.cluster.host_link.h2d.value.value *= 0.95;
    j.cluster.host_link.d2h.value.value *= 0.8;
  });
  INFO(said);
  CHECK(said.find("(host_link.d2h of cluster h200-1gpu): 83 % of") != std::string::npos);  // 1/4 against 1/19
}

TEST_CASE("diff: errors that cancel out are named as such") {
  const std::string said = sentence(one_gpu(), kChunked, [](Job& j) {
    j.cluster.host_link.h2d.value.value *= 0.9;
    j.cluster.calls.chunk.value.value *= 0.1;
  });
  INFO(said);
  CHECK(said.find("(host_link.h2d of cluster h200-1gpu): +") != std::string::npos);
  CHECK(said.find("which others partly make up for") != std::string::npos);
}

TEST_CASE("diff: the sentence names NVLink where collectives are exposed") {
  const Job job = eight_gpus();
  const auto slower_nvlink = [](Job& j) { j.cluster.interconnect.nvlink.value.value *= 0.5; };
  for (const Candidate& candidate : {kResident, kChunked}) {
    const std::string said = sentence(job, candidate, slower_nvlink);
    INFO(said);
    CHECK(said.find("(interconnect.nvlink of cluster hgx-h200)") != std::string::npos);
  }
}

TEST_CASE("diff: one direction held back by what all GPUs share names both figures") {
  const std::string said =
      sentence(eight_gpus(), kChunked, [](Job& j) { j.cluster.host_link.host_one_way.value.value *= 0.5; });
  INFO(said);
  CHECK(said.find("host_link.host_one_way") != std::string::npos);
}

TEST_CASE("diff: the same prediction twice leaves nothing to say") {
  for (const Candidate& candidate : {kResident, kChunked, kPipelined, kCpuAdam}) {
    const TimelineFile file = predict(one_gpu(), candidate);
    const reports::DiffReport report = diff(file, file, 0.0, "a", "b");
    CHECK(report.decides().verdict == "nothing stands out: every class is within 1 %.");
    CHECK(report.failures.empty());
    CHECK(report.decides().step.relative() == 0);
  }
}

TEST_CASE("diff: exposed seconds of all classes add up to the step") {
  for (const Candidate& candidate : {kResident, kChunked, kPipelined, kWindowed, kReload, kCpuAdam}) {
    const TimelineFile file = predict(one_gpu(), candidate);
    const RankTimeline& rank = file.ranks.front();
    const Exposure exposure = exposure_of(rank.ops, step_window(rank.ops));
    double sum = 0;
    for (const double seconds : exposure.exposed) sum += seconds;
    CHECK(sum == Approx(to_seconds(rank.steps.front()).value).epsilon(1e-12));
    const auto windows = phase_windows(rank.ops);
    for (const auto& [phase, window] : windows)
      if (phase == Phase::step) CHECK(window.end - window.begin == rank.updates.front());
  }
}

TEST_CASE("diff: each moment is charged to the first class of the list that runs") {
  const std::vector<OpSpan> ops = {
      span(OpKind::compute, Work::none, Phase::forward, 0, 100),
      span(OpKind::copy_h2d, Work::none, Phase::forward, 50, 200),  // 50 of it behind compute
      span(OpKind::copy_d2h, Work::none, Phase::step, 150, 250),    // both from 150 to 200
      span(OpKind::kernel, Work::adam, Phase::step, 240, 300),      // from 250
      span(OpKind::host_wait, Work::none, Phase::step, 0, 340),     // never
      span(OpKind::kernel, Work::cast, Phase::step, 340, 350),      // after waiting for its launch
  };
  const Exposure exposure = exposure_of(ops, step_window(ops));
  const auto ticks = [&](OpClass cls) { return exposure[cls] * static_cast<double>(kTicksPerSecond); };
  CHECK(ticks(OpClass::compute) == Approx(100));
  CHECK(ticks(OpClass::copies_in) == Approx(50));
  CHECK(ticks(OpClass::copies_both) == Approx(50));
  CHECK(ticks(OpClass::copies_out) == Approx(50));
  CHECK(ticks(OpClass::adam) == Approx(50));
  CHECK(ticks(OpClass::wait_kernel) == Approx(40));
  CHECK(ticks(OpClass::cast) == Approx(10));
  CHECK(exposure.busy[static_cast<std::size_t>(OpClass::copies_in)] * static_cast<double>(kTicksPerSecond) ==
        Approx(150));
}

TEST_CASE("diff: rates of copies alone and beside the other direction") {
  // 10 bytes a tick alone, 4 into and 3 out of the device at once.
  const std::vector<OpSpan> ops = {
      span(OpKind::copy_h2d, Work::none, Phase::step, 0, 100, 1000),
      span(OpKind::copy_h2d, Work::none, Phase::step, 100, 200, 50 * 10 + 50 * 4),
      span(OpKind::copy_h2d, Work::none, Phase::step, 200, 300, 100 * 4),
      span(OpKind::copy_d2h, Work::none, Phase::step, 150, 250, 300),
      span(OpKind::copy_d2h, Work::none, Phase::step, 250, 300, 150),
  };
  const double per_tick = static_cast<double>(kTicksPerSecond);
  const CopyRegimes in = copy_regimes(ops, OpKind::copy_h2d);
  CHECK(in.alone == Approx(10 * per_tick));
  CHECK(in.both == Approx(4 * per_tick));
  const CopyRegimes out = copy_regimes(ops, OpKind::copy_d2h);
  CHECK(out.alone == 0);  // never
  CHECK(out.both == Approx(3 * per_tick));
}

TEST_CASE("diff: files of different plans are refused with both plans named") {
  const TimelineFile a = predict(one_gpu(), kChunked);
  const TimelineFile b = predict(one_gpu(), kPipelined);
  const std::string error = error_of([&] { diff(a, b, 0.05, "a.json", "b.json"); });
  CHECK(error.find("b.json: this is of another plan: measured-1.8b-1xh200 (pipelined, chunks of 4,194,304, 3 slots) on "
                   "rank 0, while a.json is of measured-1.8b-1xh200 (chunked, chunks of 200,000,000) on rank 0") == 0);
  TimelineFile forged = b;
  forged.plan_digest = a.plan_digest;  // the digest alone is not believed
  CHECK_FALSE(error_of([&] { diff(a, forged, 0.05, "a.json", "b.json"); }).empty());
  TimelineFile other_rank = a;
  other_rank.ranks.front().rank = 1;
  CHECK_FALSE(error_of([&] { diff(a, other_rank, 0.05, "a.json", "b.json"); }).empty());
}

TEST_CASE("diff: it fails above the threshold, or when a live byte differs") {
  const TimelineFile predicted = predict(one_gpu(), kChunked);
  TimelineFile measured = predicted;
  measured.source = TimelineSource::measured;
  RankTimeline& rank = measured.ranks.front();
  const std::int64_t step = rank.steps.front().value;
  const std::int64_t update = rank.updates.front().value;
  rank.steps = {{step * 102 / 100}, {step * 104 / 100}, {step * 103 / 100}};
  rank.updates = {{update}, {update}, {update}};
  const reports::DiffReport report = diff(predicted, measured, 0.05, "a", "b");
  CHECK(report.failures.empty());
  CHECK(report.decides().step.relative() == Approx(0.03));
  CHECK(report.decides().step.least.value == Approx(1.02 * report.decides().step.predicted.value));
  CHECK(report.decides().step.most.value == Approx(1.04 * report.decides().step.predicted.value));
  CHECK(report.decides().repeats == 3);
  REQUIRE(diff(predicted, measured, 0.02, "a", "b").failures.size() == 1);
  rank.updates = {{update * 2}, {update * 2}, {update * 2}};
  REQUIRE(diff(predicted, measured, 0.05, "a", "b").failures.size() == 1);
  rank.updates = {{update}, {update}, {update}};
  rank.memory.live_by_phase.back().second += Bytes{1};
  REQUIRE(diff(predicted, measured, 0.05, "a", "b").failures ==
          std::vector<std::string>{"live bytes of rank 0 differ"});
}
