// Candidates: round values stand for intervals without leaving them, and the search tries what the issue names.
#include "planner/candidates.hpp"

#include <algorithm>
#include <set>

#include "planner/chunking.hpp"
#include "tests/catch.hpp"
#include "tests/planner/test_job.hpp"

using namespace ebb;

namespace {

std::vector<Shard> shards_of(std::initializer_list<std::int64_t> numels) {
  std::vector<Shard> shards;
  for (const std::int64_t numel : numels) {
    Shard shard;
    shard.numel = {numel};
    shards.push_back(shard);
  }
  return shards;
}

std::vector<std::int64_t> numels_of(const std::vector<Chunk>& chunks) {
  std::vector<std::int64_t> list;
  for (const Chunk& chunk : chunks) list.push_back(chunk.numel.value);
  return list;
}

}  // namespace

TEST_CASE("the roundest value of an interval") {
  CHECK(roundest(398458880, 436207616, 10) == 400000000);
  CHECK(roundest(398458880, 399000000, 10) == 398500000);
  CHECK(roundest(7, 8, 10) == 7);
  CHECK(roundest(95, 1005, 10) == 1000);
  CHECK(roundest(95, 1000, 10) == 100);
  CHECK(roundest(486, 530, 2) == 512);
  CHECK(roundest(1, 2, 2) == 1);
}

TEST_CASE("the roundest value is in its interval, for every small interval") {
  for (std::int64_t low = 0; low < 130; ++low)
    for (std::int64_t high = low + 1; high < 260; ++high)
      for (const std::int64_t base : {2, 10}) {
        const std::int64_t value = roundest(low, high, base);
        REQUIRE(low <= value);
        REQUIRE(value < high);
        // No multiple of a larger power is inside.
        std::int64_t power = 1;
        while (value > 0 && value % (power * base) == 0) power *= base;
        for (std::int64_t larger = power * base; larger < high; larger *= base)
          REQUIRE(std::max(round_up(low, larger), larger) >= high);
      }
}

TEST_CASE("every packing has one chunk-numel among the candidates, and only one") {
  const std::vector<std::vector<Shard>> ranks = {shards_of({103, 67, 335, 125, 41, 67, 335, 125, 41, 512})};
  Job job = test::small_job();
  job.offload.policy = Policy::chunked;
  std::set<std::vector<std::int64_t>> from_candidates;
  std::size_t chunked = 0;
  for (const Candidate& candidate : candidates_of(job, ranks)) {
    if (candidate.policy != Policy::chunked) continue;
    ++chunked;
    from_candidates.insert(numels_of(chunk_by_numel(ranks[0], candidate.chunk_numel)));
  }
  std::set<std::vector<std::int64_t>> from_every_limit;
  for (std::int64_t limit = 1; limit < 2000; ++limit)
    from_every_limit.insert(numels_of(chunk_by_numel(ranks[0], {limit})));
  CHECK(from_candidates == from_every_limit);
  CHECK(chunked == from_every_limit.size());
}

TEST_CASE("the production size is always among the candidates, and a size that the job fixes is the only one") {
  const std::vector<std::vector<Shard>> ranks = {shards_of({400'000'000, 500'000'000, 300'000'000})};
  Job job = test::small_job();
  const auto has = [&](Numel numel) {
    const auto list = candidates_of(job, ranks);
    return std::any_of(list.begin(), list.end(), [&](const Candidate& candidate) {
      return candidate.policy == Policy::chunked && candidate.chunk_numel == numel;
    });
  };
  CHECK(has(kProductionNumel));
  job.offload.chunk_numel = Numel{123};
  CHECK(has({123}));
  CHECK_FALSE(has(kProductionNumel));
}

TEST_CASE("with very many shards, sizes come from a grid and the production size is still there") {
  std::vector<std::vector<Shard>> ranks(1);
  for (std::size_t i = 0; i <= kMostPackedShards; ++i) {
    Shard shard;
    shard.numel = Numel{static_cast<std::int64_t>(i * i + 1)};
    ranks[0].push_back(shard);
  }
  Job job = test::small_job();
  const auto list = candidates_of(job, ranks);
  CHECK(list.size() < 1000);
  CHECK(std::count(list.begin(), list.end(), Candidate{.policy = Policy::chunked, .chunk_numel = kProductionNumel}) ==
        1);
}

TEST_CASE("slots that are too small for the job are not tried") {
  const std::vector<std::vector<Shard>> ranks = {shards_of({1LL << 40})};
  Job job = test::small_job();
  job.offload.policy = Policy::pipelined;
  for (const Candidate& candidate : candidates_of(job, ranks))
    if (candidate.policy == Policy::pipelined) CHECK(candidate.chunk_numel.value >= 1LL << 26);
  job.offload.chunk_numel = Numel{1000};
  CHECK(candidates_of(job, ranks).size() == 1);  // resident alone
}

TEST_CASE("resident comes first, whatever the job fixes") {
  const std::vector<std::vector<Shard>> ranks = {shards_of({10, 20})};
  Job job = test::small_job();
  job.offload.policy = Policy::full_reload;
  const auto list = candidates_of(job, ranks);
  REQUIRE(list.size() == 2);
  CHECK(list[0].policy == Policy::resident);
  CHECK(list[1].policy == Policy::full_reload);
}
