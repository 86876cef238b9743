// What cluster_file_text writes, the reader turns back into the same Cluster: all of the library, and random ones.
#include "models/cluster_write.hpp"

#include <array>
#include <random>

#include "models/cluster_yaml.hpp"
#include "models/library.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

Cluster again(const Cluster& cluster) {
  const std::array<std::string, 2> comments = {"calibrated: here", "with {all}, of \"it\""};
  const std::string text = cluster_file_text(cluster, comments);
  REQUIRE(text.starts_with("# calibrated: here\n# with {all}, of \"it\"\nname: "));
  return read_cluster(parse_yaml(text, "again.yaml"), "other");
}

/// Figures with all of a double's digits and sources with what YAML could stumble over.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  template <class T>
  Sourced<T> figure(double least, double most) {
    const double value = std::uniform_real_distribution<double>(least, most)(engine_);
    Sourced<T> out;
    if constexpr (std::is_same_v<T, double>)
      out.value = value;
    else
      out.value.value = static_cast<decltype(out.value.value)>(value);
    out.source = source();
    return out;
  }
  std::string source() {
    constexpr std::array kTails = {"one, two: {three} [4]", "a # b \\ \"quoted\"", "caf\xc3\xa9 \t tab", "plain"};
    return std::string("measured: ") + kTails[engine_() % kTails.size()];
  }
  std::int64_t count(std::int64_t most) { return 1 + static_cast<std::int64_t>(engine_() % most); }

 private:
  std::mt19937_64 engine_;
};

Cluster random_cluster(unsigned seed) {
  Random r(seed);
  Cluster c = load_cluster(library_path(Library::clusters, "hgx-h200"));
  c.name = "random " + std::to_string(seed);
  c.gpus_per_host = r.count(16);
  c.gpu.memory = r.figure<Bytes>(1e10, 1e12);
  c.gpu.context = r.figure<Bytes>(1e6, 1e9);
  c.gpu.hbm = r.figure<BytesPerSecond>(1, 1e13);
  c.gpu.adam = r.figure<BytesPerSecond>(1e9, 1e13);
  c.gpu.matrix_fp8 = r.figure<FlopsPerSecond>(1, 1e16);
  c.gpu.compute_efficiency = r.figure<double>(0.01, 1);
  c.host_link.h2d = r.figure<BytesPerSecond>(1e9, 1e12);
  c.host_link.d2h = r.figure<BytesPerSecond>(1e9, 1e12);
  c.host_link.both = r.figure<BytesPerSecond>(1e8, 2e9);
  c.host_link.latency = r.figure<Seconds>(0, 1e-4);
  c.host_link.both_by_size = {{{{1000}, {1.5e9 / 7}}, {16_MiB, {1e9 / 3}}, {1_GiB, {2e9}}}, r.source()};
  c.host_link.pageable_d2h = r.figure<BytesPerSecond>(1, 1e10);
  if (seed % 2 == 0) {
    c.topology.gpus_per_switch = r.count(8);
    c.topology.socket_memory = r.figure<BytesPerSecond>(1e9, 1e12);
    c.topology.remote_memory = r.figure<double>(0, 1);
  }
  c.host.sockets = r.count(4);
  c.host.pin_call = r.figure<Seconds>(0, 1);
  c.calls.event = r.figure<Seconds>(0, 1e-5);
  c.calls.allocate = r.figure<Seconds>(0, 1e-5);
  c.interconnect.copy_interference = r.figure<double>(0, 1);
  c.interconnect.collective_floor = r.figure<Seconds>(0, 1e-4);
  if (seed % 3 == 0) c.storage.write = r.figure<BytesPerSecond>(1e6, 1e10);
  return c;
}

}  // namespace

TEST_CASE("cluster files: every cluster of the library reads back equal") {
  for (const std::string& name : library_names(Library::clusters)) {
    INFO(name);
    const Cluster cluster = load_cluster(library_path(Library::clusters, name));
    REQUIRE(again(cluster) == cluster);
  }
}

TEST_CASE("cluster files: random clusters read back equal") {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    INFO(seed);
    const Cluster cluster = random_cluster(seed);
    REQUIRE(again(cluster) == cluster);
  }
}

TEST_CASE("cluster files: a figure is one line, and what has its default is left out") {
  const Cluster cluster = load_cluster(library_path(Library::clusters, "h200-1gpu"));
  const std::string text = cluster_file_text(cluster, {});
  CHECK(text.find("\n  memory: {value: 150109880320, source: \"measured: one H200") != std::string::npos);
  CHECK(text.find("pageable_h2d") == std::string::npos);
  CHECK(text.find("storage") == std::string::npos);
}
