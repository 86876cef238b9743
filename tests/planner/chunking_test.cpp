// Proves the packings against Megatron's printed chunk lists, their bounds, and the breakpoints against brute force.
#include "planner/chunking.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/catch.hpp"
#include "tests/planner/layout_jobs.hpp"

namespace ebb {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

struct Group {
  std::uint16_t optimizer;
  std::uint16_t group;
  std::vector<std::int64_t> numels;
};

std::vector<Shard> shards_of(const std::vector<Group>& groups) {
  std::vector<Shard> shards;
  for (const Group& group : groups) {
    for (const std::int64_t numel : group.numels) {
      shards.push_back({.optimizer = group.optimizer, .group = group.group, .numel = {numel}});
    }
  }
  return shards;
}

std::vector<std::int64_t> numels(const std::vector<Chunk>& chunks) {
  std::vector<std::int64_t> result;
  for (const Chunk& chunk : chunks) result.push_back(chunk.numel.value);
  return result;
}

std::vector<std::uint32_t> counts(const std::vector<Chunk>& chunks) {
  std::vector<std::uint32_t> result;
  for (const Chunk& chunk : chunks) result.push_back(chunk.count);
  return result;
}

TEST_CASE("windowed chunks equal Megatron's printed lists", "[chunking]") {
  std::ifstream file(EBB_TEST_DATA "/megatron/measured-layouts.json");
  REQUIRE(file);
  const nlohmann::json facts = nlohmann::json::parse(file)["jobs"][0];
  Job job = test::job(test::measured(facts["layers"], facts["hidden"], facts["ffn"], facts["heads"]), 1);
  job.parallel.overlap_grad_reduce = false;
  const std::vector<Shard> shards = rank_shards(stage_layout(job, 0), 0, 0);
  REQUIRE(facts["windowed"].size() == 3);
  for (const nlohmann::json& expected : facts["windowed"]) {
    INFO(expected["chunk_size_mb"] << " MiB");
    const std::vector<Chunk> chunks = chunk_by_moments(shards, expected["chunk_size_mb"], 8);
    CHECK(chunks.size() == expected["chunks"].get<std::size_t>());
    std::vector<std::int64_t> head = numels(chunks);
    const auto printed = expected["numels"].get<std::vector<std::int64_t>>();
    REQUIRE(head.size() >= printed.size());
    head.resize(printed.size());  // Megatron's run printed at most the first 64
    CHECK(head == printed);
  }
}

TEST_CASE("chunked restarts at groups and optimizers, windowed only at optimizers", "[chunking]") {
  const std::vector<Shard> shards = shards_of({{0, 0, {3, 5, 2, 2}}, {0, 1, {1, 1}}, {1, 0, {4, 4}}});
  CHECK(numels(chunk_by_numel(shards, Numel{8})) == std::vector<std::int64_t>{8, 4, 2, 8});
  CHECK(numels(chunk_by_numel(shards, Numel{4})) == std::vector<std::int64_t>{3, 5, 4, 2, 4, 4});
  CHECK(numels(chunk_by_numel(shards, Numel{1})) == std::vector<std::int64_t>{3, 5, 2, 2, 1, 1, 4, 4});
  CHECK(numels(chunk_by_numel(shards, Numel{0})) == std::vector<std::int64_t>{12, 2, 8});
  CHECK(numels(chunk_by_numel(shards, Numel{-1})) == std::vector<std::int64_t>{12, 2, 8});
  // 8 bytes an element: kMiB / 8 elements in one MiB.
  const std::int64_t unit = kMiB / 8;
  const std::vector<Shard> wide = shards_of({{0, 0, {3 * unit, 5 * unit, 2 * unit}}, {0, 1, {unit}}, {1, 0, {unit}}});
  CHECK(counts(chunk_by_moments(wide, 8, 8)) == std::vector<std::uint32_t>{2, 2, 1});
  CHECK(counts(chunk_by_moments(wide, 7, 8)) == std::vector<std::uint32_t>{1, 2, 1, 1});
  CHECK(counts(chunk_by_moments(wide, 4, 4)) == std::vector<std::uint32_t>{2, 2, 1});
  CHECK(counts(chunk_by_moments(wide, 0, 8)) == std::vector<std::uint32_t>{4, 1});
}

TEST_CASE("no shards: no chunks and no breakpoints; one shard: one of each", "[chunking]") {
  CHECK(chunk_by_numel({}, Numel{5}).empty());
  CHECK(chunk_by_moments({}, 5, 8).empty());
  CHECK(numel_breakpoints({}).empty());
  CHECK(moment_breakpoints_mb({}, 8).empty());
  CHECK(offloaded_by_fraction({}, 0.5, 12).empty());
  const std::vector<Shard> one = shards_of({{0, 0, {1'000'000'000'000}}});
  CHECK(numels(chunk_by_numel(one, Numel{5})) == std::vector<std::int64_t>{1'000'000'000'000});
  CHECK(numel_breakpoints(one) == std::vector<Numel>{Numel{1}});
}

std::vector<Shard> random_shards(std::mt19937_64& random, std::int64_t unit) {
  std::vector<Group> groups;
  for (const auto& [optimizer, group] : {std::pair{0, 0}, {0, 1}, {1, 0}, {1, 1}}) {
    Group next{static_cast<std::uint16_t>(optimizer), static_cast<std::uint16_t>(group), {}};
    const std::uint64_t size = random() % 7;  // may be empty
    for (std::uint64_t i = 0; i < size; ++i) {
      next.numels.push_back(static_cast<std::int64_t>(random() % 12 + 1) * unit +
                            static_cast<std::int64_t>(random() % 2));
    }
    groups.push_back(next);
  }
  return shards_of(groups);
}

TEST_CASE("chunks: in order, complete, bounded, inside one group", "[chunking][property]") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    const std::vector<Shard> shards = random_shards(random, 1);
    Numel largest{0};
    for (const Shard& shard : shards) largest = std::max(largest, shard.numel);
    const Numel limit{static_cast<std::int64_t>(random() % 40 + 1)};
    std::uint32_t next = 0;
    std::size_t wrong = 0;
    for (const Chunk& chunk : chunk_by_numel(shards, limit)) {
      wrong += chunk.first != next || chunk.count == 0 || chunk.numel > std::max(limit, largest);
      Numel sum{0};
      for (std::uint32_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
        sum += shards[i].numel;
        wrong += shards[i].group != shards[chunk.first].group || shards[i].optimizer != shards[chunk.first].optimizer;
      }
      wrong += sum != chunk.numel;
      next = chunk.first + chunk.count;
    }
    CHECK(wrong == 0);
    CHECK(next == shards.size());
  }
}

