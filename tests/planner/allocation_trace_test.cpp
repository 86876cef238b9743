// The tensors of a layer, and the order of a rank's allocations.
#include "planner/allocation_trace.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "models/job_yaml.hpp"
#include "planner/layer_activations.hpp"
#include "planner/layer_tape.hpp"
#include "tests/catch.hpp"
#include "tests/planner/lowering_cases.hpp"

using namespace ebb;

namespace {

struct LayerCase {
  std::string name;
  Job job;
};

/// Every shape of attention and feed-forward that the tape tells apart.
std::vector<LayerCase> layer_cases() {
  std::vector<LayerCase> cases;
  for (const char* name :
       {"llama3-8b-hgx-h200", "measured-1.8b-1xh200", "qwen3-30b-a3b-hgx-h100", "deepseek-v3-2048xh200",
        "nemotron4-15b-hgx-h100", "gpt3-175b-dgx-a100", "gpt-oss-120b-hgx-b200", "deepseek-v2-lite-4xgh200"})
    cases.push_back({name, load_job(name)});
  const std::size_t library = cases.size();
  for (std::size_t i = 0; i < library; ++i) {
    LayerCase fp8 = cases[i];
    fp8.name += ", fp8";
    fp8.job.precision.fp8 = Fp8Recipe::tensorwise;
    cases.push_back(fp8);
    for (const bool rotary : {true, false}) {
      LayerCase local = cases[i];
      local.name += rotary ? ", local" : ", local, learned positions";
      local.job.compute.attention = Attention::local;
      local.job.model.positions = rotary ? Positions::rope : Positions::learned;
      cases.push_back(local);
    }
    LayerCase latent = cases[i];
    if (!latent.job.model.moe) continue;
    latent.name += ", experts in a latent space";
    latent.job.model.moe->latent = 512;
    cases.push_back(latent);
  }
  for (std::size_t i = 0; i < library; ++i) {
    LayerCase unfused = cases[i];
    unfused.name += ", nothing fused, dropout";
    unfused.job.compute.attention = Attention::unfused;
    unfused.job.activations = {.attention_dropout = 0.1,
                               .hidden_dropout = 0.1,
                               .gradient_fusion = false,
                               .bias_fusion = false,
                               .rope_fusion = false};
    unfused.job.experts.dispatcher = Dispatcher::allgather;
    unfused.job.experts.grouped_matmul = unfused.job.experts.permute_fusion = false;
    cases.push_back(unfused);
    unfused.name += ", fp32";
    unfused.job.precision.params = Dtype::fp32;
    cases.push_back(unfused);
  }
  const std::size_t plain = cases.size();
  for (std::size_t i = 0; i < plain; ++i) {
    for (const char* module : {"core_attn", "mlp", "moe", "moe_act", "shared_experts", "layernorm", "mla_up_proj"}) {
      LayerCase recomputed = cases[i];
      recomputed.name += std::string(", recomputes ") + module;
      recomputed.job.recompute.granularity = RecomputeGranularity::selective;
      recomputed.job.recompute.modules = {module};
      cases.push_back(recomputed);
    }
  }
  return cases;
}

std::vector<bool> kinds_of_layer(const Job& job) {
  return job.model.moe ? std::vector{false, true} : std::vector{false};
}

/// Plays `ops`; how many tensors are alive afterwards. Fails on a tensor that is allocated or freed twice.
std::size_t play(const std::vector<LayerTape::Op>& ops, std::vector<bool>& alive) {
  bool sound = true;
  for (const LayerTape::Op& op : ops) {
    if (op.kind == LayerTape::Kind::first_use) continue;
    const bool allocates = op.kind == LayerTape::Kind::allocate;
    REQUIRE(op.slot < alive.size());
    sound = sound && alive[op.slot] != allocates && (op.bytes > Bytes{0} || !allocates);
    alive[op.slot] = allocates;
  }
  CHECK(sound);
  return static_cast<std::size_t>(std::count(alive.begin(), alive.end(), true));
}

}  // namespace

