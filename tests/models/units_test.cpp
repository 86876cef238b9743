// Quantities: arithmetic stays inside one unit and conversions round as documented.
#include "models/units.hpp"

#include "tests/catch.hpp"

using namespace ebb;

TEST_CASE("ticks are picoseconds, rounded to nearest") {
  REQUIRE(to_ticks({1e-12}).value == 1);
  REQUIRE(to_ticks({1.6e-12}).value == 2);
  REQUIRE(to_seconds({2'500'000'000'000}).value == Approx(2.5));
}

TEST_CASE("bytes over a rate is a time") {
  REQUIRE((Bytes{55'300'000'000} / BytesPerSecond{55.3e9}).value == Approx(1.0));
}

TEST_CASE("binary suffixes and rounding up") {
  REQUIRE((1_GiB).value == 1073741824);
  REQUIRE(round_up(513, 512) == 1024);
  REQUIRE(round_up(512, 512) == 512);
  REQUIRE(ceil_div(7, 2) == 4);
}
