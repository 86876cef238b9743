// FreeList: the same as an ordered set, whatever goes in and out.
#include "models/memory/free_list.hpp"

#include <random>
#include <set>
#include <vector>

#include "tests/catch.hpp"

using namespace ebb;
using memory::FreeList;
using memory::FreePiece;

namespace {

std::vector<FreePiece> all(const FreeList& list) {
  std::vector<FreePiece> entries;
  list.for_each([&](const FreePiece& entry) { entries.push_back(entry); });
  return entries;
}

/// Sizes of every magnitude from 1 byte to 2^50, often next to one another.
std::int64_t random_bytes(std::mt19937_64& random) {
  const auto width = static_cast<unsigned>(random() % 51);
  const std::int64_t power = std::int64_t{1} << width;
  return std::max<std::int64_t>(1, power + static_cast<std::int64_t>(random() % 5) - 2);
}

}  // namespace

TEST_CASE("a free list is an ordered set: 20,000 random inserts, searches and removals") {
  std::mt19937_64 random(1);
  FreeList list;
  std::set<FreePiece> set;
  std::uint32_t piece = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (set.empty() || random() % 2 == 0) {
      const FreePiece entry{random_bytes(random), random() % 1000, ++piece};
      list.insert(entry);
      set.insert(entry);
    } else {
      auto gone = set.begin();
      std::advance(gone, static_cast<std::ptrdiff_t>(random() % std::min<std::size_t>(set.size(), 50)));
      list.erase(*gone);
      set.erase(gone);
    }
    const std::int64_t bytes = random_bytes(random);
    const auto expected = set.lower_bound({bytes, 0, 0});
    const FreeList::Place found = list.first_of_at_least(bytes);
    REQUIRE((found == FreeList::end()) == (expected == set.end()));
    if (expected == set.end()) continue;
    REQUIRE(list.at(found) == *expected);
    const FreeList::Place next = list.next(found);
    REQUIRE((next == FreeList::end()) == (std::next(expected) == set.end()));
    if (next != FreeList::end()) REQUIRE(list.at(next) == *std::next(expected));
    if (i % 500 == 0) REQUIRE(all(list) == std::vector<FreePiece>(set.begin(), set.end()));
  }
  std::vector<FreePiece> seen;
  list.erase_if([&](const FreePiece& entry) {
    seen.push_back(entry);
    return entry.piece % 3 == 0;
  });
  CHECK(seen == std::vector<FreePiece>(set.begin(), set.end()));
  std::erase_if(set, [](const FreePiece& entry) { return entry.piece % 3 == 0; });
  CHECK(all(list) == std::vector<FreePiece>(set.begin(), set.end()));
  list.clear();
  CHECK(all(list).empty());
  CHECK(list.first_of_at_least(1) == FreeList::end());
}
