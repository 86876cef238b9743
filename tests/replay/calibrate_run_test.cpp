// The command from a file of measurements to a cluster's YAML, without a GPU: made-up measurements, and the real ones
// that tests/data/replay holds.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "models/cluster_yaml.hpp"
#include "models/library.hpp"
#include "models/text_file.hpp"
#include "replay/calibrate.hpp"
#include "replay/calibrate_data.hpp"
#include "replay/calibrate_fit.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"
#include "tests/replay/calibration_of.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

namespace fs = std::filesystem;

/// A directory that goes with the test.
class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / ("ebb-calibrate-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~Scratch() { fs::remove_all(path_); }
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
std::string read(const fs::path& path) { return read_text_file(path, 1 << 26); }

bool near(double value, double expected, double relative) {
  return std::abs(value - expected) <= relative * std::abs(expected);
}

}  // namespace

TEST_CASE("calibrate --from: made-up measurements with 1 % of noise become the cluster that they are of") {
  const Scratch scratch;
  const Cluster truth = load_cluster(library_path(Library::clusters, "h200-1gpu"));
  write(scratch / "raw.jsonl", calibration_lines(test::calibration_of(truth, 0.01)));
  REQUIRE(run_calibrate({.output = scratch / "here.yaml",
                         .base = "hgx-h100",
                         .devices = {},
                         .raw = scratch / "again.jsonl",
                         .from = scratch / "raw.jsonl",
                         .date = "",
                         .command = ""}) == 0);
  const Cluster c = load_cluster(scratch / "here.yaml");
  CHECK(c.name == "here");
  CHECK(c.gpus_per_host == 1);
  CHECK(c.gpu.name == "NVIDIA H200");
  CHECK(near(c.host_link.h2d.value.value, truth.host_link.h2d.value.value, 0.01));
  CHECK(near(c.host_link.latency.value.value, truth.host_link.latency.value.value, 0.02));
  CHECK(near(c.host_link.both.value.value, truth.host_link.both.value.value, 0.015));
  CHECK(near(c.gpu.adam.value.value, truth.gpu.adam.value.value, 0.02));
  CHECK(near(c.calls.synchronize.value.value, truth.calls.synchronize.value.value, 0.05));
  CHECK(c.interconnect.network == load_cluster(library_path(Library::clusters, "hgx-h100")).interconnect.network);
  CHECK(read(scratch / "again.jsonl") == read(scratch / "raw.jsonl"));
  const std::string text = read(scratch / "here.yaml");
  CHECK(text.starts_with("# Calibrated 2026-11-30 by ebb-replay on 1 NVIDIA H200, driver 580.159, CUDA 13.0.\n"));
  // The date is that of the measurements: a second fit gives the same bytes.
  REQUIRE(run_calibrate({.output = scratch / "here.yaml",
                         .base = "hgx-h100",
                         .devices = {},
                         .json = true,
                         .from = scratch / "raw.jsonl",
                         .date = "2030-01-01",
                         .command = "other"}) == 0);
  CHECK(read(scratch / "here.yaml") == text);
}

TEST_CASE("calibrate: what is missing or cannot be") {
  const auto error = [](const CalibrateOptions& options) { return error_of([&] { run_calibrate(options); }); };
  CHECK(error({}).find("add -o cluster.yaml") != std::string::npos);
  CHECK(error({.output = "x.yaml", .from = "/nowhere/raw.jsonl"}).find("/nowhere/raw.jsonl") != std::string::npos);
  CHECK(error({.output = "x.yaml", .seconds = 0}).find("--seconds") != std::string::npos);
}

TEST_CASE("calibrate: the library's cluster of the same GPU and as many a host is the base") {
  CHECK(base_cluster("NVIDIA H200", 1) == "h200-1gpu");
  CHECK(base_cluster("NVIDIA H200", 8) == "hgx-h200");
  CHECK(base_cluster("NVIDIA H200", 2) == "hgx-h200");
  CHECK(base_cluster("GPU of another world", 1) == "h200-1gpu");
  CHECK(base_cluster("GPU of another world", 4) == "hgx-h200");
}

TEST_CASE("calibrate --from: every committed calibration of a real machine fits, and says how well") {
  const fs::path directory = fs::path(EBB_TEST_DATA) / "replay";
  if (!fs::exists(directory)) return;
  const Scratch scratch;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("calibration-") || entry.path().extension() != ".jsonl") continue;
    INFO(name);
    REQUIRE(run_calibrate({.output = scratch / "real.yaml", .from = entry.path()}) == 0);
    const Cluster c = load_cluster(scratch / "real.yaml");
    const CalibrationData data = read_calibration(read(entry.path()), name);
    // What the figures must explain: copies alone by size and piece, and both ways.
    const LinkFit link = fit_link(data.copies);
    CHECK(link.residual.median < 0.01);
    CHECK(link.residual.worst < 0.05);
    const auto both = fit_both(data.flows, link, 4_MiB);
    REQUIRE(both);
    CHECK(both->residual.median < 0.03);
    CHECK(c.gpu.adam.value.value <= c.gpu.hbm.value.value);
    CHECK(c.host_link.both.value.value > c.host_link.h2d.value.value);
  }
}
