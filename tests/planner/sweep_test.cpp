// The values of a sweep's settings.
#include "planner/sweep.hpp"

#include <array>

#include "models/job_yaml.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;
using Values = std::vector<std::string>;

TEST_CASE("a setting of a sweep is one value, a list, or a range with a step or a factor") {
  CHECK(parse_axis("batch.sequence=4096").values == Values{"4096"});
  CHECK(parse_axis("batch.sequence=4096,8192").values == Values{"4096", "8192"});
  CHECK(parse_axis("batch.sequence=4096..16384:4096").values == Values{"4096", "8192", "12288", "16384"});
  CHECK(parse_axis("batch.sequence=4096..16000:4096").values == Values{"4096", "8192", "12288"});
  CHECK(parse_axis("parallel.tensor=1..8*2").values == Values{"1", "2", "4", "8"});
  CHECK(parse_axis("link.h2d=16GB/s..64GB/s*2").values == Values{"16GB/s", "32GB/s", "64GB/s"});
  CHECK(parse_axis("link.h2d=16..48GB/s:16").values == Values{"16GB/s", "32GB/s", "48GB/s"});
  CHECK(parse_axis("offload.fraction=0.1..0.5:0.1").values == Values{"0.1", "0.2", "0.3", "0.4", "0.5"});
  CHECK(parse_axis("batch.micro=1,4..8:2").values == Values{"1", "4", "6", "8"});
  CHECK(parse_axis("model=../my.yaml").values == Values{"../my.yaml"});
  CHECK(parse_axis("recompute={granularity: full, layers: 1},{granularity: none}").values ==
        Values{"{granularity: full, layers: 1}", "{granularity: none}"});
  CHECK(parse_axis("link.h2d=16GB/s").key == "link.h2d");
}

TEST_CASE("what is no range is refused by name") {
  for (const char* text : {"a=1..2", "a=1..2:0", "a=2..1:1", "a=1..2*1", "a=0..2*2", "a=1GB..2MB:1", "a=1..x:1",
                           "a=1..1e9:1", "a=1,,2", "a"}) {
    INFO(text);
    const std::string error = error_of([&] { parse_axis(text); });
    CHECK(error.find(std::string("--set ") + text + ": ") == 0);
  }
}

TEST_CASE("rows stand in the order of the values, the last setting fastest") {
  const std::string job = EBB_SOURCE_DIR "/models/jobs/measured-1.8b-1xh200.yaml";
  const std::vector<SweepAxis> axes = {parse_axis("batch.sequence=1024,2048"), parse_axis("batch.micro=1,2")};
  const std::vector<SweepRow> rows = sweep(job, axes, Megatron::any, [](Job&) {});
  REQUIRE(rows.size() == 4);
  CHECK(rows[1].values == Values{"1024", "2"});
  CHECK(rows[2].values == Values{"2048", "1"});
  for (const SweepRow& row : rows) CHECK(row.fits);
  CHECK(rows[0].answer->device_reserved < rows[3].answer->device_reserved);
}

TEST_CASE("a row for a schedule of Ebb's own, where the job names it, is what evaluating its candidate says") {
  const std::string file = EBB_SOURCE_DIR "/models/jobs/measured-1.8b-1xh200.yaml";
  const std::vector<SweepRow> rows =
      sweep(file, std::vector<SweepAxis>{parse_axis("offload.policy=pipelined,tidal")}, Megatron::any, [](Job&) {});
  REQUIRE(rows.size() == 2);
  const std::array<Policy, 2> named = {Policy::pipelined, Policy::tidal};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO(name_of(named[i]));
    REQUIRE(rows[i].fits);
    CHECK(rows[i].answer->candidate.policy == named[i]);
    const Answer alone = evaluate(load_job(file), rows[i].answer->candidate);
    CHECK(rows[i].answer->step == alone.step);
    CHECK(rows[i].answer->device_reserved == alone.device_reserved);
  }
}
