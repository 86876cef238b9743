// What torch's counters said in Megatron-LM runs, against the replay of the allocations that the trace predicts.
#include "planner/reserved.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/job_yaml.hpp"
#include "planner/constraints.hpp"
#include "planner/layer_tape.hpp"
#include "planner/ranks.hpp"
#include "planner/search.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/measured.hpp"
#include "tests/planner/lowering_cases.hpp"
#include "tests/planner/recorded.hpp"

using namespace ebb;

namespace {

constexpr Bytes kNoLimit{std::int64_t{1} << 50};

struct Run {
  std::string name;
  Job job;
  Candidate candidate;
  Bytes init_allocated{0};
  Bytes init_peak{0};
  nlohmann::json steps;  // [before, peak, after, reserved]

  Bytes last(int column) const { return {steps.back()[column].get<std::int64_t>()}; }
};

Policy policy_named(const std::string& name) {
  for (const Policy policy : kPolicies)
    if (name_of(policy) == name) return policy;
  throw std::runtime_error(name);
}

std::vector<Run> measured_runs() {
  std::ifstream file(EBB_TEST_DATA "/megatron/measured-memory.json");
  REQUIRE(file);
  std::vector<Run> runs;
  const nlohmann::json facts = nlohmann::json::parse(file);
  for (const nlohmann::json& fact : facts.at("runs")) {
    Run run;
    run.job = load_job(fact.at("job").get<std::string>());
    run.job.compute.adam = fact.at("adam") == "fused" ? AdamKernel::fused : AdamKernel::foreach;
    run.job.compute.adam_by_policy.clear();
    run.candidate.policy = policy_named(fact.at("policy"));
    run.candidate.chunk_numel.value = fact.value("chunk_numel", std::int64_t{0});
    run.candidate.chunk_size_mb = fact.value("chunk_size_mb", std::int64_t{0});
    run.name = run.job.name + ", " + fact.at("policy").get<std::string>() + ", " + fact.at("adam").get<std::string>() +
               " Adam, " + std::to_string(run.candidate.chunk_numel.value) + " elements, " +
               std::to_string(run.candidate.chunk_size_mb) + " MiB";
    run.init_allocated.value = fact.at("init")[0];
    run.init_peak.value = fact.at("init")[1];
    run.steps = fact.at("steps");
    runs.push_back(std::move(run));
  }
  return runs;
}

PredictedMemory predicted(const Run& run) {
  const StageLayout stage = stage_layout(run.job, 0);
  return predicted_memory(rank_model(run.job, stage, 0), run.candidate);
}

double error(Bytes predicted, Bytes measured) {
  return static_cast<double>(predicted.value) / static_cast<double>(measured.value) - 1;
}

}  // namespace

// Where a copy ends while the next allocations come, the measured figure changes from step to step: windowed took
// 25,516 to 27,586 MiB at 64 MiB a chunk and 26,518 to 27,588 at 512, full-reload 33,184 to 33,578.
TEST_CASE("every measured run: reserved memory within 2.6 percent, and to the byte where no copy is in flight") {
  std::size_t exact = 0;
  for (const Run& run : measured_runs()) {
    INFO(run.name);
    const PredictedMemory memory = predicted(run);
    const bool in_flight = run.candidate.policy == Policy::windowed && run.candidate.chunk_size_mb > 0;
    CHECK(std::abs(error(memory.reserved, run.last(3))) < (in_flight ? 0.026 : 0.012));
    exact += memory.reserved == run.last(3) ? 1 : 0;
  }
  CHECK(exact >= 6);
}

// The trace's pace of the host, and the number of tensors that it goes by.
TEST_CASE("the local layer's forward allocates as many tensors as torch did when the host's pace was measured") {
  const Job job = load_job("measured-1.8b-1xh200");
  const LayerTape tape = layer_tape(job, false);
  const auto predicted = std::count_if(tape.forward.begin(), tape.forward.end(),
                                       [](const LayerTape::Op& op) { return op.kind == LayerTape::Kind::allocate; });
  for (const nlohmann::json& line : test::measured("h200-eager-forward.jsonl", "eager"))
    CHECK(static_cast<double>(predicted) == line.at("forward_allocations_a_layer").get<double>());
}

