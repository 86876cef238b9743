// A job's life phase by phase: against what Megatron-LM runs took, against public reports of jobs that died outside
// their steps, and against what each policy promises (no spike in init and save where state lies on the host).
#include "planner/life.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/job_yaml.hpp"
#include "planner/checkpoint_tensors.hpp"
#include "planner/chunking.hpp"
#include "planner/constraints.hpp"
#include "planner/life_replay.hpp"
#include "planner/life_time.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/ranks.hpp"
#include "planner/weight_bytes.hpp"
#include "tests/catch.hpp"
#include "tests/planner/lowering_cases.hpp"

using namespace ebb;

namespace {

LifePhase phase_of(const Life& life, Phase phase, bool later = false) {
  const auto found = std::find_if(life.phases.begin(), life.phases.end(), [&](const LifePhase& candidate) {
    return candidate.phase == phase && candidate.later == later;
  });
  REQUIRE(found != life.phases.end());
  return *found;
}

PartMemory part_of(const LifeMemory& life, Phase phase) {
  const auto found =
      std::find_if(life.parts.begin(), life.parts.end(), [&](const PartMemory& part) { return part.phase == phase; });
  REQUIRE(found != life.parts.end());
  return *found;
}

Bytes sum_of(const BytesByTerm& terms) {
  Bytes sum{0};
  for (const Bytes bytes : terms) sum += bytes;
  return sum;
}

LifeMemory life_memory(const RankModel& rank, const Candidate& candidate, std::optional<Start> start = {}) {
  return replay_life(allocation_trace(rank, candidate, {.start = start, .whole_life = true}), kUnlimited);
}

std::vector<std::string> library_jobs() {
  return {"llama3-8b-hgx-h200",       "llama3-70b-hgx-h200",      "mixtral-8x7b-hgx-h200", "qwen3-30b-a3b-hgx-h100",
          "deepseek-v2-lite-4xgh200", "nemotron4-15b-hgx-h100",   "llama3.2-1b-rtx4090",   "measured-1.8b-1xh200",
          "qwen3-8b-rtxpro6000",      "qwen3-235b-a22b-hgx-h100", "deepseek-v3-2048xh200"};
}

/// The largest chunk's state.
Bytes largest_chunk(const RankModel& rank, Numel numel) {
  Bytes most{0};
  for (const Chunk& chunk : chunk_by_numel(rank.shards, numel)) {
    const auto shards = std::span(rank.shards).subspan(chunk.first, chunk.count);
    most = std::max(most, allocated_state(rank.job->precision, shards, kAllState));
  }
  return most;
}

/// State bytes on the device at a peak.
Bytes state_in(const PartMemory& part) {
  return part.at_peak[static_cast<std::size_t>(MemoryTerm::masters)] +
         part.at_peak[static_cast<std::size_t>(MemoryTerm::moments)];
}

const Candidate kChunked{.policy = Policy::chunked, .chunk_numel = {100'000'000}};

struct Fact {
  Job job;
  Candidate candidate;
  Bytes init_peak{0};
  Bytes first_peak{0};
  Bytes steady_peak{0};
  Bytes between{0};
};

std::vector<Fact> measured_facts() {
  std::ifstream file(EBB_TEST_DATA "/megatron/measured-memory.json");
  std::vector<Fact> facts;
  const nlohmann::json document = nlohmann::json::parse(file);
  for (const nlohmann::json& run : document.at("runs")) {
    Fact fact;
    fact.job = load_job(run.at("job").get<std::string>());
    fact.job.compute.adam = run.at("adam") == "fused" ? AdamKernel::fused : AdamKernel::foreach;
    fact.job.compute.adam_by_policy.clear();
    const std::string policy = run.at("policy");
    fact.candidate.policy =
        *std::find_if(kPolicies.begin(), kPolicies.end(), [&](Policy known) { return name_of(known) == policy; });
    fact.candidate.chunk_numel.value = run.value("chunk_numel", std::int64_t{0});
    fact.candidate.chunk_size_mb = run.value("chunk_size_mb", std::int64_t{0});
    fact.init_peak.value = run.at("init")[1];
    fact.first_peak.value = run.at("steps")[0][1];
    fact.steady_peak.value = run.at("steps").back()[1];
    fact.between.value = run.at("steps").back()[2];
    facts.push_back(std::move(fact));
  }
  return facts;
}

bool near(Bytes a, Bytes b) { return std::abs(a.value - b.value) < (64 << 10); }

}  // namespace

