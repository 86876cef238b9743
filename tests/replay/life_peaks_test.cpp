// Parts of two lives side by side: what makes an offload fail (a peak that is not lower, one that is not the planned
// one, more state on the device than the chunks allow), and bounds of state by hand.
#include <memory>

#include "replay/life_equivalence.hpp"
#include "replay/life_parts.hpp"
#include "replay/life_residency.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

/// A rank with 1,000 elements in shards of 400, 100, 100 and 400, fp32 state; its parts hold `state` bytes of it.
struct Rank {
  std::vector<std::unique_ptr<Plan>> plans;
  LifeRank rank;

  Rank(Candidate candidate, Bytes state) {
    for (const LifePart part :
         {LifePart::step, LifePart::init, LifePart::load, LifePart::first_step, LifePart::skip, LifePart::save}) {
      auto plan = std::make_unique<Plan>();
      plan->candidate = candidate;
      plan->part = part;
      plan->precision = {};
      for (const std::int64_t numel : {400, 100, 100, 400}) {
        PlanShard shard;
        shard.numel = {numel};
        plan->shards.push_back(shard);
      }
      plan->buckets.push_back({{0}, {1000}});
      Buffer window;
      window.name = "window";
      window.bytes = state;
      window.role = Role::state;
      window.states = part == LifePart::init ? std::uint8_t{kMaster} : std::uint8_t{kAllState};
      plan->buffers.push_back(window);
      Op op;
      op.kind = OpKind::allocate;
      op.buffer = BufferId{0};
      plan->ops.push_back(op);
      op.kind = OpKind::release;
      plan->ops.push_back(op);
      Program program;
      program.plan = plan.get();
      rank.programs[static_cast<std::size_t>(part)] = program;
      plans.push_back(std::move(plan));
    }
  }
};

LifeRecord life_with(const std::vector<PartPeak>& peaks) {
  LegRecord leg;
  leg.ranks = {0};
  leg.numbers.resize(1);
  leg.numbers[0].peaks = peaks;
  return {leg};
}

std::vector<PartPeak> peaks_of(std::int64_t init, std::int64_t first, std::int64_t step, std::int64_t skip,
                               std::int64_t save, std::int64_t load) {
  std::vector<PartPeak> peaks;
  for (const auto& [part, bytes] :
       {std::pair(LifePart::init, init), std::pair(LifePart::first_step, first), std::pair(LifePart::step, step),
        std::pair(LifePart::skip, skip), std::pair(LifePart::save, save), std::pair(LifePart::load, load)})
    peaks.push_back({part, {bytes}, {bytes}});
  return peaks;
}

const std::vector<PartPeak> kResident = peaks_of(9000, 20000, 20000, 10000, 18000, 18000);
constexpr Candidate kChunked{.policy = Policy::chunked, .chunk_numel = {250}};
constexpr Candidate kFull{.policy = Policy::full_reload};

LifeEquivalence compared(const Candidate& candidate, Bytes state, const std::vector<PartPeak>& peaks) {
  const Rank resident({.policy = Policy::resident}, {12000});
  const Rank policy(candidate, state);
  const LifeRecord a = life_with(kResident);
  const LifeRecord b = life_with(peaks);
  LifeEquivalence result;
  result.policy = name_of(candidate.policy);
  result.baseline = a;
  result.parts = compare_parts({a, std::span(&resident.rank, 1), {}}, {b, std::span(&policy.rank, 1), {}});
  result.unplanned = unplanned(b);
  return result;
}

const std::vector<PartPeak> kLower = peaks_of(6000, 11000, 11000, 9000, 6000, 11000);

}  // namespace

TEST_CASE("Lower peaks in every part hold; each part that is not lower fails, with its name") {
  CHECK(compared(kChunked, {4800}, kLower).holds());
  CHECK(compared(kChunked, {4800}, kLower).parts.size() == 7);
  for (std::size_t i = 0; i < kLower.size(); ++i) {
    std::vector<PartPeak> peaks = kLower;
    peaks[i].live = peaks[i].planned = kResident[i].live;
    const LifeEquivalence result = compared(kChunked, {4800}, peaks);
    CHECK(result.lower() == (peaks[i].part == LifePart::skip));
    if (peaks[i].part != LifePart::skip) CHECK(to_text(result).find("NOT lower") != std::string::npos);
  }
}

