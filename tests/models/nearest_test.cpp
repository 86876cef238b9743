// Suggestions: distances are Damerau-Levenshtein's (checked by hand), and a suggestion is made only when it is near.
#include "models/nearest.hpp"

#include "tests/catch.hpp"

using namespace ebb;

TEST_CASE("edit distance") {
  REQUIRE(edit_distance("kitten", "sitting") == 3);  // the textbook example
  REQUIRE(edit_distance("", "abc") == 3);
  REQUIRE(edit_distance("hidden_sise", "hidden_size") == 1);
  REQUIRE(edit_distance("ca", "abc") == 3);         // a swapped pair is not edited again
  REQUIRE(edit_distance("layesr", "layers") == 1);  // a swap is one
  REQUIRE(edit_distance("CPU_ADAM", "cpu-adam") == 0);
  REQUIRE(edit_distance("same", "same") == 0);
}

TEST_CASE("only a near word is suggested") {
  const std::vector<std::string> policies = {"resident", "full-reload", "chunked", "windowed"};
  REQUIRE(did_you_mean("chunkd", policies, "policies") == "did you mean \"chunked\"?");
  REQUIRE(did_you_mean("xyz", policies, "policies") == "known policies: resident, full-reload, chunked, windowed");
  REQUIRE(did_you_mean(std::string(100000, 'a'), policies, "policies").starts_with("known policies:"));
  const std::vector<std::string> ids = {"tp"};
  REQUIRE(did_you_mean("ab", ids, "keys") == "known keys: tp");  // nothing in common
}
