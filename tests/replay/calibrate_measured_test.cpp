// The fits on what was measured on real machines, against the figures that the library's clusters state for them.
#include <array>

#include "models/cluster_yaml.hpp"
#include "models/library.hpp"
#include "replay/calibrate_fit.hpp"
#include "tests/catch.hpp"
#include "tests/measured.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

Cluster library(const char* name) { return load_cluster(library_path(Library::clusters, name)); }

bool near(double value, double expected, double relative) {
  return std::abs(value - expected) <= relative * std::abs(expected);
}

/// The files do not say which way the small copies went: both get them.
std::vector<CopyTime> small_copies(const char* file) {
  std::vector<CopyTime> copies;
  for (const auto& line : test::measured(file, "smallcopies")) {
    const auto calls = line.at("n").get<std::int64_t>();
    const double seconds = line.at("us_each").get<double>() * 1e-6 * static_cast<double>(calls);
    for (const bool to_device : {true, false})
      copies.push_back({.to_device = to_device,
                        .bytes = {line.at("bytes").get<std::int64_t>()},
                        .calls = calls,
                        .all = {.median = seconds}});
  }
  return copies;
}

}  // namespace

TEST_CASE("measured small copies: latency and rate as the clusters state them, every size within 2 %") {
  struct Case {
    const char* file;
    const char* cluster;
  };
  for (const Case& c : {Case{"h200-copies.jsonl", "h200-1gpu"}, Case{"h200-copies-2gpu.jsonl", "hgx-h200"}}) {
    const LinkFit fit = fit_link(small_copies(c.file));
    const HostLink link = library(c.cluster).host_link;
    INFO(c.file << ": " << fit.latency.value << " s, " << fit.h2d.value << " B/s, worst " << fit.residual.worst);
    CHECK(near(fit.h2d.value, link.h2d.value.value, 0.01));
    CHECK(near(fit.latency.value, link.latency.value.value, 0.1));
    CHECK(fit.residual.worst < 0.02);
  }
}

// One direction ends first; until then the other moved all but what it moved alone afterwards.
TEST_CASE("measured copies both ways: the sums that the cluster states, by size, and its weight") {
  LinkFit link{.latency = {2.8e-6}, .h2d = {55.3e9}, .d2h = {55.3e9}, .residual = {}};
  std::vector<FlowTime> flows;
  for (const auto& line : test::measured("h200-windowed-loop.jsonl", "duplex")) {
    const double all = line.at("bytes").get<double>() * line.at("reps").get<double>();
    const double h2d = line.at("h2d_ms").get<double>() * 1e-3;
    const double d2h = line.at("d2h_ms").get<double>() * 1e-3;
    const double window = std::min(h2d, d2h);
    flows.push_back({.bytes = {line.at("bytes").get<std::int64_t>()},
                     .window = window,
                     .h2d = all - (h2d - window) * link.h2d.value,
                     .d2h = all - (d2h - window) * link.d2h.value});
  }
  REQUIRE(flows.size() >= 12);
  const auto both = fit_both(flows, link, 4_MiB);
  REQUIRE(both);
  const HostLink stated = library("h200-1gpu").host_link;
  for (const SizedRate& size : stated.both_by_size.value) {
    const auto it = std::find_if(both->by_size.begin(), both->by_size.end(),
                                 [&](const SizedRate& s) { return s.bytes == size.bytes; });
    REQUIRE(it != both->by_size.end());
    INFO(size.bytes.value);
    // The cluster's are means over more hosts, of which these are some.
    CHECK(near(it->rate.value, size.rate.value, 0.05));
  }
  CHECK(both->d2h_weight > 1.0);
  CHECK(both->d2h_weight < 1.3);
}

TEST_CASE("measured collectives of two H200: the bus and the floor that hgx-h200 names for the pair") {
  std::vector<CollectiveRun> runs;
  for (const auto& line : test::measured("h200-nccl-2gpu.jsonl", "nccl")) {
    const auto add = [&](Work work, const char* key) {
      runs.push_back({.work = work,
                      .members = line.at("world").get<std::int64_t>(),
                      .bytes = {line.at("bytes").get<std::int64_t>()},
                      .link_use = 0,
                      .each = {.median = line.at(key).get<double>() * 1e-6}});
    };
    add(Work::all_reduce, "allreduce_us");
    add(Work::reduce_scatter, "reducescatter_us");
    if (runs.back().bytes.value != 4 << 20) add(Work::all_gather, "allgather_us");  // an outlier (README)
  }
  const auto fit = fit_bus(runs, 1_MiB);
  REQUIRE(fit);
  CHECK(near(fit->bus.value, 291e9, 0.06));
  CHECK(near(fit->floor.value, 33e-6, 0.2));
  CHECK(fit->residual.median < 0.1);
}
