// A calibrated cluster has the measured machine's figures, keeps what cannot be measured, and says where all come from.
#include "replay/calibrate_figures.hpp"

#include "models/cluster_write.hpp"
#include "models/cluster_yaml.hpp"
#include "models/library.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"
#include "tests/replay/calibration_of.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

Cluster library(const char* name) { return load_cluster(library_path(Library::clusters, name)); }

bool near(double value, double expected, double relative) {
  return std::abs(value - expected) <= relative * std::abs(expected);
}

/// A machine that differs from the library's in everything.
Cluster other_machine() {
  Cluster c = library("h200-1gpu");
  c.gpu.context.value = 600_MiB;
  c.gpu.hbm.value = {4.1e12};
  c.gpu.adam.value = {4.0e12};
  c.gpu.adam_foreach.value = {1.1e12};
  c.gpu.kernel_floor.value = {7e-6};
  c.host_link.h2d.value = {50.0e9};
  c.host_link.d2h.value = {52.0e9};
  c.host_link.both_by_size.value = {{16_MiB, {91e9}}, {64_MiB, {90e9}}, {1_GiB, {85e9}}};
  c.host_link.both.value = {85e9};
  c.host_link.d2h_weight.value = 1.02;
  c.host_link.latency.value = {3.5e-6};
  c.host.cpu_adam.value = {40e9};
  c.host.pin_seconds_per_gib.value = 0.5;
  c.host.pin_call.value = {2e-3};
  c.calls.launch.value = {2.2e-6};
  c.calls.copy.value = {1.2e-6};
  c.calls.synchronize.value = {7e-6};
  c.calls.event.value = {0.6e-6};
  c.calls.allocate.value = {0.3e-6};
  return c;
}

}  // namespace

TEST_CASE("a calibrated cluster has the machine's figures") {
  const Cluster truth = other_machine();
  const Cluster base = library("h200-1gpu");
  const Calibration made = calibrated(test::calibration_of(truth, 0), base, "here");
  const Cluster& c = made.cluster;
  CHECK(c.name == "here");
  CHECK(c.gpu.context.value == truth.gpu.context.value);
  CHECK(near(c.gpu.hbm.value.value, 4.1e12, 1e-3));
  CHECK(near(c.gpu.adam.value.value, 4.0e12, 1e-3));
  CHECK(near(c.gpu.adam_foreach.value.value, 1.1e12, 1e-3));
  CHECK(near(c.gpu.kernel_floor.value.value, 7e-6, 1e-3));
  CHECK(near(c.host_link.h2d.value.value, 50e9, 1e-3));
  CHECK(near(c.host_link.d2h.value.value, 52e9, 1e-3));
  CHECK(near(c.host_link.both.value.value, 85e9, 1e-3));
  REQUIRE(c.host_link.both_by_size.value.size() == 3);
  CHECK(near(c.host_link.both_by_size.value[0].rate.value, 91e9, 1e-3));
  CHECK(near(c.host_link.host_both.value.value, 91e9, 1e-3));
  CHECK(near(c.host_link.host_one_way.value.value, 52e9, 1e-3));
  CHECK(near(c.host_link.d2h_weight.value, 1.02, 1e-3));
  CHECK(near(c.host_link.latency.value.value, 3.5e-6, 1e-3));
  CHECK(near(c.host.cpu_adam.value.value, 40e9, 1e-3));
  CHECK(near(c.host.pin_seconds_per_gib.value, 0.5, 1e-3));
  CHECK(near(c.host.pin_call.value.value, 2e-3, 1e-3));
  CHECK(near(c.calls.launch.value.value, 2.2e-6, 1e-3));
  CHECK(near(c.calls.copy.value.value, 1.2e-6, 1e-3));
  CHECK(near(c.calls.synchronize.value.value, 7e-6, 1e-3));
  CHECK(near(c.calls.event.value.value, 0.6e-6, 1e-3));
  CHECK(near(c.calls.allocate.value.value, 0.3e-6, 1e-3));

  // Kept, with where they come from.
  CHECK(c.calls.chunk == base.calls.chunk);
  CHECK(c.calls.tensor_scan == base.calls.tensor_scan);
  CHECK(c.gpu.matrix_bf16 == base.gpu.matrix_bf16);
  CHECK(c.gpu.compute_efficiency == base.gpu.compute_efficiency);
  CHECK(c.interconnect == base.interconnect);
  CHECK(c.host_link.h2d.source.starts_with("measured: 1 NVIDIA H200, driver 580.159, 2026-11-30; pinned, alone"));
  CHECK(c.host_link.h2d.source.ends_with("residual 0.0 % (worst 0.0 %)"));
  // The file is one that any reader of clusters takes.
  CHECK(read_cluster(parse_yaml(cluster_file_text(c, {}), "c.yaml"), "c") == c);
}