TEST_CASE("every measured run: reserved memory after the first step within 2 percent, mostly to the byte") {
  std::size_t exact = 0;
  for (const Run& run : measured_runs()) {
    INFO(run.name);
    const Bytes measured{run.steps[0][3].get<std::int64_t>()};
    const PredictedMemory memory = predicted(run);
    CHECK(std::abs(error(memory.first_reserved, measured)) < 0.02);
    exact += memory.first_reserved == measured ? 1 : 0;
  }
  CHECK(exact == 9);
}

TEST_CASE("every measured run: allocated bytes from building the model to a later step within 64 KiB") {
  for (const Run& run : measured_runs()) {
    INFO(run.name);
    const PredictedMemory memory = predicted(run);
    const auto near = [](Bytes a, Bytes b) { return std::abs(a.value - b.value) < (64 << 10); };
    CHECK(near(memory.init_allocated, run.init_allocated));
    CHECK(near(memory.init_peak, run.init_peak));
    CHECK(near(memory.first_peak, {run.steps[0][1].get<std::int64_t>()}));
    CHECK(near(memory.allocated, run.last(2)));
    CHECK(near(memory.peak_allocated, run.last(1)));
  }
}

TEST_CASE("the measured 6.3 B job filled the device once, and torch gave its cache back") {
  const Run run = measured_runs().back();
  REQUIRE(run.job.name == "measured-6.3b-1xh200");
  const StageLayout stage = stage_layout(run.job, 0);
  const AllocationTrace trace = allocation_trace(rank_model(run.job, stage, 0), run.candidate);
  CHECK(predicted(run).retries == 1);
  const PredictedMemory unlimited = replay(trace, kNoLimit);
  CHECK(unlimited.retries == 0);
  CHECK(error(unlimited.reserved, run.last(3)) > 0.03);
}

TEST_CASE(
    "a device of what is reserved is enough, one of what is live is not, and a little less than reserved may be") {
  std::size_t with_less = 0;
  for (const Run& run : measured_runs()) {
    INFO(run.name);
    const StageLayout stage = stage_layout(run.job, 0);
    const AllocationTrace trace = allocation_trace(rank_model(run.job, stage, 0), run.candidate);
    const PredictedMemory memory = replay(trace, kNoLimit);
    CHECK(replay_within(trace, memory.peak_reserved).has_value());
    CHECK_FALSE(replay_within(trace, std::max(memory.peak_allocated, memory.init_peak) - Bytes{1}).has_value());
    with_less += replay_within(trace, Bytes{memory.peak_reserved.value / 100 * 98}).has_value() ? 1 : 0;
  }
  CHECK(with_less >= 5);
}

TEST_CASE("expandable segments leave a few percent between what is live and what is held") {
  for (const Run& run : measured_runs()) {
    INFO(run.name);
    const StageLayout stage = stage_layout(run.job, 0);
    const AllocationTrace trace = allocation_trace(rank_model(run.job, stage, 0), run.candidate);
    const PredictedMemory whole = replay(trace, kNoLimit);
    const PredictedMemory grown = replay(trace, kNoLimit, {.expandable_segments = true});
    CHECK(grown.reserved <= whole.reserved);
    // Masters on their way out are held, not allocated.
    if (run.candidate.policy != Policy::windowed) CHECK(error(grown.reserved, grown.peak_allocated) < 0.02);
  }
}

namespace {

/// How far the trace's peak may lie from the plan's. Without Transformer Engine clipping copies a shard, which shows
/// where all state is on the device then. A windowed slot grows while its old buffer is still there; and the plan holds
/// unfused Adam's scratch for the largest chunk of all optimizers at once.
std::pair<double, double> tolerance(const RankModel& rank, Policy policy) {
  if (policy == Policy::windowed) return {-0.015, 0.03};
  // The plan fills what its cap leaves with pieces; in the trace they never stand beside activations. It tells apart
  // only where the cap is above both peaks, as with the few large pieces here.
  if (policy == Policy::tidal) return {-0.012, 0.001};
  const bool local = rank.job->compute.attention == Attention::local;
  return {-0.0005, policy == Policy::full_reload && local ? 0.013 : 0.001};
}

}  // namespace