/// Every limit from 1 up at which the packing differs from that of the limit before it.
template <class Pack>
std::vector<std::int64_t> brute_force(std::int64_t most, Pack pack) {
  std::vector<std::int64_t> found = {1};
  for (std::int64_t limit = 2; limit <= most; ++limit) {
    if (counts(pack(limit)) != counts(pack(limit - 1))) found.push_back(limit);
  }
  return found;
}

TEST_CASE("numel breakpoints are exactly the limits where the packing changes", "[chunking][property]") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Shard> shards = random_shards(random, 1);
    if (shards.empty()) continue;
    std::vector<std::int64_t> found;
    for (const Numel limit : numel_breakpoints(shards)) found.push_back(limit.value);
    const std::int64_t total = owned(shards).value;
    CHECK(found == brute_force(total + 2, [&](std::int64_t n) { return chunk_by_numel(shards, Numel{n}); }));
    // The last one packs as tightly as no limit does.
    CHECK(counts(chunk_by_numel(shards, Numel{found.back()})) == counts(chunk_by_numel(shards, Numel{0})));
  }
}

TEST_CASE("windowed breakpoints are exactly the MiB where the packing changes", "[chunking][property]") {
  std::mt19937_64 random(12);
  for (int round = 0; round < 300; ++round) {
    const std::int64_t bytes = std::vector<std::int64_t>{8, 4, 2, 6}[random() % 4];
    const std::vector<Shard> shards = random_shards(random, kMiB / 20);
    if (shards.empty()) continue;
    const std::int64_t most = owned(shards).value * bytes / kMiB + 2;
    CHECK(moment_breakpoints_mb(shards, bytes) ==
          brute_force(most, [&](std::int64_t mb) { return chunk_by_moments(shards, mb, bytes); }));
    CHECK(counts(chunk_by_moments(shards, moment_breakpoints_mb(shards, bytes).back(), bytes)) ==
          counts(chunk_by_moments(shards, 0, bytes)));
  }
}

TEST_CASE("a fraction moves whole shards in order until its bytes are reached, for each optimizer", "[chunking]") {
  const std::vector<Shard> shards = shards_of({{0, 0, {50, 30, 20}}, {1, 0, {10, 10}}});
  using Moves = std::vector<bool>;
  CHECK(offloaded_by_fraction(shards, 1.0, 12) == Moves{true, true, true, true, true});
  CHECK(offloaded_by_fraction(shards, 0.5, 12) == Moves{true, false, false, true, false});
  CHECK(offloaded_by_fraction(shards, 0.51, 12) == Moves{true, true, false, true, true});
  CHECK(offloaded_by_fraction(shards, 0.0001, 12) == Moves{true, false, false, true, false});
}

}  // namespace
}  // namespace ebb
