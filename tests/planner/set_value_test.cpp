// `--set`: where a value goes, and what errors name.
#include "planner/set_value.hpp"

#include <string>
#include <vector>

#include "planner/any_job.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;

namespace {

const std::string kLlama = EBB_SOURCE_DIR "/models/jobs/llama3-8b-hgx-h200.yaml";

Job job_with(const std::vector<std::string>& texts, const std::string& file = kLlama) {
  return load_any_job(file, parse_settings(texts)).job;
}

std::string error_with(const std::string& text) {
  return error_of([&] { job_with({text}); });
}

}  // namespace

TEST_CASE("a setting replaces a key of the job, adds one, or reaches into the model and the cluster") {
  CHECK(job_with({"batch.sequence=4096"}).batch.sequence == 4096);
  CHECK(job_with({"compute.step_seconds=3.1"}).compute.step_seconds == Seconds{3.1});
  CHECK(job_with({"recompute={granularity: full, method: uniform, layers: 1}"}).recompute.granularity ==
        RecomputeGranularity::full);
  const Job layers = job_with({"model.layers=16"});
  CHECK(layers.model.layers == 16);
  CHECK(layers.model.name == "llama3-8b");
  const Job plain = job_with({});
  const Job link = job_with({"link.latency=9us"});
  CHECK(link.cluster.name == "hgx-h200");
  CHECK(link.cluster.host_link.latency.value == Seconds{9e-6});
  CHECK(link.cluster.host_link.latency.source == kSetSource);
  CHECK(link.cluster.host_link.h2d == plain.cluster.host_link.h2d);
  CHECK(job_with({"host.sockets=1"}).cluster.host.sockets == 1);
  CHECK(job_with({"gpu.memory=200GiB", "cluster=h200-1gpu"}).cluster.gpu.memory.value == 200_GiB);
}

TEST_CASE("a slower link takes the sum of both directions down with it, unless that is set as well") {
  const HostLink link = job_with({"link.h2d=26GB/s"}).cluster.host_link;
  CHECK(link.h2d.value.value == 26e9);
  CHECK(link.both.value.value == Approx(26e9 + link.d2h.value.value));
  for (const SizedRate& point : link.both_by_size.value) CHECK(point.rate.value <= 26e9 + link.d2h.value.value);
  CHECK(job_with({"link.h2d=26GB/s", "link.both=30GB/s", "link.both_by_size={1GiB: 30GB/s}"})
            .cluster.host_link.both.value.value == 30e9);
}

TEST_CASE("settings change what is imported like the job that an import writes") {
  const Job job = job_with({"batch.micro=2", "parallel.gpus=4", "batch.global=8", "link.d2h=20GB/s"},
                           EBB_TEST_DATA "/hf/llama3-8b/config.json");
  CHECK(job.batch.micro == 2);
  CHECK(job.parallel.gpus == 4);
  CHECK(job.model.hidden == 4096);
  CHECK(job.cluster.host_link.d2h.value.value == 20e9);
}

TEST_CASE("errors name the setting and the nearest key") {
  CHECK(error_with("batch.sequense=3").find("--set batch.sequense=3: unknown key \"batch.sequense\"; did you mean") ==
        0);
  CHECK(error_with("paralel.tensor=4").find("did you mean \"parallel\"?") != std::string::npos);
  CHECK(error_with("link.h2b=1GB/s").find("did you mean \"h2d\"?") != std::string::npos);
  CHECK(error_with("batch.sequence=long").find("--set batch.sequence=long: \"long\" is not a number") == 0);
  CHECK(error_with("batch.sequence.x=3").find("not a mapping") != std::string::npos);
  CHECK(error_with("model.layers.x.y=3").find("not a mapping") != std::string::npos);
  CHECK(error_with("cluster=nowhere").find("unknown cluster \"nowhere\"") != std::string::npos);
  for (const char* text : {"x", "=3", "batch.sequence=", "batch..x=3", ".=1", "batch.=2"}) {
    INFO(text);
    CHECK(error_with(text).find("--set") == 0);
  }
}

TEST_CASE("null is refused as what it is, with what to write instead") {
  for (const char* word : {"null", "~", " NULL "}) {
    const std::string error = error_with(std::string("offload.cap=") + word);
    INFO(error);
    CHECK(error.find("null sets nothing; write auto") != std::string::npos);
  }
  CHECK(error_with("batch.micro=null").find("null sets nothing; give a value") != std::string::npos);
  CHECK_FALSE(job_with({"offload.cap=auto"}).offload.cap.has_value());
}