TEST_CASE("a calibrated cluster of two GPUs: what they do together, and no topology that was not measured") {
  Cluster truth = library("hgx-h200");
  truth.gpus_per_host = 2;
  truth.host_link.host_one_way.value = {105e9};
  truth.host_link.host_both.value = {137e9};
  Cluster base = library("hgx-h200");
  base.topology.gpus_per_switch = 4;
  base.topology.switch_both = {{1e9}, "report: of eight"};
  CalibrationData data = test::calibration_of(truth, 0);
  for (const Bytes bytes : {16_MiB, 256_MiB})
    data.collectives.push_back({.work = Work::all_gather,
                                .members = 2,
                                .bytes = bytes,
                                .link_use = 0,
                                .each = {.median = 30e-6 + static_cast<double>(bytes.value) / 2 / 300e9}});
  const Cluster c = calibrated(data, base, "pair").cluster;
  CHECK(c.gpus_per_host == 2);
  CHECK(near(c.host_link.host_one_way.value.value, 105e9, 1e-3));
  CHECK(near(c.host_link.host_both.value.value, 137e9, 1e-3));
  CHECK(c.topology == Topology{});
  CHECK(c.interconnect.nvlink_domain == 2);
  CHECK(near(c.interconnect.nvlink.value.value, 300e9, 1e-3));
  CHECK(near(c.interconnect.collective_floor.value.value, 30e-6, 1e-3));
  CHECK(c.interconnect.nvlink_latency == base.interconnect.nvlink_latency);
  CHECK(c.interconnect.copy_interference == base.interconnect.copy_interference);
}

TEST_CASE("a calibrated cluster: hbm is never below Adam, which the simulator would hold back") {
  Cluster truth = other_machine();
  truth.gpu.adam.value = {4.3e12};
  const Cluster c = calibrated(test::calibration_of(truth, 0), library("h200-1gpu"), "here").cluster;
  CHECK(c.gpu.hbm.value.value >= c.gpu.adam.value.value);
}

TEST_CASE("a calibrated cluster: a kernel far off the others, and another GPU's base, are remarked on") {
  CalibrationData data = test::calibration_of(other_machine(), 0);
  for (KernelTime& kernel : data.kernels)
    if (kernel.what == "norm") kernel.each.median *= 1.5;
  data.setting.gpu = "NVIDIA H20";
  // 96 copies of 8 MiB on average: 96 * (3.5 us + 8 MiB / 50 GB/s) = 16.442 ms by the figures; 2 % more were measured.
  CopyTime mixed{.to_device = true, .pinned = true, .mixed = true, .gpu = 0, .bytes = 8_MiB, .calls = 96, .all = {}};
  mixed.all.median = 16.771e-3;
  data.copies.push_back(mixed);
  // 2 * 3.5 us + 1 MiB at 50 and at 52 GB/s = 48.14 us.
  data.calls.push_back({"chain", {.median = 57.14e-6}});
  const Calibration made = calibrated(data, library("h200-1gpu"), "here");
  const auto said = [&](std::string_view what) {
    for (const std::string& remark : made.remarks)
      if (remark.find(what) != std::string::npos) return true;
    return false;
  };
  CHECK(said("norm over 2.000 GiB runs at"));
  CHECK(said("another GPU"));
  CHECK(said("96 copies in of 16 KiB to 24 MiB back to back: 16.77 ms, the figures say 16.44 ms (-2.0 %)"));
  CHECK(said("that wait for each other take 57.14 us, the figures say 48.14 us: 3.00"));
  CHECK(made.cluster.host_link.h2d.value.value == 50e9);  // mixed copies are a check, not part of the fit
}

TEST_CASE("a calibrated cluster needs copies both ways") {
  CalibrationData data = test::calibration_of(other_machine(), 0);
  data.flows.clear();
  CHECK(error_of([&] { calibrated(data, library("h200-1gpu"), "here"); }).find("both ways at once") !=
        std::string::npos);
  data.copies.clear();
  CHECK(error_of([&] { calibrated(data, library("h200-1gpu"), "here"); }).find("no copies both ways") !=
        std::string::npos);
}

TEST_CASE("figures are rounded to four digits") {
  CHECK(rounded(55'312'345'678.0) == 55.31e9);
  CHECK(rounded(0) == 0);
  CHECK(rounded(2.76543e-6) == 2.765e-6);
}