TEST_CASE("every measured run: the peaks of init, first step and steady step within 64 KiB of what torch counted") {
  const std::vector<Fact> facts = measured_facts();
  REQUIRE(facts.size() >= 11);
  for (const Fact& fact : facts) {
    INFO(fact.job.name << " " << name_of(fact.candidate.policy));
    const StageLayout stage = stage_layout(fact.job, 0);
    const LifeMemory life = life_memory(rank_model(fact.job, stage, 0), fact.candidate);
    CHECK(near(part_of(life, Phase::init).peak_allocated, fact.init_peak));
    CHECK(near(part_of(life, Phase::first_step).peak_allocated, fact.first_peak));
    Bytes steady{0};
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::finalize, Phase::step})
      steady = std::max(steady, part_of(life, phase).peak_allocated);
    CHECK(near(steady, fact.steady_peak));
    CHECK(near(part_of(life, Phase::skip).allocated, fact.between));
  }
}

// Measured: saving the 1.8 B job's torch_dist checkpoint peaked at 31,386.9 MiB where 31,386.5 are alive between steps,
// and took 25.8 GiB of host memory on top.
TEST_CASE("the measured save: no device memory, and the rank's part of the checkpoint on the host") {
  const Job job = load_job("measured-1.8b-1xh200");
  const Answer answer = evaluate(job, {});
  const LifePhase save = phase_of(life_of(job, answer), Phase::save);
  CHECK(std::abs(static_cast<double>(save.device_peak.value) / (1 << 20) - 31386.9) < 1.0);
  CHECK(save.host.pageable > Bytes{23LL << 30});
  CHECK(save.host.pageable < Bytes{26LL << 30});
  CHECK_FALSE(save.storage_known);
  CHECK(save.stored == save.host.pageable);
}

TEST_CASE("the terms of every peak add up to it, whatever the policy") {
  for (const test::RankCase& of : test::rank_cases())
    for (const Candidate& candidate : test::candidates_for(of.rank))
      for (const Start start : {Start::fresh, Start::resume, Start::no_load_optim}) {
        INFO(of.name << ", " << name_of(candidate.policy));
        const LifeMemory life = life_memory(of.rank, candidate, start);
        for (const PartMemory& part : life.parts) {
          INFO(name_of(part.phase));
          CHECK(sum_of(part.at_peak) == part.peak_allocated);
          CHECK(part.peak_reserved >= part.peak_allocated);
        }
      }
}

TEST_CASE("a skipped step and a save leave what they found, and the step after them is like the one before") {
  for (const test::RankCase& of : test::rank_cases())
    for (const Candidate& candidate : test::candidates_for(of.rank)) {
      INFO(of.name << ", " << name_of(candidate.policy));
      const LifeMemory life = life_memory(of.rank, candidate);
      const PartMemory skip = part_of(life, Phase::skip);
      // Column-wise copies of FP8 weights that forward made stay, for nothing is quantised.
      CHECK(skip.began_with + of.rank.footprint.lazy_columns == skip.allocated);
      const PartMemory save = part_of(life, Phase::save);
      CHECK(save.began_with == skip.began_with);
      // Masters of `windowed` leave for a save, and come back with the next step.
      if (candidate.policy != Policy::windowed) CHECK(save.began_with == save.allocated);
      CHECK(save.allocated <= save.began_with);
    }
}

