// The parts of a job's life as plans: each is sound by itself, each begins as the one before it ends, state moves and
// comes into being exactly once, and the device never holds more of it than a step would.
#include <algorithm>
#include <map>

#include "models/memory/torch_allocator.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/plan_builder.hpp"
#include "planner/quantization.hpp"
#include "planner/verify.hpp"
#include "planner/verify_together.hpp"
#include "tests/catch.hpp"
#include "tests/planner/life_cases.hpp"
#include "tests/planner/lowering_cases.hpp"

using namespace ebb;
using test::life_of_rank;
using test::part_of;
using test::RankCase;

namespace {

std::string told(const std::vector<Hazard>& hazards) {
  std::string text;
  for (const Hazard& hazard : hazards) text += hazard.text + "\n";
  return text;
}

std::string told(const std::vector<std::string>& breaks) {
  std::string text;
  for (const std::string& line : breaks) text += line + "\n";
  return text;
}

/// Elements whose `state` the ops that pass `filter` touch; every element at most once, or -1.
template <class Filter>
std::int64_t elements_of(const Plan& plan, std::uint8_t state, Filter filter) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const Op& op : plan.ops)
    if ((op.states & state) && filter(op)) ranges.emplace_back(op.range.begin, op.range.end);
  std::sort(ranges.begin(), ranges.end());
  std::int64_t sum = 0;
  std::int64_t behind = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin < behind) return -1;
    behind = end;
    sum += end - begin;
  }
  return sum;
}

bool is_work(const Op& op, Work work) { return op.work == work; }

/// Both fixed cases and the recipes whose optimizer holds the masters, or has none.
std::vector<RankCase> cases() {
  std::vector<RankCase> cases = test::rank_cases();
  Job fp32 = load_job("llama3-8b-hgx-h200");
  fp32.precision.params = Dtype::fp32;
  cases.push_back(test::rank_case("llama3-8b, fp32 parameters", fp32));
  Job held = load_job("llama3-8b-hgx-h200");
  held.precision.exp_avg = held.precision.exp_avg_sq = Dtype::bf16;
  held.precision.remainders = false;
  cases.push_back(test::rank_case("llama3-8b, the optimizer holds whole masters", held));
  for (const Fp8Recipe recipe : {Fp8Recipe::tensorwise, Fp8Recipe::blockwise, Fp8Recipe::mxfp8}) {
    Job fp8 = load_job("llama3-8b-hgx-h200");
    fp8.precision.fp8 = recipe;
    fp8.precision.fp8_param_gather = true;
    fp8.precision.fp8_columnwise = Columnwise::eager;
    fp8.precision.fp8_reuse_grad_buffer = false;
    fp8.parallel.overlap_param_gather = recipe != Fp8Recipe::blockwise;
    cases.push_back(test::rank_case("llama3-8b, FP8 recipe " + std::to_string(static_cast<int>(recipe)), fp8, 0, 3));
  }
  Job experts = load_job("qwen3-30b-a3b-hgx-h100");
  experts.precision.fp8 = Fp8Recipe::blockwise;
  experts.precision.fp8_param_gather = true;
  cases.push_back(test::rank_case("qwen3-30b, FP8 experts", experts));
  return cases;
}

/// What torch's allocator adds to all state tensors of the rank.
std::int64_t rounded_up(const RankModel& rank) {
  const Precision& precision = rank.job->precision;
  return allocated_state(precision, rank.shards, kAllState).value - stored_state(precision, rank.shards).value;
}

Numel largest_shard(const RankModel& rank) {
  Numel largest{0};
  for (const Shard& shard : rank.shards) largest = std::max(largest, shard.numel);
  return largest;
}

}  // namespace

TEST_CASE("every part of a life is sound, and begins as the one before it ends") {
  for (const RankCase& rank : cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      INFO(rank.name << ": " << test::text_of(candidate));
      const std::vector<Plan> life = life_of_rank(rank.rank, candidate);
      for (const Plan& plan : life) {
        INFO(name_of(plan.part));
        CHECK(told(verify(plan)) == "");
      }
      CHECK(told(life_breaks(life)) == "");
    }
  }
}

