// Whatever bytes stand in a model, cluster or job file: it loads, or InputError says what is wrong. Mutations of the
// library with a fixed seed; any other exception, and under a sanitizer any invalid access, fails the test.
#include <fstream>
#include <random>
#include <sstream>

#include "models/cluster_yaml.hpp"
#include "models/job_yaml.hpp"
#include "models/library.hpp"
#include "models/model_yaml.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;

namespace {

std::vector<std::string> texts_of(Library kind) {
  std::vector<std::string> texts;
  for (const std::string& name : library_names(kind)) {
    std::ifstream in(library_path(kind, name));
    std::ostringstream text;
    text << in.rdbuf();
    texts.push_back(text.str());
  }
  return texts;
}

/// A few edits: a random byte, a removed or doubled piece, or a token that means something to YAML or to us.
std::string mutated(std::string text, std::mt19937& random) {
  static const std::string kTokens[] = {
      "[",    "]",    "{", "}",   ": ",  "\n", "- ",  "? ",    "&a ", "*a",   "|",    ">",    "\"",  "'",
      "%",    "!!x ", "#", "---", "...", "\t", "  ",  "<<: ",  "-1",  "1e99", ".nan", "null", "~",   "0",
      "true", "GiB",  ",", "\r",  "@",   "`",  "\\x", "\\u00", "1e9", "auto", "8b",   "-",    "\xc3"};
  for (auto edits = 1 + random() % 5; edits > 0; --edits) {
    const std::size_t at = random() % (text.size() + 1);
    switch (random() % 5) {
      case 0:
        text.insert(at, 1, static_cast<char>(random()));
        break;
      case 1:
        text.erase(at, 1 + random() % 10);
        break;
      case 2:
        text.insert(at, text.substr(random() % (text.size() + 1), random() % 60));
        break;
      default:
        text.insert(at, kTokens[random() % std::size(kTokens)]);
    }
  }
  return text;
}

template <class Read>
int refusals(Library kind, int rounds, const Read& read) {
  const std::vector<std::string> texts = texts_of(kind);
  std::mt19937 random(20261130);
  int refused = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::string text = mutated(texts[static_cast<std::size_t>(i) % texts.size()], random);
    const std::string error = error_of([&] { read(parse_yaml(text, "f.yaml")); });
    if (error.empty()) continue;
    ++refused;
    // One line that a terminal can show, placed in the file.
    REQUIRE(error.starts_with("f.yaml"));
    REQUIRE(error.size() < 1000);
  }
  return refused;
}

}  // namespace

TEST_CASE("mutated models") {
  REQUIRE(refusals(Library::models, 10'000, [](const YamlNode& node) { write_model(read_model(node, "m")); }) > 3000);
}

TEST_CASE("mutated clusters") {
  REQUIRE(refusals(Library::clusters, 5'000, [](const YamlNode& node) { write_cluster(read_cluster(node, "c")); }) >
          1000);
}

TEST_CASE("mutated jobs") {
  REQUIRE(refusals(Library::jobs, 10'000, [](const YamlNode& node) { write_job(read_job(node, "f.yaml")); }) > 3000);
}
