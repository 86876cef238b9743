// Cluster files: every figure is needed and carries a source that says what it rests on.
#include "models/cluster_yaml.hpp"

#include "models/library.hpp"
#include "models/text_file.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;

namespace {

std::string written() { return write_cluster(load_cluster(library_path(Library::clusters, "h200-1gpu"))); }

/// The error after replacing the first `old_text` in a valid cluster file.
std::string error_with(const std::string& old_text, const std::string& new_text) {
  std::string text = written();
  const std::size_t at = text.find(old_text);
  REQUIRE(at != std::string::npos);
  text.replace(at, old_text.size(), new_text);
  return error_of([&] { read_cluster(parse_yaml(text, "c.yaml"), "c"); });
}

}  // namespace

TEST_CASE("figures measured on one H200") {
  const Cluster cluster = load_cluster(library_path(Library::clusters, "h200-1gpu"));
  REQUIRE(cluster.gpus_per_host == 1);
  REQUIRE(cluster.gpu.memory.value.value == 150109880320);
  REQUIRE(cluster.gpu.context.value.value == 552402944);
  REQUIRE(cluster.gpu.hbm.value.value == 4.26e12);
  REQUIRE(cluster.host_link.h2d.value.value == 55.3e9);
  REQUIRE(cluster.host_link.both.value.value == 93.7e9);
  REQUIRE(cluster.gpu.adam.source.starts_with("measured: one H200"));
}

TEST_CASE("a source must say what kind it is and which one") {
  const std::string cure =
      "; begin it with measured, datasheet or report, and say which: \"measured: one H200, driver 580\"";
  REQUIRE(error_with("source: \"datasheet: dense FP8", "source: \"guess: dense FP8")
              .find("\"gpu.matrix_fp8.source\" is \"guess: dense FP8") != std::string::npos);
  REQUIRE(error_with("source: \"report: the virtual machine's memory\"", "source: measured")
              .find("\"host.memory.source\" is \"measured\"" + cure) != std::string::npos);
  REQUIRE(error_with("source: \"report: the virtual machine's memory\"", "source: measuredly so")
              .find("\"host.memory.source\"") != std::string::npos);
  REQUIRE(error_with("    source: \"report: the virtual machine's memory\"\n", "")
              .find("the key \"host.memory.source\" is missing") != std::string::npos);
}

TEST_CASE("figures that no hardware has") {
  REQUIRE(error_with("value: 4.26TB/s", "value: 0").find("\"gpu.hbm\" is zero; use a positive value") !=
          std::string::npos);
  REQUIRE(error_with("value: 4.26TB/s", "value: -1TB/s").find("\"-1TB/s\" is negative") != std::string::npos);
  REQUIRE(error_with("value: 4.26TB/s", "value: .nan").find("\".nan\" is not a number") != std::string::npos);
  REQUIRE(error_with("value: 4.26TB/s", "value: 4.26TB").find("unknown unit \"TB\"") != std::string::npos);
  REQUIRE(error_with("value: 93.7GB/s", "value: 111GB/s").find("both directions together are faster") !=
          std::string::npos);
  REQUIRE(error_with("value: 552402944", "value: 200GiB").find("the context fills the whole memory") !=
          std::string::npos);
  REQUIRE(error_with("value: 0.55", "value: 1.55").find("an efficiency above 1") != std::string::npos);
  REQUIRE(error_with("gpus_per_host: 1\n", "gpus_per_host: 0\n").find("\"gpus_per_host\" is 0") != std::string::npos);
}

TEST_CASE("missing and misspelled figures") {
  REQUIRE(error_with("  hbm:", "  hbn:").find("unknown key \"gpu.hbn\"; did you mean \"hbm\"?") != std::string::npos);
  REQUIRE(error_of([] { read_cluster(parse_yaml("gpus_per_host: 8\n", "c.yaml"), "c"); }) ==
          "c.yaml:1:1: the key \"gpu\" is missing; add it");
}

TEST_CASE("cluster YAML: optional figures are read, written and read again; left out, their source says so") {
  Cluster cluster = load_cluster(EBB_SOURCE_DIR "/models/clusters/h200-1gpu.yaml");
  CHECK(cluster.host_link.pageable_h2d.source.starts_with("default"));
  CHECK(write_cluster(cluster).find("pageable_h2d") == std::string::npos);
  cluster.host_link.both_by_size = {{{64_MiB, {99.97e9}}, {1_GiB, {97.75e9}}}, "measured: here"};
  cluster.topology.gpus_per_switch = 2;
  cluster.topology.switch_one_way = {{50e9}, "measured: here"};
  cluster.topology.remote_memory = {0.0, "report: bound"};
  cluster.interconnect.copy_interference = {0.25, "measured: here"};
  CHECK(write_cluster(cluster).find("storage") == std::string::npos);
  cluster.storage.write = {{2e9}, "measured: here"};
  const std::string text = write_cluster(cluster);
  const Cluster again = read_cluster(parse_yaml(text, "again.yaml"), "again", "");
  CHECK(again == cluster);
}

TEST_CASE("cluster YAML: sizes ascend, ratios stay within 0 and 1") {
  Cluster cluster = load_cluster(EBB_SOURCE_DIR "/models/clusters/h200-1gpu.yaml");
  const auto complaint = [](const Cluster& c) {
    return error_of([&] { read_cluster(parse_yaml(write_cluster(c), "c.yaml"), "c", ""); });
  };
  cluster.host_link.both_by_size = {{{1_GiB, {97.75e9}}, {64_MiB, {99.97e9}}}, "measured: here"};
  CHECK(complaint(cluster).find("ascend") != std::string::npos);
  cluster.host_link.both_by_size = {{{64_MiB, {200e9}}}, "measured: here"};
  CHECK(complaint(cluster).find("faster than each alone") != std::string::npos);
  cluster.host_link.both_by_size = {{}, "default: none"};
  cluster.interconnect.copy_interference = {1.5, "measured: here"};
  CHECK(complaint(cluster).find("above 1") != std::string::npos);
}

TEST_CASE("cluster YAML: what a file leaves out is listed with its source, what it states is not") {
  Cluster cluster = load_cluster(EBB_SOURCE_DIR "/models/clusters/h200-1gpu.yaml");
  const auto names = [&](std::string_view key) {
    for (const std::string& figure : default_figures(cluster))
      if (figure.starts_with(key)) return figure;
    return std::string();
  };
  CHECK(names("interconnect.copy_interference").find("not calibrated") != std::string::npos);
  CHECK(names("host_link.both_by_size").empty());   // stated
  CHECK(names("topology.switch_one_way").empty());  // no limit is no figure
  cluster.interconnect.copy_interference = {0.1, "measured: here"};
  CHECK(names("interconnect.copy_interference").empty());
}