TEST_CASE(
    "column-wise copies of FP8 weights: lazy ones are away through a save, eager ones and a step's peak hold them") {
  for (const Columnwise columnwise : {Columnwise::automatic, Columnwise::eager}) {
    Job job = load_job("deepseek-v3-2048xh200");
    job.precision.fp8_columnwise = columnwise;
    const RankSet ranks(job);
    const RankModel& rank = ranks.ranks().front();
    const LifeMemory life = life_memory(rank, kChunked);
    const auto copies = [&](Phase phase) {
      return part_of(life, phase).at_peak[static_cast<std::size_t>(MemoryTerm::weight_copies)];
    };
    const WeightCopies all = weight_copies(job, *rank.stage);
    CHECK(all.columns_bytes().value > 0);
    // A block may be up to a MiB larger than what was asked of it.
    const auto holds = [&](Bytes held, Bytes asked) {
      return held >= asked && held <= asked + Bytes{asked.value / 100};
    };
    const bool eager = columnwise == Columnwise::eager;
    CHECK(holds(copies(Phase::save), weight_copies_between_steps(job, *rank.stage)));
    CHECK(holds(copies(Phase::save), all.always_bytes() + (eager ? all.columns_bytes() : Bytes{0})));
    CHECK(holds(copies(Phase::step), all.always_bytes() + all.columns_bytes()));
  }
}

TEST_CASE("chunked has no spike in init and save over the whole library, and none in the first step") {
  for (const std::string& name : library_jobs()) {
    INFO(name);
    const Job job = load_job(name);
    const RankSet ranks(job);
    const RankModel& rank = ranks.ranks().front();
    const LifeMemory life = life_memory(rank, kChunked);
    const Bytes chunk = largest_chunk(rank, kChunked.chunk_numel);
    // Nothing but the model, its buffers and one shard on its way to the host.
    const PartMemory init = part_of(life, Phase::init);
    CHECK(state_in(init) <= chunk);
    const PartMemory save = part_of(life, Phase::save);
    CHECK(save.peak_allocated == save.began_with);
    const Bytes scales = allocated_scales(job.precision, rank.shards);  // of bf16 moments, which nothing moves
    CHECK(state_in(save) == scales);
    for (const Phase phase : {Phase::first_step, Phase::step, Phase::skip})
      CHECK(state_in(part_of(life, phase)) <= chunk + scales);
    CHECK(part_of(life, Phase::step).peak_allocated <= save.began_with + rank.footprint.lazy_columns + chunk +
                                                           rank.footprint.step_temporaries +
                                                           Bytes{rank.footprint.step_temporaries.value / 50} + (1_MiB));
  }
}

TEST_CASE("full-reload and a resume materialise the whole state, windows and Ebb's slots do not") {
  for (const std::string& name : library_jobs()) {
    INFO(name);
    const Job job = load_job(name);
    const RankSet ranks(job);
    const RankModel& rank = ranks.ranks().front();
    const Bytes all = bytes_of(rank.owned, job.precision.moment_bytes() + job.precision.master_bytes());
    const auto loaded = [&](const Candidate& candidate) {
      return state_in(part_of(life_memory(rank, candidate, Start::resume), Phase::load));
    };
    CHECK(loaded({.policy = Policy::resident}) >= all);
    CHECK(loaded({.policy = Policy::full_reload}) >= all);
    CHECK(loaded(kChunked) >= all);
    CHECK(loaded({.policy = Policy::pipelined, .chunk_numel = {4'194'304}, .slots = 3}) == Bytes{0});
    const Candidate windowed{.policy = Policy::windowed, .chunk_size_mb = 256};
    CHECK(loaded(windowed) < all);
    CHECK(state_in(part_of(life_memory(rank, {.policy = Policy::full_reload}), Phase::step)) >= all);
    // Afterwards it is on the host again.
    const LifeMemory chunked = life_memory(rank, kChunked, Start::resume);
    CHECK(part_of(chunked, Phase::load).allocated == part_of(chunked, Phase::init).allocated);
    const LifeMemory without = life_memory(rank, kChunked, Start::no_load_optim);
    CHECK(state_in(part_of(without, Phase::load)) <= largest_chunk(rank, kChunked.chunk_numel));
  }
}