TEST_CASE(
    "masters come once, in init or where the optimizer makes them in its first step, and moments in the first step") {
  for (const RankCase& rank : cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      INFO(rank.name << ": " << test::text_of(candidate));
      const Precision precision = precision_of(*rank.job, candidate.policy);
      const std::int64_t owned = rank.rank.owned.value;
      const std::vector<Plan> life = life_of_rank(rank.rank, candidate);
      const auto made = [&](LifePart part) {
        return elements_of(part_of(life, part), kMaster, [](const Op& op) { return is_work(op, Work::make_masters); });
      };
      // The host's Adam steps fp32 copies even of fp32 parameters.
      std::int64_t on_host = 0;
      for (const Op& op : part_of(life, LifePart::step).ops)
        if (op.work == Work::cpu_adam) on_host = op.range.numel().value;
      const bool held = precision.optimizer_holds_masters();
      const bool none = precision.master_bytes() == 0;
      CHECK(made(LifePart::init) == (held ? 0 : none ? on_host : owned));
      CHECK(made(LifePart::first_step) == (held ? owned : 0));
      CHECK(made(LifePart::step) == 0);
      const auto zeroed = [&](LifePart part) {
        return elements_of(part_of(life, part), kMoments, [](const Op& op) { return is_work(op, Work::zero_state); });
      };
      CHECK(zeroed(LifePart::first_step) == owned - on_host);
      for (const LifePart part : {LifePart::step, LifePart::init, LifePart::load, LifePart::first_skip})
        CHECK(zeroed(part) == 0);
    }
  }
}

TEST_CASE("a first step moves in only what exists, and out what every step does") {
  for (const RankCase& rank : cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      INFO(rank.name << ": " << test::text_of(candidate));
      const std::vector<Plan> life = life_of_rank(rank.rank, candidate);
      const auto moved = [&](LifePart part, OpKind kind, std::uint8_t state) {
        std::int64_t sum = 0;
        for (const Op& op : part_of(life, part).ops)
          if (op.kind == kind && (op.states & state)) sum += op.range.numel().value;
        return sum;
      };
      CHECK(moved(LifePart::first_step, OpKind::copy_h2d, kMoments) == 0);
      // Full reload offloads at the start of a step, when moments are not there yet.
      const bool later = candidate.policy == Policy::full_reload;
      CHECK(moved(LifePart::first_step, OpKind::copy_d2h, kMoments) ==
            (later ? 0 : moved(LifePart::step, OpKind::copy_d2h, kMoments)));
      if (precision_of(*rank.job, candidate.policy).optimizer_holds_masters()) {
        CHECK(moved(LifePart::first_step, OpKind::copy_h2d, kMaster) == 0);
      } else if (precision_of(*rank.job, candidate.policy).master_bytes() > 0) {
        CHECK(moved(LifePart::first_step, OpKind::copy_h2d, kMaster) ==
              moved(LifePart::step, OpKind::copy_h2d, kMaster));
        CHECK(moved(LifePart::first_step, OpKind::copy_d2h, kMaster) ==
              moved(LifePart::step, OpKind::copy_d2h, kMaster));
      }
    }
  }
}

TEST_CASE("a skipped step updates nothing and copies nothing back") {
  for (const RankCase& rank : cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      INFO(rank.name << ": " << test::text_of(candidate));
      const std::vector<Plan> life = life_of_rank(rank.rank, candidate);
      for (const LifePart part : {LifePart::skip, LifePart::first_skip}) {
        bool decided = false;
        const Plan& plan = part_of(life, part);
        for (const Op& op : plan.ops) {
          CHECK(op.work != Work::adam);
          CHECK(op.work != Work::adam_foreach);
          CHECK(op.work != Work::cpu_adam);
          if (decided) CHECK((op.kind == OpKind::release || op.kind == OpKind::host_wait));
          if (op.kind == OpKind::host_wait && op.buffer.valid() && plan.buffers[op.buffer.index].role == Role::norm)
            decided = true;
        }
        CHECK(decided);
      }
    }
  }
}

