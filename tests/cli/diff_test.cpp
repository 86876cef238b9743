// `ebb simulate --timeline`, `ebb simulate --plan`, `ebb diff` and `ebb replay` from outside.
#include <nlohmann/json.hpp>

#include "tests/cli/run_ebb.hpp"

using namespace ebb::test;

namespace {

std::string path(const char* name) { return (scratch() / name).string(); }

/// The prediction in `from` as a run would have written it.
void write_as_run(const char* from, const char* to) {
  auto timeline = nlohmann::ordered_json::parse(text_of_file(path(from)));
  REQUIRE(timeline.at("source") == "predicted");
  timeline["source"] = "measured";
  std::ofstream(path(to)) << timeline;
}

/// A plan, its prediction, and what a host would measure whose link to the device is slower.
void write_files() {
  static bool written = false;
  if (written) return;
  REQUIRE(run_ebb("simulate " + kMeasured + " --policy chunked --chunk-numel 2e8 -o " + path("plan.json") +
                  " --timeline " + path("predicted.json"))
              .code == 0);
  std::string cluster = text_of_file(EBB_SOURCE_DIR "/models/clusters/h200-1gpu.yaml");
  const std::string rate = "h2d: {value: 55.3GB/s";
  REQUIRE(holds(cluster, rate));
  cluster.replace(cluster.find(rate), rate.size(), "h2d: {value: 48.1GB/s");
  std::ofstream(path("slow.yaml")) << cluster;
  REQUIRE(run_ebb("simulate --plan " + path("plan.json") + " --cluster " + path("slow.yaml") + " --timeline " +
                  path("slow.json"))
              .code == 0);
  write_as_run("slow.json", "slow-run.json");
  write_as_run("predicted.json", "same-run.json");
  written = true;
}

}  // namespace

TEST_CASE("a plan predicted again on its own cluster is the same file") {
  write_files();
  const Outcome again =
      run_ebb("simulate --plan " + path("plan.json") + " --cluster h200-1gpu --json --timeline " + path("again.json"));
  REQUIRE(again.code == 0);
  CHECK(text_of_file(path("again.json")) == text_of_file(path("predicted.json")));
  const auto json = nlohmann::json::parse(again.out);
  REQUIRE(json.at("ranks").size() == 1);
  CHECK(json.at("ranks").at(0).at("step_seconds").get<double>() > 0);
  CHECK(json.at("cluster") == "h200-1gpu");
}

TEST_CASE("plan --timeline writes the recommendation's") {
  REQUIRE(run_ebb("plan " + kMeasured + " --budget 22GiB -o " + path("best.json") + " --timeline " +
                  path("best-timeline.json"))
              .code == 0);
  const auto timeline = nlohmann::json::parse(text_of_file(path("best-timeline.json")));
  const auto plan = nlohmann::json::parse(text_of_file(path("best.json")));
  CHECK(timeline.at("candidate") == plan.at("ranks").at(0).at("candidate"));
  CHECK(timeline.at("ranks").at(0).at("ops").size() == plan.at("ranks").at(0).at("ops").size());
  const Outcome nothing = run_ebb("plan " + kMeasured + " --budget 12GiB --timeline " + path("none.json"));
  CHECK(nothing.code == 1);
  CHECK(holds(nothing.err, "nothing was written to " + path("none.json")));
  CHECK_FALSE(fs::exists(path("none.json")));
}

TEST_CASE("diff names the assumption, and its exit code says whether the threshold held") {
  write_files();
  const std::string files = path("predicted.json") + " " + path("slow-run.json");
  const Outcome bad = run_ebb("diff " + files);
  CHECK(bad.code == 1);
  CHECK(bad.out.rfind("copies to the device ran at ", 0) == 0);
  CHECK(holds(bad.out, "(host_link.h2d of cluster h200-1gpu)"));
  CHECK(holds(bad.out, "FAIL: the optimizer step is off by "));
  CHECK_FALSE(holds(bad.out, "\033"));
  const Outcome good = run_ebb("diff " + files + " --fail-above 30% --json");
  CHECK(good.code == 0);
  const auto json = nlohmann::json::parse(good.out);
  CHECK(json.at("fail_above") == 0.3);
  CHECK(json.at("failures").empty());
  CHECK(run_ebb("diff " + files + " --fail-above 0.3").code == 0);
  const std::string same = path("predicted.json") + " " + path("same-run.json");
  const Outcome none = run_ebb("diff " + same + " --fail-above 0");
  CHECK(none.code == 0);
  CHECK(none.out.rfind("nothing stands out: every class is within 1 %.\n", 0) == 0);
}