// NVIDIA/Megatron-LM issue 1746: a model of 20 B parameters on four pipeline stages and two data-parallel ranks,
// about 5.014e9 parameters a rank, half of which it owns; a load allocates 19,128.37 MiB in the optimizer's loader, on
// top of the state: both moments, which is 4 B a parameter of the rank.
TEST_CASE("report 21: a load holds both moments once more") {
  Job job = load_job("llama3-8b-hgx-h200");
  job.parallel.gpus = 2;
  job.batch.global = 8;
  const StageLayout stage = stage_layout(job, 0);
  RankModel rank = rank_model(job, stage, 0);
  const LifeMemory life = life_memory(rank, {}, Start::resume);
  const Bytes again = part_of(life, Phase::load).at_peak[static_cast<std::size_t>(MemoryTerm::checkpoint)];
  const double per_parameter = static_cast<double>(again.value) / static_cast<double>(stage.padded().value);
  CHECK(std::abs(per_parameter - 4) < 0.01);
  CHECK(std::abs(5.014e9 * per_parameter / (1 << 20) - 19128.37) < 19128.37 * 0.003);
}

// NVIDIA/Megatron-LM pull request 4638 (report 24): a fresh run fits and its resume does not, because states are there
// before the first forward. Report 29 (verl pull request 1349): what comes with the first step must be reckoned with.
TEST_CASE("reports 24 and 29: after a resume the first step holds the state from its start, a fresh one gains it") {
  for (const std::string& name : library_jobs()) {
    INFO(name);
    const Job job = load_job(name);
    const RankSet ranks(job);
    const RankModel& rank = ranks.ranks().front();
    const LifeMemory fresh = life_memory(rank, {});
    const LifeMemory resumed = life_memory(rank, {}, Start::resume);
    const Bytes moments = bytes_of(rank.owned, job.precision.moment_bytes());
    const PartMemory first = part_of(fresh, Phase::first_step);
    const PartMemory after = part_of(resumed, Phase::first_step);
    CHECK(after.began_with - first.began_with >= moments);
    CHECK(after.peak_allocated >= first.peak_allocated);
    CHECK(first.allocated - first.began_with >= moments);
    CHECK(part_of(fresh, Phase::forward).peak_allocated >= moments + first.began_with);
  }
}

// PrimeIntellect prime-rl pull request 2154 (report 18): after a resume 2,884 MB were allocated and 14,362 reserved.
TEST_CASE("report 18: a load leaves more reserved than allocated, and both are told") {
  const Job job = load_job("qwen3-8b-rtxpro6000");
  const Answer answer = evaluate(job, {});
  const Life life = life_of(job, answer);
  const LifePhase load = phase_of(life, Phase::load, true);
  CHECK(load.reserved_after > load.allocated_after);
  CHECK(load.device_peak > load.allocated_after);
  CHECK(load.reserved_after >= load.device_peak);
}

// verl issues 5670 and 1964 (reports 28 and 26): a fully reshardable save gathers a group's whole optimizer state on
// the host of its first rank; a dp-reshardable one copies the shard.
TEST_CASE("reports 26 and 28: a fully reshardable save holds the group's state on the host, the other the shard's") {
  Job job = load_job("llama3-8b-hgx-h200");
  const RankSet ranks(job);
  const RankModel& rank = ranks.ranks().front();
  const auto on_host = [&] { return host_use(rank, 0, {}, Phase::save, Start::fresh).pageable; };
  const Bytes shard = on_host();
  CHECK(shard > bytes_of(rank.owned, 12));
  CHECK(shard < bytes_of(rank.owned, 15));
  job.checkpoint.sharding = CheckpointSharding::fully_reshardable;
  const Bytes whole = on_host();
  CHECK(whole > bytes_of(rank.stage->padded(), 11));
  CHECK(whole > 6 * shard);
  // State that is on the host already is not copied.
  job.checkpoint.sharding = CheckpointSharding::dp_reshardable;
  CHECK(host_use(rank, 0, kChunked, Phase::save, Start::fresh).pageable < bytes_of(rank.owned, 4));
  // The legacy format gathers on the first rank alone.
  job.checkpoint.format = CheckpointFormat::torch;
  CHECK(host_use(rank, 0, {}, Phase::save, Start::fresh).pageable > bytes_of(rank.stage->padded(), 11));
  CHECK(host_use(rank, 7, {}, Phase::save, Start::fresh).pageable < bytes_of(rank.stage->padded(), 4));
}