TEST_CASE("a save takes every state of every owned element once, and no device memory") {
  for (const RankCase& rank : cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      INFO(rank.name << ": " << test::text_of(candidate));
      const Precision precision = precision_of(*rank.job, candidate.policy);
      const Plan save = lower_part(rank.rank, candidate, LifePart::save);
      const auto stored = [&](StateBits state) {
        return elements_of(save, state, [](const Op& op) { return is_work(op, Work::store); });
      };
      const std::int64_t owned = rank.rank.owned.value;
      CHECK(stored(kExpAvg) == owned);
      CHECK(stored(kExpAvgSq) == owned);
      CHECK(stored(kParams) == owned);
      if (precision.master_bytes() > 0) CHECK(stored(kMaster) == owned);
      std::map<std::uint32_t, Op> filled;  // by pinned buffer: the copy that it holds
      std::int64_t in_staging = 0;
      for (const Op& op : save.ops) {
        if (op.kind == OpKind::allocate) {  // a window of FP8 parameters in the model's type
          CHECK(quantizes_explicitly(precision));
          CHECK(save.buffers[op.buffer.index].role == Role::staging);
          CHECK(save.buffers[op.buffer.index].bytes <= Bytes{(16 << 20) * size_of(precision.params)});
        }
        CHECK(op.kind != OpKind::copy_h2d);
        if (op.kind == OpKind::copy_d2h) {
          REQUIRE(op.host_buffer.valid());
          CHECK(op.range.numel().value <= 16 << 20);
          CHECK(op.bytes <= save.buffers[op.host_buffer.index].bytes);
          filled[op.host_buffer.index] = op;
        }
        if (op.work != Work::store || !op.host_buffer.valid()) continue;
        REQUIRE(filled.count(op.host_buffer.index) == 1);
        const Op& copy = filled[op.host_buffer.index];
        CHECK(copy.range == op.range);
        CHECK(copy.states == op.states);
        CHECK(copy.bytes == op.bytes);
        in_staging += op.bytes.value;
      }
      for (const Buffer& buffer : save.buffers)
        if (buffer.role == Role::checkpoint) CHECK(buffer.memory == Memory::pinned);
      // What a policy keeps on the device, and the parameters.
      std::int64_t expected = owned * size_of(precision.params);
      for (const Buffer& buffer : save.buffers)
        if (buffer.role == Role::state && buffer.memory == Memory::device)
          expected += buffer.holds.numel().value * state_bytes_per_element(precision, buffer.states);
      CHECK(in_staging == expected);
    }
  }
}

TEST_CASE("a load brings every state of every owned element once; load_params only masters") {
  for (const RankCase& rank : cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      INFO(rank.name << ": " << test::text_of(candidate));
      const Precision precision = precision_of(*rank.job, candidate.policy);
      const std::int64_t owned = rank.rank.owned.value;
      const auto fetched = [&](LifePart part, std::uint8_t state) {
        return elements_of(lower_part(rank.rank, candidate, part), state,
                           [](const Op& op) { return is_work(op, Work::fetch); });
      };
      const bool from_masters = precision.master_bytes() > 0 && !precision.keeps_remainders();
      for (const LifePart part : {LifePart::load, LifePart::reload}) {
        CHECK(fetched(part, kExpAvg) == owned);
        CHECK(fetched(part, kExpAvgSq) == owned);
        if (precision.master_bytes() > 0) CHECK(fetched(part, kMaster) == owned);
        if (from_masters) CHECK(fetched(part, kParams) == 0);
      }
      CHECK(fetched(LifePart::load_params, kMoments) == 0);
      const bool masters = from_masters && !precision.optimizer_holds_masters();
      CHECK(fetched(LifePart::load_params, kMaster) + fetched(LifePart::load_params, kParams) == owned);
      if (masters) CHECK(fetched(LifePart::load_params, kMaster) == owned);
    }
  }
}

TEST_CASE("parameters are made of loaded masters, each once, and gathered whole") {
  for (const RankCase& rank : cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      INFO(rank.name << ": " << test::text_of(candidate));
      for (const LifePart part : {LifePart::load, LifePart::load_params, LifePart::reload}) {
        const Plan plan = lower_part(rank.rank, candidate, part);
        CHECK(elements_of(plan, kParams, [](const Op& op) {
                return op.work == Work::cast || op.work == Work::quantize ||
                       (op.kind == OpKind::copy_h2d && op.host_buffer.valid());
              }) == rank.rank.owned.value);
        std::int64_t gathered = 0;
        for (const Op& op : plan.ops) gathered += op.work == Work::all_gather ? op.bytes.value : 0;
        std::int64_t sharded = 0;
        for (const BufferLayout& buffer : rank.stage->buffers) sharded += buffer.shards > 1 ? buffer.numel.value : 0;
        if (rank.job->precision.fp8_param_gather) continue;  // of which some are a byte
        CHECK(gathered == sharded * size_of(rank.job->precision.params));
      }
    }
  }
}

