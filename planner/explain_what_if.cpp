// What would change the answer: the job changed in one way at a time, checked and searched again.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <future>

#include "models/quantity_text.hpp"
#include "planner/constraints.hpp"
#include "planner/explain_parts.hpp"
#include "planner/robust.hpp"

namespace ebb {

namespace {

struct Change {
  std::string text;
  std::function<void(Job&)> apply;
  std::string refused = {};  // why it is not tried
};

void double_link(Job& job) {
  HostLink& link = job.cluster.host_link;
  Topology& topology = job.cluster.topology;
  for (Sourced<BytesPerSecond>* rate :
       {&link.h2d, &link.d2h, &link.both, &link.host_one_way, &link.host_both, &topology.switch_one_way,
        &topology.switch_both, &topology.socket_one_way, &topology.socket_both, &topology.inter_socket})
    rate->value.value *= 2;
  for (SizedRate& point : link.both_by_size.value) point.rate.value *= 2;
}

/// On a GPU with as much memory, where it takes that.
Change budget_change(const Job& job, std::int64_t percent) {
  const Bytes budget{device_budget_of(job).value / 100 * percent};
  return {fmt::format("{} % {} device memory ({})", percent > 100 ? percent - 100 : 100 - percent,
                      percent > 100 ? "more" : "less", format_bytes(budget)),
          [budget](Job& j) {
            j.budget.device = budget;
            Gpu& gpu = j.cluster.gpu;
            gpu.memory.value = std::max(gpu.memory.value, budget + gpu.context.value);
          }};
}

Change tensor_change(const Job& job, std::int64_t tensor) {
  Change change;
  const bool sequence_too = tensor > 1 && job.model.moe && !job.parallel.sequence;
  change.text = fmt::format("tensor parallelism {}{}", tensor, sequence_too ? " with sequence parallelism" : "");
  if (job.compute.step_seconds) change.refused = "the job's measured computation holds for its own parallel sizes only";
  change.apply = [tensor](Job& j) {
    if (j.parallel.expert_tensor == j.parallel.tensor) j.parallel.expert_tensor = tensor;
    j.parallel.tensor = tensor;
    if (tensor == 1) j.parallel.sequence = false;
    if (tensor > 1 && j.model.moe) j.parallel.sequence = true;  // experts need it
  };
  return change;
}

Change moments_change(const Job& job) {
  const bool fp32 = job.precision.exp_avg == Dtype::fp32 && job.precision.exp_avg_sq == Dtype::fp32;
  const Dtype type = fp32 ? Dtype::bf16 : Dtype::fp32;
  return {fp32 ? "moments in bf16" : "moments in fp32",
          [type](Job& j) { j.precision.exp_avg = j.precision.exp_avg_sq = type; }};
}

std::vector<Change> changes_of(const Job& job) {
  std::vector<Change> changes = {{"a link to the host twice as fast", double_link},
                                 budget_change(job, 110),
                                 budget_change(job, 90),
                                 tensor_change(job, 2 * job.parallel.tensor)};
  if (job.parallel.tensor > 1) changes.push_back(tensor_change(job, job.parallel.tensor / 2));
  changes.push_back(moments_change(job));
  return changes;
}

/// The first line of a message: what is wrong, without its place.
std::string first_problem(const InputError& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

reports::WhatIf outcome_of(const Job& job, const Change& change, const std::optional<Answer>& now,
                           const SearchOptions& how, std::optional<Start> also_as) {
  reports::WhatIf result;
  result.change = change.text;
  result.note = change.refused;
  if (!result.note.empty()) return result;
  Job changed = job;
  change.apply(changed);
  try {
    check(changed, how.megatron);
    // Replayed like `ebb plan`: by bounds alone what does not fit would seem to lack less than it does.
    const SearchOptions options{.megatron = how.megatron, .objective = how.objective, .cures = false, .likely = true};
    const SearchResult found = also_as ? search_robustly(changed, *also_as, options) : search(changed, options);
    result.differs = found.recommended.has_value() != now.has_value();
    if (!found.recommended) {
      result.note = "nothing fits: " + found.shortfall;
      return result;
    }
    const Answer& pick = found.candidates[*found.recommended];
    result.recommendation = text_of(pick.candidate);
    result.flags = pick.flags;
    result.differs = !now || pick.candidate != now->candidate;
    result.step = pick.step;
    result.needs = pick.device_reserved;
  } catch (const InputError& error) {
    result.note = "no valid job: " + first_problem(error);
  }
  return result;
}

}  // namespace

std::vector<reports::WhatIf> what_ifs(const Job& job, const std::optional<Answer>& recommended,
                                      const SearchOptions& how, std::optional<Start> also_as) {
  const std::vector<Change> changes = changes_of(job);
  std::vector<std::future<reports::WhatIf>> running;
  running.reserve(changes.size());
  for (const Change& change : changes)
    running.push_back(
        std::async(std::launch::async, [&] { return outcome_of(job, change, recommended, how, also_as); }));
  std::vector<reports::WhatIf> results;
  results.reserve(running.size());
  for (std::future<reports::WhatIf>& result : running) results.push_back(result.get());
  return results;
}

}  // namespace ebb