TEST_CASE("a fully reshardable save gathers its largest bucket on the device") {
  Job job = load_job("llama3-8b-hgx-h200");
  job.checkpoint.sharding = CheckpointSharding::fully_reshardable;
  const RankSet ranks(job);
  const RankModel& rank = ranks.ranks().front();
  Numel bucket{0};
  for (const BufferLayout& buffer : rank.stage->buffers)
    for (const Bucket& of : buffer.buckets) bucket = std::max(bucket, of.numel());
  const PartMemory save = part_of(life_memory(rank, {}), Phase::save);
  const Bytes gathered = save.peak_allocated - save.began_with;
  CHECK(gathered >= bytes_of(bucket, 4));
  CHECK(gathered <= Bytes{bytes_of(bucket, 4).value / 8 * 9 + (20 << 20)});
}

// dllm issue 9 (report 35): a flat bf16 copy of 8.015e9 parameters in init, 14.93 GiB; here the parameter buffer beside
// the model's own parameters.
TEST_CASE("report 35: building the model holds its parameters twice in bf16") {
  Job job = load_job("llama3-8b-hgx-h200");
  const RankSet ranks(job);
  const RankModel& rank = ranks.ranks().front();
  const PartMemory init = part_of(life_memory(rank, kChunked), Phase::init);
  const Bytes twice = init.at_peak[static_cast<std::size_t>(MemoryTerm::parameters)];
  Numel own{0};
  for (const Parameter& parameter : rank.stage->parameters) own += parameter.numel();
  const double second = static_cast<double>(twice.value) - 2.0 * static_cast<double>(rank.stage->padded().value);
  const double per_parameter = second / static_cast<double>(own.value);
  CHECK(std::abs(8.015e9 * per_parameter / (1LL << 30) - 14.93) < 0.02);
}

TEST_CASE("a job that starts with a load is decided by it where that needs most") {
  Job job = load_job("llama3-8b-hgx-h200");
  const Answer fresh = evaluate(job, kChunked);
  job.checkpoint.start = Start::resume;
  const Answer resumed = evaluate(job, kChunked);
  CHECK(fresh.decides == Phase::step);
  CHECK(resumed.decides == Phase::step);
  CHECK(resumed.device_resume == fresh.device_resume);
  // Long sequences aside, there is a budget that the steps fit and the load does not.
  Job tight = job;
  tight.batch.sequence = 1024;
  tight.parallel.gpus = 2;
  tight.batch.global = 8;
  const Answer loading = evaluate(tight, kChunked);
  CHECK(loading.decides == Phase::load);
  tight.budget.device = loading.device_reserved - (1_GiB);
  const Answer refused = evaluate(tight, kChunked);
  CHECK_FALSE(refused.fits_device);
  CHECK(refused.reason.find("while its checkpoint is loaded") != std::string::npos);
  tight.checkpoint.start = Start::fresh;
  CHECK(evaluate(tight, kChunked).fits_device);
}