// The point of chunking: no part of a life has more state on the device than what stays and the windows of a step.
TEST_CASE("state on the device stays within the windows of a step, from init on") {
  for (const RankCase& rank : cases()) {
    const Precision& precision = rank.job->precision;
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      std::int64_t windows = 1;
      std::int64_t numel = candidate.chunk_numel.value;
      if (candidate.policy == Policy::windowed) {
        windows = 2;
        numel = (candidate.chunk_size_mb << 20) / precision.moment_bytes();
        if (numel == 0) numel = rank.rank.owned.value;
      } else if (candidate.policy == Policy::pipelined) {
        windows = candidate.slots;
      } else if (candidate.policy != Policy::chunked) {
        continue;
      }
      INFO(rank.name << ": " << test::text_of(candidate));
      const std::vector<Plan> life = life_of_rank(rank.rank, candidate);
      std::int64_t stays = 0;
      for (const Buffer& buffer : part_of(life, LifePart::step).buffers)
        if (buffer.initial && buffer.role == Role::state && buffer.memory == Memory::device)
          stays += buffer.bytes.value;
      // A shard larger than the chunk is a chunk of its own; slots cut shards. On top: what torch rounds up.
      const std::int64_t largest = largest_shard(rank.rank).value;
      const std::int64_t most = candidate.policy == Policy::pipelined ? numel : std::max(numel, largest);
      const std::int64_t asked = std::min(most, 2 * rank.rank.owned.value) * precision.state_bytes();
      const std::int64_t bound = stays + windows * (asked + rounded_up(rank.rank) + (std::int64_t{2} << 20));
      for (const Plan& plan : life) {
        INFO(name_of(plan.part));
        CHECK(test::state_peak(plan).value <= bound);
      }
      // The same of all that lives, where nothing is computed.
      std::int64_t between = initial_device_bytes(part_of(life, LifePart::step)).value;
      for (const LifePart part :
           {LifePart::init, LifePart::load, LifePart::load_params, LifePart::reload, LifePart::save})
        if (!quantizes_explicitly(precision))
          CHECK(test::live_peak(part_of(life, part)).value <= between - stays + bound);
        else  // largest values and what they are found in, as in the step
          CHECK(test::live_peak(part_of(life, part)).value <= test::live_peak(part_of(life, LifePart::step)).value);
    }
  }
}

TEST_CASE("the ranks of a job meet in every part of its life") {
  for (const bool fp8 : {false, true}) {
    Job job = load_job("llama3-8b-hgx-h200");
    job.precision.fp8 = fp8 ? Fp8Recipe::blockwise : Fp8Recipe::none;
    job.precision.fp8_param_gather = fp8;
    for (const Candidate& candidate :
         {Candidate{}, Candidate{.policy = Policy::chunked, .chunk_numel = {400'000'000}},
          Candidate{.policy = Policy::windowed, .chunk_size_mb = 512, .fraction = 0.5},
          Candidate{.policy = Policy::pipelined, .chunk_numel = {100'000'000}, .slots = 3}}) {
      INFO(test::text_of(candidate));
      std::vector<RankCase> ranks;
      for (std::int64_t r = 0; r < 8; ++r) ranks.push_back(test::rank_case("", job, 0, r));
      for (const LifePart part : test::kAllParts) {
        INFO(name_of(part));
        std::vector<Plan> plans;
        for (const RankCase& rank : ranks) plans.push_back(lower_part(rank.rank, candidate, part));
        const std::vector<JobHazard> hazards = verify_together(plans);
        CHECK(hazards.empty());
        for (const JobHazard& hazard : hazards) UNSCOPED_INFO(hazard.text);
      }
    }
  }
}

TEST_CASE(
    "FP8 weights: largest values of all, then their maximum over ranks, then rows, in every part that makes them") {
  for (const RankCase& rank : cases()) {
    if (!quantizes_explicitly(rank.job->precision)) continue;
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      if (candidate.policy == Policy::cpu_adam) continue;  // its copies write parameters of any type
      INFO(rank.name << ": " << test::text_of(candidate));
      std::int64_t owned = 0;
      for (const Shard& shard : rank.rank.shards)
        if (rank.stage->buffers[shard.buffer].quantized) owned += shard.numel.value;
      const std::vector<Plan> life = life_of_rank(rank.rank, candidate);
      for (const LifePart part : {LifePart::step, LifePart::first_step, LifePart::init, LifePart::load,
                                  LifePart::load_params, LifePart::reload}) {
        INFO(name_of(part));
        const Plan& plan = part_of(life, part);
        for (const Work work : {Work::find_largest, Work::quantize})
          CHECK(elements_of(plan, kMaster, [&](const Op& op) { return op.work == work; }) == owned);
        struct Found {
          bool zeroed = false, reduced = false;
          std::int64_t measured = 0, quantized = 0;
        };
        std::map<std::uint32_t, Found> found;  // by buffer of largest values
        for (const Op& op : plan.ops) {
          if (!op.buffer.valid() || plan.buffers[op.buffer.index].role != Role::largest) continue;
          Found& of = found[op.buffer.index];
          if (op.work == Work::zero_state) of.zeroed = true;
          if (op.work == Work::find_largest) {
            CHECK(of.zeroed);
            CHECK_FALSE(of.reduced);
            of.measured += op.range.numel().value;
          }
          if (op.work == Work::all_reduce) of.reduced = true;
          if (op.work == Work::quantize) {
            CHECK(of.reduced);
            of.quantized += op.range.numel().value;
          }
        }
        CHECK(found.size() > 0);
        for (const auto& [buffer, of] : found) {
          CHECK(of.measured == of.quantized);
          CHECK_FALSE(plan.buffers[buffer].parameters.empty());
        }
      }
      // A save brings each of them to the model's type once.
      CHECK(elements_of(part_of(life, LifePart::save), kParams,
                        [](const Op& op) { return op.work == Work::dequantize; }) == owned);
    }
  }
}

