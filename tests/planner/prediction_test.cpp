// Proves that a plan file predicted on its own cluster gives what the job's prediction gave, that calibrated figures
// change it, and that no plan a file can hold does anything but run or be refused.
#include "planner/prediction.hpp"

#include <algorithm>
#include <random>

#include "models/job_yaml.hpp"
#include "models/plan_json.hpp"
#include "planner/host_plans.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;

namespace {

const Candidate kPipelined{.policy = Policy::pipelined, .chunk_numel = {500'000'000}, .slots = 2};
const Candidate kCpuAdam{.policy = Policy::cpu_adam, .fraction = 0.5};
const Candidate kChunked{.policy = Policy::chunked, .chunk_numel = {1'000'000'000}};

/// Through the file and back, as a replay's plan goes.
std::vector<Plan> plans_of(const HostPlans& host) { return plans_from_json(to_json(host.plans), "plan.json"); }

std::string refusal(const std::vector<Plan>& plans, const Cluster& cluster) {
  return error_of([&] { simulate_plans(plans, cluster, "plan.json"); });
}

}  // namespace

TEST_CASE("prediction: a plan file on its job's cluster gives the job's own timelines") {
  for (const char* name : {"measured-1.8b-1xh200", "llama3-8b-hgx-h200"}) {
    const Job job = load_job(name);
    for (const Candidate& candidate : {kPipelined, kChunked, kCpuAdam}) {
      const HostPlans host = host_plans(job, candidate);
      const std::vector<Timeline> again = simulate_plans(plans_of(host), job.cluster, "plan.json");
      REQUIRE(again.size() == host.timelines.size());
      for (std::size_t i = 0; i < again.size(); ++i) {
        CHECK(again[i].start == host.timelines[i].start);
        CHECK(again[i].end == host.timelines[i].end);
      }
      const TimelineFile file = prediction_of(host.plans, host.timelines, job.cluster.name);
      CHECK(file.plan_digest == digest_of(plans_of(host)));
      CHECK(file.cluster == job.cluster.name);
      CHECK(timeline_file_from_json(to_json(file), "t.json").ranks == file.ranks);
    }
  }
}

TEST_CASE("prediction: another cluster's figures change the times and not the plan") {
  const Job job = load_job("measured-1.8b-1xh200");
  const HostPlans host = host_plans(job, kChunked);
  Cluster slower = job.cluster;
  slower.host_link.h2d.value.value /= 2;
  const std::vector<Timeline> timelines = simulate_plans(host.plans, slower, "plan.json");
  CHECK(timelines.front().end.back() > host.timelines.front().end.back());
  // Framework time is the plan's: a replay spins for that long, whatever the cluster says.
  Cluster lazy = job.cluster;
  lazy.calls.chunk.value.value *= 10;
  CHECK(simulate_plans(host.plans, lazy, "plan.json").front().end == host.timelines.front().end);
}

TEST_CASE("prediction: plans that cannot run on the cluster are refused") {
  const Job job = load_job("llama3-8b-hgx-h200");
  const std::vector<Plan> plans = host_plans(job, kChunked).plans;
  Cluster small = job.cluster;
  small.gpus_per_host = 4;
  CHECK(refusal(plans, small).find("8 ranks of one host, but cluster hgx-h200 has 4 GPUs a host") != std::string::npos);

  std::vector<Plan> gap = plans;
  gap.erase(gap.begin() + 2);
  CHECK(refusal(gap, job.cluster).find("ranks[2]: rank 3 does not follow rank 1") != std::string::npos);

  const auto op_of = [](Plan& plan, OpKind kind) -> Op& {
    return *std::find_if(plan.ops.begin(), plan.ops.end(), [kind](const Op& op) { return op.kind == kind; });
  };
  const auto broken = [&](OpKind kind, const auto& change) {
    std::vector<Plan> changed = plans;
    change(op_of(changed[1], kind));
    return refusal(changed, job.cluster);
  };
  CHECK(broken(OpKind::allocate, [](Op& op) { op.buffer = {}; }).find("it names no buffer") != std::string::npos);
  CHECK(broken(OpKind::host_work, [](Op& op) { op.work = Work::adam; }).find("no work of the host") !=
        std::string::npos);
  CHECK(broken(OpKind::collective, [](Op& op) { op.work = Work::none; }).find("no collective") != std::string::npos);
  CHECK(broken(OpKind::collective, [](Op& op) { op.domains = 99; }).find("more domains") != std::string::npos);
  CHECK(broken(OpKind::collective, [](Op& op) { op.bytes += Bytes{8}; }).starts_with("plan.json: "));       // mismatch
  CHECK(broken(OpKind::copy_d2h, [](Op& op) { op.deps_count = 0; }).starts_with("plan.json: ranks[1]: "));  // hazard
}

TEST_CASE("prediction: a tidal plan whose live bytes can pass its own cap is refused") {
  const Job job = load_job("measured-1.8b-1xh200");
  const Candidate capped{.policy = Policy::tidal, .chunk_numel = {4 << 20}, .cap = 30_GiB};
  std::vector<Plan> plans = plans_of(host_plans(job, capped));
  CHECK_NOTHROW(simulate_plans(plans, job.cluster, "plan.json"));
  plans[0].candidate.cap = 25_GiB;
  CHECK(refusal(plans, job.cluster).find("bytes may be alive, above its own cap of 26843545600") != std::string::npos);
}

TEST_CASE("prediction: no mutation of a plan file does anything but run or be refused") {
  const Job job = load_job("measured-1.8b-1xh200");
  const Job two = load_job("llama3-8b-hgx-h200");
  std::vector<std::string> texts;
  for (const Candidate& candidate : {kPipelined, kCpuAdam}) texts.push_back(to_json(host_plans(job, candidate).plans));
  const std::vector<Plan> eight = host_plans(two, kChunked).plans;
  texts.push_back(to_json(std::span(eight).first(2)));
  std::mt19937 random(3);
  int ran = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = texts[static_cast<std::size_t>(i) % texts.size()];
    // Digits, so that most documents still load.
    for (auto edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = text.find_first_of("0123456789", random() % text.size());
      if (at == std::string::npos) continue;
      if (random() % 3 == 0)
        text.insert(at, 1, static_cast<char>('1' + random() % 9));
      else
        text[at] = static_cast<char>('0' + random() % 10);
    }
    const std::string error = error_of([&] {
      const std::vector<Plan> plans = plans_from_json(text, "plan.json");
      const std::vector<Timeline> timelines = simulate_plans(plans, two.cluster, "plan.json");
      to_json(prediction_of(plans, timelines, ""));
    });
    if (error.empty()) ++ran;
  }
  CHECK(ran > 500);
}