TEST_CASE("An offload that does nothing fails, whatever the policy") {
  CHECK_FALSE(compared(kChunked, {12000}, kResident).lower());
  CHECK_FALSE(compared(kFull, {12000}, kResident).lower());
  CHECK(to_text(compared(kFull, {12000}, kResident)).find("NOT an offload") != std::string::npos);
}

TEST_CASE("Windowed brings all masters at init, so that its peak there may be resident's, and no other one") {
  constexpr Candidate windowed{.policy = Policy::windowed, .chunk_size_mb = 1};
  CHECK(compared(windowed, {4800}, peaks_of(9000, 11000, 11000, 9000, 6000, 11000)).holds());
  CHECK_FALSE(compared(windowed, {4800}, peaks_of(9001, 11000, 11000, 9000, 6000, 11000)).lower());
  CHECK_FALSE(compared(windowed, {4800}, peaks_of(9000, 11000, 11000, 9000, 18000, 11000)).lower());
  CHECK_FALSE(compared(kChunked, {4800}, peaks_of(9000, 11000, 11000, 9000, 6000, 11000)).lower());
}

TEST_CASE("Full reload may build, save and load as high as resident does, and not higher") {
  CHECK(compared(kFull, {12000}, peaks_of(9000, 19000, 19000, 20000, 18000, 18000)).lower() == false);  // whole life
  CHECK(compared(kFull, {12000}, peaks_of(9000, 19000, 19000, 19000, 18000, 18000)).holds());
  CHECK_FALSE(compared(kFull, {12000}, peaks_of(9001, 19000, 19000, 19000, 18000, 18000)).lower());
  CHECK_FALSE(compared(kFull, {12000}, peaks_of(9000, 19000, 19000, 19000, 18000, 18001)).lower());
}

TEST_CASE("A live peak that is not the planned one fails, above or below") {
  for (const std::int64_t change : {-1, 1}) {
    std::vector<PartPeak> peaks = kLower;
    peaks[4].live.value += change;
    const LifeEquivalence result = compared(kChunked, {4800}, peaks);
    CHECK_FALSE(result.holds());
    CHECK(result.unplanned.find("save") != std::string::npos);
  }
}

TEST_CASE("State on the device stays under max(N, largest shard): here the shard of 400, or two in N = 250") {
  // 400 elements of 12 bytes; at most 3 shards begin in 400 elements, each tensor aligned to 256, each window to 512.
  const Rank chunked(kChunked, {0});
  const auto bound = state_bound(*chunked.plans.front());
  REQUIRE(bound);
  CHECK(bound->value >= 4800);
  CHECK(bound->value <= 4800 + 3 * 3 * 256 + 3 * 512);
  CHECK(compared(kChunked, *bound, kLower).holds());
  const LifeEquivalence over = compared(kChunked, *bound + Bytes{1}, kLower);
  CHECK(over.lower());
  CHECK_FALSE(over.bounded());
  CHECK(to_text(over).find("OVER the bound") != std::string::npos);

  const Rank pipelined({.policy = Policy::pipelined, .chunk_numel = {50}, .slots = 3}, {0});
  CHECK(state_bound(*pipelined.plans.front())->value == 3 * (50 * 12 + 512));
  // Windowed: all 4,000 bytes of masters and two windows of all moments, as a MiB holds them all.
  const Rank windowed({.policy = Policy::windowed, .chunk_size_mb = 1}, {0});
  const std::int64_t most = state_bound(*windowed.plans.front())->value;
  CHECK(most >= 4000 + 2 * 8000);
  CHECK(most <= 4000 + 2 * 8000 + 4 * 5 * 256 + 7 * 512);
  CHECK_FALSE(state_bound(*Rank(kFull, {0}).plans.front()).has_value());
}