TEST_CASE("column-wise copies are made of all gathered weights once a step, unless they are quantised with the rows") {
  for (const RankCase& rank : cases()) {
    if (!quantizes_explicitly(rank.job->precision)) continue;
    const Plan plan = lower(rank.rank, {});
    std::int64_t made = 0;
    for (const Op& op : plan.ops)
      if (op.work == Work::make_columns) made += op.range.numel().value;
    const bool with_rows = rank.job->precision.fp8 == Fp8Recipe::mxfp8;
    CHECK(made == (with_rows ? 0 : rank.rank.padded.buckets.back().end.value));
    std::int64_t rows = 0;
    std::int64_t gathered = 0;
    for (const BufferLayout& buffer : rank.stage->buffers)
      if (buffer.quantized) rows += buffer.numel.value;
    for (const Op& op : plan.ops)
      if (op.work == Work::all_gather) gathered += op.bytes.value;
    const auto columns = std::find_if(plan.buffers.begin(), plan.buffers.end(),
                                      [](const Buffer& buffer) { return buffer.role == Role::columns; });
    REQUIRE(columns != plan.buffers.end());
    if (!with_rows) continue;
    CHECK(columns->bytes == Bytes{rows});
    std::int64_t plain = 0;
    for (const BufferLayout& buffer : rank.stage->buffers)
      if (!buffer.quantized) plain += buffer.numel.value;
    CHECK(gathered == 2 * plain + 2 * rows);
  }
}

// The pass that unscaled every state for a state dict launched kernels over state whose storage full reload had
// released: illegal accesses, or garbage in the checkpoint that was being written.
TEST_CASE("a save that reads state where its storage was released is reported with the read and the release") {
  const RankCase rank = test::measured_case();
  const Plan step = lower(rank.rank, {.policy = Policy::full_reload});
  std::uint32_t release = 0;
  while (step.ops[release].kind != OpKind::release ||
         step.buffers[step.ops[release].buffer.index].name != "master weights")
    ++release;
  for (const bool named : {true, false}) {
    INFO("the kernel names the buffer: " << named);
    Plan plan = step;
    // Right behind the release, before the state is back.
    plan.ops.resize(release + 1);
    plan.buffers.push_back({.name = "state dict", .bytes = {512}, .initial = true});
    Op kernel{
        .kind = OpKind::kernel,
        .phase = Phase::save,
        .work = Work::cast,
        .states = kMaster,
        .stream = kComputeStream,
        .deps_begin = static_cast<std::uint32_t>(plan.deps.size()),
        .deps_count = 1,
        .buffer = named ? plan.ops[release].buffer : BufferId{static_cast<std::uint32_t>(plan.buffers.size() - 1)},
        .range = {0, rank.rank.owned.value}};
    plan.deps.push_back({release});
    plan.ops.push_back(kernel);
    const OpId at{release + 1};
    const std::vector<Hazard> hazards = verify(plan);
    const auto found = std::find_if(hazards.begin(), hazards.end(),
                                    [](const Hazard& hazard) { return hazard.kind == HazardKind::use_after_release; });
    REQUIRE(found != hazards.end());
    CHECK(found->first == at);
    CHECK(found->second == OpId{release});
    CHECK(found->text.find(describe(plan, at)) != std::string::npos);
    CHECK(found->text.find(describe(plan, {release})) != std::string::npos);
    CHECK(found->text.find("master weights") != std::string::npos);
  }
}
