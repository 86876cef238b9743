// torch's rounding of device and pinned allocations, against what torch itself counted.
#include "models/memory/torch_allocator.hpp"

#include "tests/catch.hpp"
#include "tests/measured.hpp"

using namespace ebb;
using memory::allocated_bytes;
using memory::pinned_block_bytes;

TEST_CASE("torch: allocated bytes of a fresh tensor, as measured") {
  const auto lines = test::measured("torch-allocator.jsonl", "alloc");
  REQUIRE(lines.size() == 8);
  for (const auto& line : lines) {
    CAPTURE(line.at("req"));
    REQUIRE(allocated_bytes({line.at("req")}).value == line.at("allocated"));
  }
}

TEST_CASE("torch: pinned blocks are powers of two, as measured") {
  const auto lines = test::measured("torch-allocator.jsonl", "pinned");
  REQUIRE(lines.size() == 4);
  for (const auto& line : lines) {
    CAPTURE(line.at("req"));
    REQUIRE(pinned_block_bytes({line.at("req")}).value == line.at("rss"));
  }
}

TEST_CASE("torch: rounding never loses a byte, wastes at most the unsplit rest, and accepts nothing") {
  REQUIRE(allocated_bytes({0}).value == 0);
  REQUIRE(allocated_bytes({-1}).value == 0);
  REQUIRE(pinned_block_bytes({0}).value == 0);
  REQUIRE(pinned_block_bytes({1}).value == 1);
  for (std::int64_t bytes = 1; bytes < (std::int64_t{1} << 36); bytes += bytes / 7 + 1) {
    const std::int64_t device = allocated_bytes({bytes}).value;
    REQUIRE(device >= bytes);
    REQUIRE(device - bytes < (1 << 20) + 512);
    REQUIRE(device % 512 == 0);
    const std::int64_t pinned = pinned_block_bytes({bytes}).value;
    REQUIRE(pinned >= bytes);
    REQUIRE(pinned < 2 * bytes);
  }
}