TEST_CASE("trace and plan agree in what is live, between steps and at the peak") {
  for (const test::RankCase& of : test::rank_cases()) {
    for (const Candidate& candidate : test::candidates_for(of.rank)) {
      INFO(of.name << ", " << name_of(candidate.policy) << " " << candidate.chunk_size_mb << " MiB "
                   << candidate.fraction << " " << candidate.chunk_numel.value);
      const Plan plan = lower(of.rank, candidate);
      const StepSummary summary = summarize(plan, sim::simulate(plan, of.job->cluster, {}));
      Bytes between{0};
      for (const Buffer& buffer : plan.buffers)
        if (buffer.memory == Memory::device && buffer.initial) between += buffer.bytes;
      const PredictedMemory memory = replay(allocation_trace(of.rank, candidate), kNoLimit);
      const auto [least, most] = tolerance(of.rank, candidate.policy);
      CHECK(std::abs(error(memory.allocated, between)) < 0.001);
      CHECK(error(memory.peak_allocated, summary.peak_allocated) > least);
      CHECK(error(memory.peak_allocated, summary.peak_allocated) < most);
    }
  }
}

// The 7 B case on eight virtual stages keeps four hidden states (256 MiB) that nothing explains; with one, two and
// three virtual stages nothing is left.
TEST_CASE("recorded dense cases: allocated between steps by replay within 8 MiB, 15 B within 46, eight stages 260") {
  for (const tests::RecordedCase& recorded : tests::recorded_dense_cases()) {
    if (!recorded.distributed_optimizer) continue;
    INFO(recorded.id);
    Job job = recorded.job;
    job.cluster = load_job("llama3-8b-hgx-h200").cluster;
    const test::RankCase of = test::rank_case(recorded.id, job, job.parallel.pipeline - 1, job.parallel.gpus - 1);
    const PredictedMemory memory = replay(allocation_trace(of.rank, {}), kNoLimit);
    const std::int64_t off = std::abs(memory.allocated.value - recorded.allocated.value) >> 20;
    const bool eight_stages = recorded.id == "gpt3_7b_tp1_pp4_memory_speed";
    CHECK(off < (recorded.id == "gpt3_15b_8t_release_sm" ? 46 : eight_stages ? 260 : 8));
  }
}

TEST_CASE("every rank of an interleaved pipeline keeps as many micro-batches alive as its plan says") {
  for (const auto& [pipeline, virtual_pipeline] : {std::pair{4, 3}, std::pair{4, 1}}) {
    Job job = tests::small_gpt(1, pipeline, virtual_pipeline);
    job.cluster = load_job("llama3-8b-hgx-h200").cluster;
    job.batch.global = 64;
    for (std::int64_t rank = 0; rank < pipeline; ++rank) {
      INFO("pipeline rank " << rank << " of " << pipeline << " x " << virtual_pipeline);
      const test::RankCase of = test::rank_case("pipeline", job, rank, rank * job.parallel.gpus / pipeline);
      const Plan plan = lower(of.rank, {});
      const StepSummary summary = summarize(plan, sim::simulate(plan, job.cluster, {}));
      const PredictedMemory memory = replay(allocation_trace(of.rank, {}), kNoLimit);
      CHECK(std::abs(error(memory.peak_allocated, summary.peak_allocated)) < 0.003);
    }
  }
}

TEST_CASE("what is shown as fitting runs on every rank, and needs no more than shown, to 2.5 %") {
  for (const char* name : {"gpt3-175b-dgx-a100", "mixtral-8x7b-hgx-h200", "llama3-405b-gb200-nvl72"}) {
    const Job job = load_job(std::string(EBB_SOURCE_DIR "/models/jobs/") + name + ".yaml");
    check(job);
    const RankSet ranks(job);
    SearchOptions options;
    options.likely = true;
    std::size_t fitting = 0;
    for (const Answer& row : search(job, options).candidates) {
      if (!row.fits_device) continue;
      ++fitting;
      for (const RankModel& rank : ranks.ranks()) {
        INFO(name << " " << name_of(row.candidate.policy) << " N " << row.candidate.chunk_numel.value);
        const auto memory = replay_within(allocation_trace(rank, row.candidate), device_budget_of(job));
        REQUIRE(memory.has_value());
        CHECK(static_cast<double>(memory->peak_reserved.value) <=
              1.025 * static_cast<double>(row.device_reserved.value));
      }
    }
    CHECK(fitting >= 4);
  }
}
