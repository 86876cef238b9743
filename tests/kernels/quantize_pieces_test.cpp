// However a matrix is cut into pieces, over any ranks and in any order, the maximum over ranks gives the scales and
// bytes of the whole; and no piece writes a byte that is not its own.
#include "kernels/quantize.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/quantize_cases.hpp"

using namespace ebb::kernels;
using namespace ebb::kernels::test;

namespace {

/// Largest values of all ranks: their maximum, NaN above all.
void reduce(std::vector<Weight>& ranks) {
  for (std::size_t i = 0; i < ranks[0].largest.size(); ++i) {
    float largest = 0;
    for (const Weight& rank : ranks) {
      if (std::isnan(rank.largest[i])) largest = rank.largest[i];
      if (rank.largest[i] > largest) largest = rank.largest[i];
    }
    for (Weight& rank : ranks) rank.largest[i] = largest;
  }
}

/// Quantised by several ranks, each with the pieces between borders that fall to it, its masters packed; then every
/// rank's bytes gathered into the first one's.
Weight by_ranks(Scaling scaling, std::int64_t r, std::int64_t c, const std::vector<float>& masters,
                const std::vector<std::int64_t>& at, std::size_t count, std::mt19937& engine) {
  std::vector<Weight> ranks(count, Weight(scaling, r, c));
  std::vector<std::vector<QuantizedPiece>> pieces(count);
  std::vector<std::vector<float>> own(count);
  for (std::size_t i = 0; i + 1 < at.size(); ++i) {
    const std::size_t rank = engine() % count;
    pieces[rank].push_back({.matrix = ranks[rank].matrix,
                            .first = at[i],
                            .numel = at[i + 1] - at[i],
                            .values = 4 * static_cast<std::int64_t>(own[rank].size())});
    own[rank].insert(own[rank].end(), masters.begin() + at[i], masters.begin() + at[i + 1]);
  }
  for (std::size_t rank = 0; rank < count; ++rank) {
    std::shuffle(pieces[rank].begin(), pieces[rank].end(), engine);
    // In two launches: largest values accumulate.
    const std::span<const QuantizedPiece> all(pieces[rank]);
    const std::size_t half = all.size() / 2;
    find_largest_ref(scaling, own[rank].data(), ranks[rank].arrays(), all.subspan(half));
    find_largest_ref(scaling, own[rank].data(), ranks[rank].arrays(), all.first(half));
  }
  reduce(ranks);
  for (std::size_t rank = 0; rank < count; ++rank) {
    Weight& w = ranks[rank];
    scales_ref(scaling, w.arrays(), {&w.matrix, 1});
    quantize_ref(scaling, own[rank].data(), w.arrays(), pieces[rank]);
    REQUIRE(w.row_scales == ranks[0].row_scales);
    REQUIRE(w.column_scales == ranks[0].column_scales);
    std::vector<bool> mine(static_cast<std::size_t>(w.numel()));
    for (const QuantizedPiece& p : pieces[rank]) std::fill_n(mine.begin() + p.first, p.numel, true);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (mine[i]) {
        ranks[0].rows[i] = w.rows[i], ranks[0].columns[i] = w.columns[i];
      } else if (rank > 0) {
        REQUIRE((w.rows[i] == 0xaa && w.columns[i] == 0xaa));
      }
    }
  }
  return ranks[0];
}

}  // namespace

TEST_CASE("any cut into pieces over any ranks gives the whole's scales and bytes") {
  std::mt19937 engine(1);
  for (const auto& [r, c] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 300}, {127, 129}, {128, 256}, {200, 31}}) {
    for (const Scaling scaling : kScalings) {
      for (const Kind kind : {Kind::normal, Kind::wide, Kind::special}) {
        const std::vector<float> masters = draw_masters(r * c, kind, engine);
        const Weight whole = quantized(scaling, r, c, masters);
        for (const int cuts : {0, 1, 3, 40}) {
          for (const std::size_t ranks : {1U, 2U, 5U}) {
            CAPTURE(r, c, static_cast<int>(scaling), static_cast<int>(kind), cuts, ranks);
            REQUIRE(by_ranks(scaling, r, c, masters, borders(r * c, cuts, engine), ranks, engine) == whole);
          }
        }
      }
    }
  }
}

TEST_CASE("two pieces that meet at any element 0 to 300 around the borders of tiles are as one") {
  std::mt19937 engine(2);
  constexpr std::int64_t kRows = 131, kColumns = 133;
  const std::vector<float> masters = draw_masters(kRows * kColumns, Kind::normal, engine);
  for (const Scaling scaling : kScalings) {
    const Weight whole = quantized(scaling, kRows, kColumns, masters);
    for (const std::int64_t near : {std::int64_t{0}, 32 * kColumns - 150, 128 * kColumns - 150}) {
      for (std::int64_t i = 0; i <= 300; ++i) {
        CAPTURE(static_cast<int>(scaling), near, i);
        REQUIRE(by_ranks(scaling, kRows, kColumns, masters, {0, near + i, kRows * kColumns}, 2, engine) == whole);
      }
    }
  }
}

TEST_CASE("every single element is a piece: runs of length one") {
  std::mt19937 engine(3);
  const std::vector<float> masters = draw_masters(35 * 37, Kind::special, engine);
  std::vector<std::int64_t> at(35 * 37 + 1);
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::int64_t>(i);
  for (const Scaling scaling : kScalings) {
    REQUIRE(by_ranks(scaling, 35, 37, masters, at, 3, engine) == quantized(scaling, 35, 37, masters));
  }
}

TEST_CASE("pieces dequantise to the whole's values, at any place, and nothing around them is written") {
  std::mt19937 engine(4);
  for (const Scaling scaling : kScalings) {
    Weight w = quantized(scaling, 77, 140, draw_masters(77 * 140, Kind::normal, engine));
    if (scaling != Scaling::mxfp8) make_columns_ref(scaling, w.arrays(), {&w.matrix, 1});
    for (const bool from_columns : {false, true}) {
      std::vector<float> all(static_cast<std::size_t>(w.numel())), split(2 * all.size(), -7);
      const QuantizedPiece whole = w.whole();
      dequantize_ref(scaling, w.arrays(), {.values = all.data(), .type = Type::fp32, .from_columns = from_columns},
                     {&whole, 1});
      std::vector<QuantizedPiece> pieces;
      const auto at = borders(w.numel(), 30, engine);
      for (std::size_t i = 0; i + 1 < at.size(); ++i) {  // a gap of five before each
        pieces.push_back({.matrix = w.matrix,
                          .first = at[i],
                          .numel = at[i + 1] - at[i],
                          .values = 4 * (at[i] + 5 * static_cast<std::int64_t>(i + 1))});
      }
      dequantize_ref(scaling, w.arrays(), {.values = split.data(), .type = Type::fp32, .from_columns = from_columns},
                     pieces);
      std::vector<float> want(split.size(), -7);
      for (const QuantizedPiece& p : pieces) {
        std::copy_n(all.begin() + p.first, p.numel, want.begin() + p.values / 4);
      }
      REQUIRE(split == want);
    }
  }
}