TEST_CASE("a layer's backward frees everything that its forward left, its input included") {
  for (const LayerCase& of : layer_cases()) {
    for (const bool moe : kinds_of_layer(of.job)) {
      INFO(of.name << (moe ? ", MoE layer" : ""));
      const LayerTape tape = layer_tape(of.job, moe);
      std::vector<bool> alive(tape.slots, false);
      alive[LayerTape::kInput] = true;
      CHECK(play(tape.forward, alive) > 2);
      REQUIRE(alive[LayerTape::kOutput]);
      alive[LayerTape::kOutput] = false;  // the next layer frees it
      CHECK(play(tape.backward, alive) == 0);
    }
  }
}

namespace {

/// Live tensors and those that wait for a copy. Fails on an event that cannot be: a tensor born twice, freed twice or
/// given away while a copy reads it.
class Ledger {
 public:
  void play(const std::vector<AllocationEvent>& events) {
    bool sound = true;
    for (const AllocationEvent& event : events) sound = sound && apply(event);
    CHECK(sound);
  }
  const std::map<std::uint32_t, std::int64_t>& live() const { return live_; }
  bool waits() const { return !waiting_.empty(); }

 private:
  bool apply(const AllocationEvent& event) {
    switch (event.kind) {
      case AllocationEvent::Kind::allocate:
        return event.bytes > Bytes{0} && !waiting_.contains(event.tensor) &&
               live_.emplace(event.tensor, event.bytes.value).second;
      case AllocationEvent::Kind::leave:
        return live_.erase(event.tensor) == 1 && waiting_.insert(event.tensor).second;
      case AllocationEvent::Kind::release:
        return live_.erase(event.tensor) == 1;
      case AllocationEvent::Kind::end:
        return waiting_.erase(event.tensor) == 1;
    }
    return false;
  }

  std::map<std::uint32_t, std::int64_t> live_;
  std::set<std::uint32_t> waiting_;
};

std::vector<test::RankCase> life_cases() {
  std::vector<test::RankCase> cases = test::rank_cases();
  for (const char* name : {"deepseek-v3-2048xh200", "llama3-405b-gb200-nvl72"}) {
    const Job job = load_job(name);
    const std::int64_t last = job.parallel.pipeline - 1;
    cases.push_back(test::rank_case(name, job));
    cases.push_back(test::rank_case(name, job, last, last * job.parallel.gpus / job.parallel.pipeline));
  }
  Job recomputed = load_job("llama3-8b-hgx-h200");
  recomputed.recompute.granularity = RecomputeGranularity::full;
  recomputed.recompute.method = "uniform";
  recomputed.recompute.layers = 5;
  cases.push_back(test::rank_case("llama3-8b, recomputed in blocks of five", recomputed));
  recomputed.recompute.method = "block";
  cases.push_back(test::rank_case("llama3-8b, five layers recomputed", recomputed));
  return cases;
}

}  // namespace

TEST_CASE("a later step ends with the tensors that it began with, whatever the policy") {
  for (const test::RankCase& of : life_cases()) {
    for (const Candidate& candidate : test::candidates_for(of.rank)) {
      INFO(of.name << ", " << name_of(candidate.policy) << " " << candidate.chunk_size_mb << " MiB "
                   << candidate.fraction);
      const AllocationTrace trace = allocation_trace(of.rank, candidate);
      Ledger ledger;
      ledger.play(trace.find(Phase::init)->events);
      ledger.play(trace.find(Phase::first_step)->events);
      const auto after_first = ledger.live();
      ledger.play(trace.find(Phase::step)->events);
      CHECK(ledger.live() == after_first);
      CHECK_FALSE(ledger.waits());
      ledger.play(trace.find(Phase::step)->events);
      CHECK(ledger.live() == after_first);
    }
  }
}

TEST_CASE("windowed masters leave one by one while forward runs, in the order of their copies") {
  const test::RankCase of = test::measured_case();
  const AllocationTrace trace = allocation_trace(of.rank, {.policy = Policy::windowed});
  std::vector<std::uint32_t> left;
  std::vector<std::uint32_t> ended;
  std::size_t allocations_between = 0;
  for (const AllocationEvent& event : trace.find(Phase::step)->events) {
    if (event.kind == AllocationEvent::Kind::leave) left.push_back(event.tensor);
    if (event.kind == AllocationEvent::Kind::end) ended.push_back(event.tensor);
    if (event.kind == AllocationEvent::Kind::allocate && !ended.empty() && ended.size() < left.size())
      ++allocations_between;
  }
  CHECK(left.size() == of.rank.shards.size());
  CHECK(ended == left);
  CHECK(allocations_between > 1000);
}
