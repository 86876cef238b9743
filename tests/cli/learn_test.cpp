// `ebb learn`: the learned job is a job, and `ebb simulate` of it takes what the log says.
#include <nlohmann/json.hpp>

#include "tests/cli/run_ebb.hpp"

using namespace ebb::test;

namespace {

const std::string kLog = "tests/data/logs/resident-1.8b.log";

}  // namespace

TEST_CASE("learn: the job goes to stdout, the rest to stderr, and the loop closes within 1 %") {
  const Outcome learned = run_ebb("learn " + kLog + " " + kMeasured);
  CAPTURE(learned.err);
  REQUIRE(learned.code == 0);
  CHECK(holds(learned.err, "an iteration takes 565.9 ms"));
  CHECK(holds(learned.err, "assumed: the run did not offload"));
  CHECK(holds(learned.out, "# Learned by ebb from " + kLog));
  CHECK(holds(learned.out, "cluster: h200-1gpu\n"));  // by name, as it is the library's
  const auto job = write_job("learned.yaml", learned.out);
  const Outcome simulated = run_ebb("simulate " + job.string() + " --policy resident --json");
  REQUIRE(simulated.code == 0);
  const double step = nlohmann::json::parse(simulated.out)["step_seconds"];
  CHECK(step == Approx(0.5659).epsilon(0.01));
}

TEST_CASE("learn: the policy that the job names is the log's; -o takes the job, --json is one document") {
  const auto job = write_job(
      "chunked.yaml", text_of_file(EBB_SOURCE_DIR "/" + kMeasured) + "offload: {policy: chunked, chunk_numel: 1e9}\n");
  const auto file = scratch() / "from-log.yaml";
  const Outcome learned =
      run_ebb("learn tests/data/logs/chunked-1.8b.log " + job.string() + " --json -o " + file.string());
  REQUIRE(learned.code == 0);
  CHECK(learned.err.empty());
  const auto json = nlohmann::json::parse(learned.out);
  CHECK(json["policy"] == "chunked");
  CHECK(json["lines_left_out"]["first"] == 2);
  CHECK(json["ranks"][0]["peak_bytes"].get<double>() == Approx(23013504512).epsilon(1e-6));
  CHECK(json["job_yaml"] == text_of_file(file));
  const Outcome simulated = run_ebb("simulate " + file.string() + " --json");
  const auto answer = nlohmann::json::parse(simulated.out);
  CHECK(answer["step_seconds"].get<double>() == Approx(json["iteration_seconds"].get<double>()).epsilon(0.01));
  CHECK(answer["device_peak_bytes"].get<double>() >= 0.999 * 23013504512);
}

TEST_CASE("learn: the log of an offloaded run is not taken for a resident one") {
  const std::string log = "tests/data/logs/chunked-1.8b.log";
  const Outcome learned = run_ebb("learn " + log + " " + kMeasured);
  REQUIRE(learned.code == 0);
  CHECK(holds(learned.err, "ebb: offload: {policy: chunked, chunk_numel: 1000000000}, as the log says\n"));
  CHECK_FALSE(holds(learned.err, "did not offload"));
  CHECK_FALSE(holds(learned.err, "warning"));
  const auto resident =
      write_job("resident.yaml", text_of_file(EBB_SOURCE_DIR "/" + kMeasured) + "offload: {policy: resident}\n");
  check_rejected("learn " + log + " " + resident.string(), 2, "the job has offload: {policy: resident}");
}

TEST_CASE("learn: a log without arguments whose memory is another policy's is warned of; broken lines are counted") {
  std::string text;
  for (int i = 1; i <= 4; ++i)
    text += " iteration " + std::to_string(i) + "/4 | elapsed time per iteration (ms): 600.0 |\n";
  text += "[Rank 0] (after 3 iterations) memory (MB) | allocated: 10589.39 | max allocated: nan | reserved: 1\n";
  text += "[Rank 0] (after 4 iterations) memory (MB) | allocated: 10589.39 | max allocated: 21947.39 | reserved: 1\n";
  const auto log = write_job("silent.log", text);
  const Outcome said = run_ebb("learn " + log.string() + " " + kMeasured);
  REQUIRE(said.code == 0);
  CHECK(holds(said.err, "ebb: warning: rank 0 held 10.34 GiB between steps"));
  CHECK(holds(said.err, "nan or above 1 PiB: 1\n"));
  const auto json = nlohmann::json::parse(run_ebb("learn " + log.string() + " " + kMeasured + " --json").out);
  CHECK(json["warnings"].size() == 1);
  CHECK(json["memory_lines_left_out"] == 1);
  CHECK(json["policy_from"] == "none");
  CHECK(json["ranks"][0]["peak_bytes"] == 23013506417);  // 21947.39 MiB
}

TEST_CASE("learn: what cannot be learned from is refused") {
  const auto empty = write_job("empty.log", "hello\n");
  check_rejected("learn " + empty.string() + " " + kMeasured, 2, "none of its 1 lines is");
  check_rejected("learn no-such.log " + kMeasured, 2, "there is no such file");
  check_rejected("learn tests " + kMeasured, 2, "this is a directory");
  const auto other = write_job("other.yaml",
                               "model: megatron-1.8b\ncluster: h200-1gpu\nparallel: {gpus: 1}\n"
                               "batch: {micro: 2, global: 4, sequence: 2048}\n");
  check_rejected("learn " + kLog + " " + other.string(), 2, "its run had micro_batch_size 1, the job has 2");
}
