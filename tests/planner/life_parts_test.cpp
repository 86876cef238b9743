// The parts of a job's life as plans: each is sound by itself, each begins as the one before it ends, state moves and
// comes into being exactly once, and the device never holds more of it than a step would. Saves and loads:
// life_checkpoint_parts_test.cpp.
#include <algorithm>
#include <map>

#include "planner/verify_together.hpp"
#include "tests/catch.hpp"
#include "tests/planner/life_part_cases.hpp"

using namespace ebb;
using test::elements_of;
using test::is_work;
using test::largest_shard;
using test::life_of_rank;
using test::life_part_cases;
using test::part_of;
using test::RankCase;
using test::rounded_up;
using test::told;

TEST_CASE("every part of a life is sound, and begins as the one before it ends") {
  for (const RankCase& rank : life_part_cases()) {
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
  for (const RankCase& rank : life_part_cases()) {
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
  for (const RankCase& rank : life_part_cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      INFO(rank.name << ": " << test::text_of(candidate));
      const std::vector<Plan> life = life_of_rank(rank.rank, candidate);
      const auto moved = [&](LifePart part, OpKind kind, std::uint8_t state) {
        std::int64_t sum = 0;
        for (const Op& op : part_of(life, part).ops)
          // What tidal takes out in forward the step before has left, and there is none before the first.
          if (op.kind == kind && (op.states & state) &&
              !(candidate.policy == Policy::tidal && op.phase == Phase::forward))
            sum += op.range.numel().value;
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
  for (const RankCase& rank : life_part_cases()) {
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
          // tidal brings back what it leaves on the device between steps.
          const bool back = candidate.policy == Policy::tidal && part == LifePart::skip &&
                            (op.kind == OpKind::allocate || op.kind == OpKind::copy_h2d);
          if (decided) CHECK((op.kind == OpKind::release || op.kind == OpKind::host_wait || back));
          if (op.kind == OpKind::host_wait && op.buffer.valid() && plan.buffers[op.buffer.index].role == Role::norm)
            decided = true;
        }
        CHECK(decided);
      }
    }
  }
}

TEST_CASE("state on the device stays within the windows of a step, from init on") {
  for (const RankCase& rank : life_part_cases()) {
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
  for (const RankCase& rank : life_part_cases()) {
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
  for (const RankCase& rank : life_part_cases()) {
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
