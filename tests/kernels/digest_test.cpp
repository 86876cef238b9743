// The digest sees every bit, place and tag, and does not see order, pieces or addresses.
#include "kernels/digest.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using namespace ebb::kernels;

namespace {

std::vector<std::uint32_t> random_words(std::size_t n, unsigned seed) {
  std::vector<std::uint32_t> words(n);
  std::mt19937 engine(seed);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(engine());
  return words;
}

std::uint64_t digest_of(const std::vector<std::uint32_t>& words, std::int64_t index = 0, std::uint64_t tag = 1) {
  const Run run{.index = index, .numel = static_cast<std::int64_t>(words.size())};
  return digest_ref(Type::fp32, words.data(), {&run, 1}, tag);
}

}  // namespace

TEST_CASE("mix64 is MurmurHash3's 64-bit finalizer") {
  REQUIRE(mix64(0) == 0);
  REQUIRE(mix64(1) == 0xb456bcfc34c2cb2cULL);
  REQUIRE(mix64(0x0123456789abcdefULL) == 0x87cbfbfe89022ceaULL);
}

TEST_CASE("any split in any order, from any address, has the same digest") {
  std::vector<std::uint32_t> words = random_words(5000, 1);
  const std::uint64_t whole = digest_of(words, 1000);
  words.insert(words.begin(), 3, 0);  // the same elements, twelve bytes further
  std::mt19937 engine(2);
  for (const unsigned longest : {1U, 7U, 900U}) {
    std::vector<Run> runs;
    for (std::int64_t begin = 0; begin < 5000;) {
      const std::int64_t n = std::min<std::int64_t>(5000 - begin, engine() % (longest + 1));
      runs.push_back({.offset = 4 * (begin + 3), .index = 1000 + begin, .numel = n});
      begin += n;
    }
    std::shuffle(runs.begin(), runs.end(), engine);
    REQUIRE(digest_ref(Type::fp32, words.data(), runs, 1) == whole);
    std::uint64_t sum = 0;
    for (const Run& run : runs) sum += digest_ref(Type::fp32, words.data(), {&run, 1}, 1);
    REQUIRE(sum == whole);
  }
}

TEST_CASE("every single bit counts") {
  const std::vector<std::uint32_t> words = random_words(40, 3);
  const std::uint64_t whole = digest_of(words);
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (int bit = 0; bit < 32; ++bit) {
      std::vector<std::uint32_t> wrong = words;
      wrong[i] ^= 1U << bit;
      REQUIRE(digest_of(wrong) != whole);
    }
  }
}

TEST_CASE("swapped, shifted, doubled or missing elements count, and so does the tag") {
  const std::vector<std::uint32_t> words = random_words(40, 4);
  const std::uint64_t whole = digest_of(words);
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::vector<std::uint32_t> wrong = words;
      std::swap(wrong[i], wrong[j]);
      REQUIRE(digest_of(wrong) != whole);
    }
  }
  REQUIRE(digest_of(words, 1) != whole);
  REQUIRE(digest_of(words, 0, 2) != whole);
  const std::vector<Run> twice = {{.numel = 40}, {.numel = 1}};
  REQUIRE(digest_ref(Type::fp32, words.data(), twice, 1) != whole);
  const Run less{.numel = 39};
  REQUIRE(digest_ref(Type::fp32, words.data(), {&less, 1}, 1) != whole);
}

TEST_CASE("zeros are not nothing, and narrow types count their own bits") {
  const std::vector<std::uint32_t> zeros(8, 0);
  REQUIRE(digest_of(zeros) != 0);
  const std::vector<std::uint8_t> bytes = {1, 2, 3, 4, 5, 6, 7, 8};
  const Run eight{.numel = 8}, four{.numel = 4}, two{.numel = 2};
  std::uint64_t as_bytes = 0, as_halves = 0, as_words = 0;
  const auto element = [](std::uint64_t index, std::uint32_t bits) { return digest_element(mix64(9), index, bits); };
  for (std::uint64_t i = 0; i < 8; ++i) as_bytes += element(i, static_cast<std::uint32_t>(i) + 1);
  for (std::uint64_t i = 0; i < 4; ++i) as_halves += element(i, static_cast<std::uint32_t>(0x0201 + 0x0202 * i));
  for (std::uint64_t i = 0; i < 2; ++i) as_words += element(i, static_cast<std::uint32_t>(0x04030201 + 0x04040404 * i));
  REQUIRE(digest_ref(Type::fp8_e4m3, bytes.data(), {&eight, 1}, 9) == as_bytes);
  REQUIRE(digest_ref(Type::bf16, bytes.data(), {&four, 1}, 9) == as_halves);
  REQUIRE(digest_ref(Type::fp32, bytes.data(), {&two, 1}, 9) == as_words);
}
