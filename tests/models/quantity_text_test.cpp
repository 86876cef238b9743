// Quantities as text: every unit means what its letters say, sizes are exact to the byte up to 2^63, whatever is not
// one finite non-negative number is rejected with the text in quotes, and printed forms read back.
#include "models/quantity_text.hpp"

#include <random>

#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;

TEST_CASE("sizes: decimal and binary prefixes") {
  REQUIRE(parse_bytes("20GiB").value == 21474836480);
  REQUIRE(parse_bytes("20GB").value == 20000000000);
  REQUIRE(parse_bytes("20 GB").value == 20000000000);
  REQUIRE(parse_bytes("1Gi").value == 1073741824);
  REQUIRE(parse_bytes("1.5GiB").value == 1610612736);
  REQUIRE(parse_bytes("0.1GiB").value == 107374182);  // nearest byte
  REQUIRE(parse_bytes("1kB").value == 1000);
  REQUIRE(parse_bytes("1KiB").value == 1024);
  REQUIRE(parse_bytes("552402944").value == 552402944);
  REQUIRE(parse_bytes("2e9").value == 2000000000);
  REQUIRE(parse_bytes("0").value == 0);
}

TEST_CASE("sizes are exact beyond the 53 bits of a double") {
  REQUIRE(parse_bytes("9007199254740993").value == 9007199254740993);
  REQUIRE(parse_bytes("9223372036854775807").value == 9223372036854775807);
  REQUIRE(parse_numel("4611686018427387905").value == 4611686018427387905);
}

TEST_CASE("elements: whole numbers with exponents, separators and decimal prefixes") {
  REQUIRE(parse_numel("1e9").value == 1000000000);
  REQUIRE(parse_numel("671088640").value == 671088640);
  REQUIRE(parse_numel("1_000_000").value == 1000000);
  REQUIRE(parse_numel("400M").value == 400000000);
  REQUIRE(parse_numel("1.5e3").value == 1500);
  REQUIRE(error_of([] { parse_numel("1.5"); }) == "\"1.5\" is not a whole number; use a whole number");
}

TEST_CASE("rates and times") {
  REQUIRE(parse_bandwidth("55.3GB/s").value == 55.3e9);
  REQUIRE(parse_bandwidth("4.26TB/s").value == 4.26e12);
  REQUIRE(parse_bandwidth("400Gbit/s").value == 50e9);
  REQUIRE(parse_flop_rate("790TFLOP/s").value == 790e12);
  REQUIRE(parse_seconds("3us").value == 3e-6);
  REQUIRE(parse_seconds("0.34s").value == 0.34);
  REQUIRE(parse_seconds("3.1").value == 3.1);
  REQUIRE(parse_seconds("2min").value == 120);
  REQUIRE(parse_ratio("0.55") == 0.55);
}