TEST_CASE("diff and simulate --plan refuse what does not fit together") {
  write_files();
  const std::string predicted = path("predicted.json");
  REQUIRE(run_ebb("simulate " + kMeasured + " --policy resident --timeline " + path("resident.json")).code == 0);
  write_as_run("resident.json", "resident-run.json");
  check_rejected("diff " + predicted + " " + path("resident-run.json"), 2,
                 "this is of another plan: measured-1.8b-1xh200 (resident) on rank 0, while " + predicted +
                     " is of measured-1.8b-1xh200 (chunked, chunks of 200,000,000) on rank 0");
  check_rejected("diff " + predicted + " " + path("plan.json"), 2, "format: this is not an ebb-timeline");
  check_rejected("diff " + predicted + " " + path("missing.json"), 2, "missing.json");
  check_rejected("diff " + predicted + " " + path("slow.json"), 2,
                 path("slow.json") + ": this is a prediction, not a run");
  check_rejected("diff " + path("slow-run.json") + " " + predicted, 2,
                 path("slow-run.json") + ": this is a run, not a prediction");
  check_rejected("simulate --plan " + path("plan.json") + " --cluster h200-1gpu --trace " + path("t.json") +
                     " --measured " + predicted,
                 2, predicted + ": this is a prediction, not a run");
  check_rejected("diff " + predicted, 2, "MEASURED is required");
  check_rejected("diff " + predicted + " " + predicted + " --fail-above 5", 2, "write 5%");
  check_rejected("diff " + predicted + " " + predicted + " --fail-above x%", 2, "--fail-above");
  check_rejected("simulate", 2, "JOB is required");
  check_rejected("simulate --cluster h200-1gpu", 2, "--cluster requires --plan");
  check_rejected("simulate --plan " + path("plan.json"), 2, "add --cluster");
  check_rejected("simulate " + kMeasured + " --plan " + path("plan.json"), 2, "--plan");
  check_rejected("simulate --plan " + path("plan.json") + " --cluster h200-1gpu --policy resident", 2, "--policy");
  check_rejected("simulate --plan " + path("plan.json") + " --cluster nowhere", 2, "unknown cluster \"nowhere\"");
  check_rejected("simulate --plan " + predicted + " --cluster h200-1gpu", 2, "format: this is not an ebb-plan");
}

TEST_CASE("replay becomes the ebb-replay beside ebb, and says what to do without one") {
  const fs::path directory = scratch() / "replay here";
  fs::create_directories(directory);
  fs::copy_file(EBB_BINARY, directory / "ebb", fs::copy_options::overwrite_existing);
  const std::string ebb = "--version >/dev/null; PATH=/nonexistent '" + (directory / "ebb").string() + "' ";
  const Outcome missing = run_ebb(ebb + "replay run plan.json");
  CHECK(missing.code == 3);
  CHECK(missing.out.empty());
  CHECK(holds(missing.err, "ebb: ebb-replay is neither beside ebb nor in PATH"));

  const fs::path replay = directory / "ebb-replay";
  std::ofstream(replay) << "#!/bin/sh\nprintf '[%s]' \"$@\"\nexit 7\n";
  fs::permissions(replay, fs::perms::owner_all);
  const Outcome found = run_ebb(ebb + "replay run 'a plan.json' --help -o ''");
  CHECK(found.code == 7);
  CHECK(found.out == "[run][a plan.json][--help][-o][]");
}
