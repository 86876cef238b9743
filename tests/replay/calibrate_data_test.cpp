// What a calibration measured survives its file; a file that is not one is refused with its line.
#include "replay/calibrate_data.hpp"

#include "models/cluster_yaml.hpp"
#include "models/library.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"
#include "tests/replay/calibration_of.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

CalibrationData example() {
  CalibrationData data = test::calibration_of(load_cluster(library_path(Library::clusters, "hgx-h200")), 0.01);
  data.collectives.push_back({.work = Work::reduce_scatter,
                              .members = 8,
                              .bytes = 1_GiB,
                              .link_use = 0.75,
                              .each = {.median = 1.0 / 3, .least = 0.1, .most = 0.5, .repeats = 7}});
  return data;
}

std::string error_with(const std::string& old_text, const std::string& new_text) {
  std::string text = calibration_lines(example());
  const std::size_t at = text.find(old_text);
  REQUIRE(at != std::string::npos);
  text.replace(at, old_text.size(), new_text);
  return error_of([&] { read_calibration(text, "raw.jsonl"); });
}

}  // namespace

TEST_CASE("calibration files: all tables read back equal") {
  const CalibrationData data = example();
  REQUIRE(read_calibration(calibration_lines(data), "raw.jsonl") == data);
}

TEST_CASE("calibration files: what is not one is refused") {
  CHECK(error_with("\"k\":\"copy\"", "\"k\":\"cpy\"").find("raw.jsonl:2: k: \"cpy\" is no table") != std::string::npos);
  CHECK(error_with("\"work\":\"reduce", "\"work\":\"induce").find("no collective") != std::string::npos);
  CHECK(error_with("\"repeats\":5", "\"repeats\":0").find("repeats") != std::string::npos);
  CHECK(error_with("\"window_s\":", "\"window_s\":-").find("window_s: it is too small") != std::string::npos);
  CHECK(error_with("\"gpu\":0", "\"gpu\":\"zero\"").find("gpu") != std::string::npos);
  CHECK(error_of([] { read_calibration("{\"k\"", "raw.jsonl"); }).find("not valid JSON") != std::string::npos);
  CHECK(error_of([] { read_calibration("", "raw.jsonl"); }).find("which GPU") != std::string::npos);
}

TEST_CASE("calibration files: the median of repeats, and how far they spread") {
  CHECK(timed({3, 1, 2}) == Timed{.median = 2, .least = 1, .most = 3, .repeats = 3});
  CHECK(timed({4, 1, 2, 3}) == Timed{.median = 2.5, .least = 1, .most = 4, .repeats = 4});
}
