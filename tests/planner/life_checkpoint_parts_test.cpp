// Saves and loads as plans: every state of every owned element moves once, parameters follow from masters, and what was
// released is not read.
#include <algorithm>
#include <map>

#include "tests/catch.hpp"
#include "tests/planner/life_part_cases.hpp"

using namespace ebb;
using test::elements_of;
using test::is_work;
using test::life_part_cases;
using test::RankCase;

TEST_CASE("a save takes every state of every owned element once, and no device memory") {
  for (const RankCase& rank : life_part_cases()) {
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
  for (const RankCase& rank : life_part_cases()) {
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
  for (const RankCase& rank : life_part_cases()) {
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