TEST_CASE("exposed transfer: all of chunked's, none of resident's, and never more than the phase") {
  const Job job = load_job("measured-1.8b-1xh200");
  const auto step_of = [&](const Candidate& candidate) {
    return phase_of(life_of(job, evaluate(job, candidate)), Phase::step);
  };
  CHECK(step_of({}).exposed == Seconds{0});
  const LifePhase chunked = step_of(kChunked);
  const HostLink& link = job.cluster.host_link;
  const Bytes state = bytes_of({1'816'758'272}, 12);
  const double copies = (state / link.h2d.value + state / link.d2h.value).value;
  CHECK(chunked.exposed.value > copies * 0.99);
  CHECK(chunked.exposed <= chunked.seconds);
}

TEST_CASE("the storage's speed makes a save last longer, and is told when it is not known") {
  Job job = load_job("llama3-8b-hgx-h200");
  const LifePhase without = phase_of(life_of(job, evaluate(job, {})), Phase::save);
  CHECK_FALSE(without.storage_known);
  job.cluster.storage.write = {{2e9}, "report: a test"};
  const LifePhase with = phase_of(life_of(job, evaluate(job, {})), Phase::save);
  CHECK(with.storage_known);
  const double written = static_cast<double>(with.stored.value) * 8 / 2e9;
  CHECK(std::abs(with.seconds.value - without.seconds.value - written) < 1e-6);
}

TEST_CASE("every phase of the large jobs has a peak, terms that add up, and an upper bound that lists what it adds") {
  for (const char* name : {"llama3-70b-hgx-h200", "deepseek-v3-2048xh200", "qwen3-235b-a22b-hgx-h100"})
    for (const Candidate& candidate : {Candidate{}, kChunked}) {
      INFO(name << " " << name_of(candidate.policy));
      const Job job = load_job(name);
      const Life life = life_of(job, evaluate(job, candidate));
      for (const Phase phase : {Phase::init, Phase::first_step, Phase::forward, Phase::backward, Phase::finalize,
                                Phase::step, Phase::gather, Phase::skip, Phase::save})
        CHECK(phase_of(life, phase).device_peak > Bytes{0});
      CHECK(phase_of(life, Phase::load, true).device_peak > Bytes{0});
      for (const LifePhase& phase : life.phases) {
        INFO(name_of(phase.phase));
        Bytes terms{0};
        for (const LifeTerm& term : phase.terms) {
          terms += term.bytes;
          CHECK_FALSE(term.origin.empty());
        }
        CHECK(terms == phase.device_peak);
        Bytes upper = phase.device_peak;
        for (const Term& term : phase.uncertainty) upper += term.bytes;
        CHECK(upper == phase.device_upper);
        CHECK(phase.device_upper >= phase.device_bound);
        CHECK(phase.device_bound >= phase.device_reserved);
        CHECK(phase.exposed <= phase.seconds);
        CHECK(phase.host.pinned_per_host >= phase.host.pinned);
        Bytes nodes{0};
        for (const Bytes node : phase.host.pinned_per_node) nodes += node;
        CHECK(nodes == phase.host.pinned_per_host);
      }
      CHECK(life.curve.size() <= 2000);
      Bytes highest{0};
      for (const CurvePoint& point : life.curve) highest = std::max(highest, point.bytes);
      Bytes steady{0};
      for (const Phase phase : {Phase::forward, Phase::backward, Phase::finalize, Phase::step})
        steady = std::max(steady, phase_of(life, phase).device_peak);
      CHECK(highest == steady);
      CHECK(std::is_sorted(life.curve.begin(), life.curve.end(),
                           [](const CurvePoint& a, const CurvePoint& b) { return a.at < b.at; }));
    }
}

TEST_CASE("thinning keeps the highest and the lowest of every stretch") {
  std::vector<CurvePoint> curve;
  for (int i = 0; i < 10'000; ++i) curve.push_back({Seconds{i * 1e-3}, {i % 777 == 5 ? 1'000'000 + i : i}});
  const std::vector<CurvePoint> few = thinned(curve, 400);
  CHECK(few.size() <= 400);
  for (int i = 5; i < 10'000; i += 777)
    CHECK(std::any_of(few.begin(), few.end(),
                      [&](const CurvePoint& point) { return point.bytes.value == 1'000'000 + i; }));
  CHECK(few.front().bytes == curve.front().bytes);
  CHECK(few.back().bytes == curve.back().bytes);
}
