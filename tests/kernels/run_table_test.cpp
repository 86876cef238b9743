// Every element of every run belongs to exactly one block: what a block looks up in a table (the same code on the
// device) is walked over here and compared with the runs themselves.
#include "kernels/run_table.cuh"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using namespace ebb::kernels;

namespace {

constexpr std::int64_t kTile = 512;

std::vector<RunEntry<1>> random_runs(std::size_t count, std::int64_t longest, std::mt19937& engine) {
  std::vector<RunEntry<1>> runs;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t numel = 1 + static_cast<std::int64_t>(engine()) % (engine() % 4 == 0 ? longest : 1500);
    const auto shift = static_cast<std::uint8_t>(engine() % 5);
    runs.push_back(
        {.offset = {static_cast<std::int64_t>(i)}, .numel = numel, .shift = shift == 4 ? kUnaligned : shift});
  }
  return runs;
}

/// Walks over all blocks of all launches; requires that they take up the runs' elements in order, none left out.
void require_all_covered(const std::vector<RunEntry<1>>& runs) {
  std::size_t run = 0;        // of `runs`
  std::int64_t covered = 0;   // elements of it
  std::size_t first_run = 0;  // of the launch's table
  const int code = launch_runs(runs, kTile, [&]<int kRuns>(const RunTable<1, kRuns>& table, unsigned blocks) -> int {
    for (unsigned block = 0; block < blocks; ++block) {
      const Tile tile = table.template find<kTile>(block);
      REQUIRE(first_run + static_cast<std::size_t>(tile.run) == run);
      REQUIRE(table.offset[tile.run][0] == static_cast<std::int64_t>(run));
      REQUIRE(tile.numel == runs[run].numel);
      REQUIRE(std::max<std::int64_t>(tile.begin, 0) == covered);
      const std::int64_t end = std::min(tile.begin + kTile, tile.numel);
      REQUIRE(end > covered);
      const bool clipped = tile.begin < 0 || tile.begin + kTile > tile.numel;
      REQUIRE(tile.whole == (!clipped && runs[run].shift != kUnaligned));
      if (runs[run].shift != kUnaligned) REQUIRE((tile.begin + runs[run].shift) % kWidth == 0);
      covered = end;
      if (covered == runs[run].numel) {
        ++run;
        covered = 0;
      }
    }
    first_run = run;
    return cudaSuccess;
  });
  REQUIRE(code == cudaSuccess);
  REQUIRE(run == runs.size());
  REQUIRE(covered == 0);
}

}  // namespace

TEST_CASE("a table of runs leads every block to its elements") {
  std::mt19937 engine(1);
  for (const std::size_t count : {1U, 2U, 31U, 32U, 33U, 255U, 256U, 257U, 512U, 513U, 1100U}) {
    for (const std::int64_t longest : {1, 1'000, 300'000}) {
      CAPTURE(count, longest);
      require_all_covered(random_runs(count, longest, engine));
    }
  }
}

TEST_CASE("groups of tiles end where the index does") {
  // One run of so many tiles that they fill the coarse index exactly, or are one more or less.
  for (const std::int64_t tiles : {kGroups - 1, kGroups, kGroups + 1, 2 * kGroups, 2 * kGroups + 1, 7 * kGroups}) {
    CAPTURE(tiles);
    require_all_covered({{.offset = {0}, .numel = tiles * kTile, .shift = 0}});
    require_all_covered({{.offset = {0}, .numel = tiles * kTile - 1, .shift = 1},
                         {.offset = {1}, .numel = 1, .shift = 3},
                         {.offset = {2}, .numel = kTile, .shift = kUnaligned}});
  }
}

TEST_CASE("no runs are no launch") {
  int launches = 0;
  const std::vector<RunEntry<1>> none;
  REQUIRE(launch_runs(none, kTile, [&]<int kRuns>(const RunTable<1, kRuns>&, unsigned) { return ++launches; }) == 0);
  REQUIRE(launches == 0);
}