TEST_CASE("what is not one finite non-negative number is rejected, and the message says why") {
  const Place place{"job.yaml", 14, 9};
  const auto bytes_error = [&](const char* text) { return error_of([&] { parse_bytes(text, place); }); };
  REQUIRE(bytes_error("-20GiB") == "job.yaml:14:9: \"-20GiB\" is negative; use a number that is zero or more");
  REQUIRE(bytes_error("nan") == "job.yaml:14:9: \"nan\" is not a number; write it like 20GiB or 1.5e9");
  REQUIRE(bytes_error(".nan") == "job.yaml:14:9: \".nan\" is not a number; write it like 20GiB or 1.5e9");
  REQUIRE(bytes_error("inf") == "job.yaml:14:9: \"inf\" is not a number; write it like 20GiB or 1.5e9");
  REQUIRE(bytes_error("") == "job.yaml:14:9: \"\" is empty where a number belongs; write it like 20GiB or 1.5e9");
  REQUIRE(bytes_error("GiB") == "job.yaml:14:9: \"GiB\" is not a number; write it like 20GiB or 1.5e9");
  REQUIRE(bytes_error("20Gb") ==
          "job.yaml:14:9: \"20Gb\" has the unknown unit \"Gb\"; the units are B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, "
          "KB, Ki, Mi, Gi, Ti");
  REQUIRE(bytes_error("20GiB of it").find("unknown unit \"GiB of it\"") != std::string::npos);
  REQUIRE(bytes_error("1e99") == "job.yaml:14:9: \"1e99\" is out of range; use less than 2^63");
  REQUIRE(bytes_error("1e99999") == "job.yaml:14:9: \"1e99999\" is out of range; write it like 20GiB or 1.5e9");
  REQUIRE(bytes_error("9223372036854775808").find("out of range") != std::string::npos);
  REQUIRE(bytes_error("0x10").find("unknown unit \"x10\"") != std::string::npos);
  REQUIRE(bytes_error("1_000_").find("unknown unit") != std::string::npos);
  REQUIRE(error_of([] { parse_bandwidth("55Gb/s"); }).find("unknown unit \"Gb/s\"") != std::string::npos);
  REQUIRE(error_of([] { parse_seconds("-1s"); }) == "\"-1s\" is negative; use a number that is zero or more");
  REQUIRE(error_of([] { parse_ratio("0.5x"); }) == "\"0.5x\" has the unknown unit \"x\"; it takes no unit");
  REQUIRE(error_of([] { parse_seconds("1e4000"); }).find("out of range") != std::string::npos);
}

TEST_CASE("a huge text gives a short message") {
  const std::string huge(1'000'000, '9');
  REQUIRE(error_of([&] { parse_bytes(huge); }).size() < 200);
  REQUIRE(error_of([&] { parse_bytes("1" + std::string(1'000'000, 'q')); }).size() < 300);
}

TEST_CASE("printed for people: the right letters, 3 to 4 significant digits") {
  REQUIRE(format_bytes(130_GiB) == "130.0 GiB");
  REQUIRE(format_bytes({1610612736}) == "1.500 GiB");
  REQUIRE(format_bytes({512}) == "512 B");
  REQUIRE(format_bytes({0}) == "0 B");
  REQUIRE(format_bytes({1LL << 41}) == "2.000 TiB");
  REQUIRE(format_bytes({-(3LL << 30)}) == "-3.000 GiB");
  REQUIRE(format_seconds({0.846}) == "846.0 ms");
  REQUIRE(format_seconds({1.34}) == "1.340 s");
  REQUIRE(format_seconds({3.4e-6}) == "3.400 us");
  REQUIRE(format_seconds({0}) == "0 s");
  REQUIRE(format_numel({1000000000}) == "1,000,000,000");
  REQUIRE(format_numel({999}) == "999");
  REQUIRE(format_numel({-1234}) == "-1,234");
  REQUIRE(format_bandwidth({55.3e9}) == "55.30 GB/s");
  REQUIRE(format_bandwidth({4.26e12}) == "4.260 TB/s");
}

TEST_CASE("written for files: short where possible, and read back to exactly the same value") {
  REQUIRE(exact_text(130_GiB) == "130GiB");
  REQUIRE(exact_text(Bytes{480000000000}) == "480GB");
  REQUIRE(exact_text(Bytes{552402944}) == "552402944");
  REQUIRE(exact_text(BytesPerSecond{55.3e9}) == "55.3GB/s");
  REQUIRE(exact_text(FlopsPerSecond{780e12}) == "780TFLOP/s");
  REQUIRE(exact_text(Seconds{2.8e-6}) == "2.8us");
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 100) - 80);
    const Bytes bytes{static_cast<std::int64_t>(random() >> (1 + random() % 60))};
    REQUIRE(parse_bytes(exact_text(bytes)) == bytes);
    REQUIRE(parse_bandwidth(exact_text(BytesPerSecond{value})).value == value);
    REQUIRE(parse_flop_rate(exact_text(FlopsPerSecond{value})).value == value);
    REQUIRE(parse_seconds(exact_text(Seconds{value})).value == value);
  }
}
