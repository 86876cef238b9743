#include "replay/life_equivalence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <set>
#include <system_error>

#include "models/errors.hpp"
#include "replay/checkpoint/checkpoint.hpp"
#include "replay/life_files.hpp"

namespace ebb::replay {

namespace fs = std::filesystem;

bool LifeEquivalence::equal() const {
  return std::all_of(orders.begin(), orders.end(), [](const OrderResult& order) { return order.difference.empty(); });
}

bool LifeEquivalence::lower() const {
  return std::all_of(parts.begin(), parts.end(), [](const PartRow& part) { return part.met(); });
}

bool LifeEquivalence::bounded() const {
  return unplanned.empty() && std::all_of(parts.begin(), parts.end(), [](const PartRow& part) {
           return part.bounded() && (!part.part || part.as_planned());
         });
}

namespace {

/// A life's checkpoints, gone with it.
class Checkpoints {
 public:
  Checkpoints(const std::string& parent, const std::string& name) : path_(fs::path(parent) / name) {
    std::error_code failed;
    fs::create_directories(path_, failed);
    if (failed) throw IoError(fmt::format("cannot make the directory {}: {}", path_.string(), failed.message()));
  }
  ~Checkpoints() {
    std::error_code ignored;  // nothing to be done about it in a destructor
    fs::remove_all(path_, ignored);
  }
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

SavedState saved_state(const std::string& path) {
  const checkpoint::Reader reader(path);
  const checkpoint::Description& what = reader.description();
  SavedState saved{what.place.steps, {}};
  const bool masters = what.precision.master_bytes() > 0;
  saved.content = {reader.content(kExpAvg), reader.content(kExpAvgSq), masters ? reader.content(kMaster) : 0,
                   reader.content(kParams)};
  return saved;
}

std::vector<SavedState> new_checkpoints(const Leg& leg, std::set<std::string>& known) {
  std::vector<SavedState> saved;
  for (const LifeEvent& event : leg.script.events) {
    if (event.kind != LifeEvent::Kind::save) continue;
    for (const std::string& path : checkpoint::list(event.directory))
      if (known.insert(path).second) saved.push_back(saved_state(path));
  }
  return saved;
}

std::int64_t rank_of(const LifeRank& rank) { return step_of(rank).rank; }

/// The last one that owns something: where a gradient can be spoiled.
std::int64_t last_rank(std::span<const LifeRank> ranks) {
  for (auto rank = ranks.rbegin(); rank != ranks.rend(); ++rank)
    for (const PlanShard& shard : step_of(*rank).shards)
      if (shard.numel.value > 0) return rank_of(*rank);
  return 0;
}

/// Runs lives and remembers the first run's provenance.
class Lives {
 public:
  Lives(const LifeComparison& comparison, LifeEquivalence& result) : comparison_(comparison), result_(&result) {}

  LifeRecord uninterrupted(const LifePlans& plans, const LifeShape& shape, const RunLeg& run,
                           const std::string& name) const {
    const Checkpoints checkpoints(comparison_.directory, name);
    return run_all(uninterrupted_life(shape, setting(plans, checkpoints)), plans, shape, run, checkpoints);
  }
  LifeRecord interrupted(const LifePlans& plans, const LifeShape& shape, const RunLeg& run,
                         const std::string& name) const {
    const Checkpoints checkpoints(comparison_.directory, name);
    return run_all(interrupted_life(shape, setting(plans, checkpoints)), plans, shape, run, checkpoints);
  }

 private:
  LifeSetting setting(const LifePlans& plans, const Checkpoints& checkpoints) const {
    return {comparison_.training, checkpoints.path(), last_rank(plans.own), last_rank(plans.other)};
  }
  LifeRecord run_all(const std::vector<Leg>& legs, const LifePlans& plans, const LifeShape& shape, const RunLeg& run,
                     const Checkpoints& checkpoints) const {
    LifeRecord record;
    std::set<std::string> known;
    for (const Leg& leg : legs) {
      const std::span<const LifeRank> ranks = leg.other_ranks() ? plans.other : plans.own;
      // The killed leg may have been saving when it died.
      if (leg.kind == LegKind::resumed) leave_unfinished_save(own_checkpoints(checkpoints.path()), shape.reshard_at);
      LifeRun done = run(ranks, leg.script);
      LegRecord of_leg{leg.kind, leg.taken, {}, std::move(done.ranks), {}};
      for (const LifeRank& rank : ranks) of_leg.ranks.push_back(rank_of(rank));
      of_leg.saved = new_checkpoints(leg, known);
      record.push_back(std::move(of_leg));
      remember(done);
    }
    return record;
  }
  void remember(const LifeRun& run) const {
    if (result_->provenance.empty()) result_->provenance = run.provenance;
    for (const std::string& remark : run.remarks)
      if (std::find(result_->remarks.begin(), result_->remarks.end(), remark) == result_->remarks.end())
        result_->remarks.push_back(remark);
  }

  const LifeComparison& comparison_;
  LifeEquivalence* result_;
};

std::string first_of(const std::string& one, const std::string& other) { return one.empty() ? other : one; }

void check_plans(const LifePlans& resident, const LifePlans& policy) {
  const auto steps_of = [](std::span<const LifeRank> ranks) {
    std::vector<Program> steps;
    for (const LifeRank& rank : ranks) steps.push_back(*rank.programs[static_cast<std::size_t>(LifePart::step)]);
    return steps;
  };
  check_comparable(steps_of(resident.own), steps_of(policy.own));
  check_comparable(steps_of(resident.other), steps_of(policy.other));
}

/// A short life in each disturbed order, several at once; one line for orders of one name.
void add_disturbed(const LifePlans& resident, const LifePlans& policy, const LifeComparison& comparison,
                   const LifeExecutor& executor, LifeEquivalence& result) {
  if (executor.disturbed.empty()) return;
  const LifeRecord baseline =
      Lives(comparison, result).uninterrupted(resident, comparison.disturbed, executor.run, "short-baseline");
  const std::size_t count = executor.disturbed.size();
  std::vector<std::string> found(count);
  std::vector<LifeEquivalence> notes(count);  // of each thread's own
  std::vector<std::future<void>> workers;
  const std::size_t threads = std::clamp<std::size_t>(executor.at_once, 1, count);
  for (std::size_t first = 0; first < threads; ++first) {
    workers.push_back(std::async(std::launch::async, [&, first] {
      for (std::size_t i = first; i < count; i += threads) {
        const LifeRecord life =
            Lives(comparison, notes[i])
                .interrupted(policy, comparison.disturbed, executor.disturbed[i].run, fmt::format("disturbed-{}", i));
        found[i] = first_of(difference(baseline, life), content_difference(baseline, life));
      }
    }));
  }
  for (std::future<void>& worker : workers) worker.wait();
  for (std::future<void>& worker : workers) worker.get();  // throws what it threw, when none runs any more
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& name = executor.disturbed[i].name;
    if (result.orders.back().order != name) result.orders.push_back({name, ""});
    result.orders.back().difference = first_of(result.orders.back().difference, found[i]);
  }
}

}  // namespace

LifeEquivalence compare_lives(const LifePlans& resident, const LifePlans& policy, const LifeComparison& comparison,
                              const LifeExecutor& executor) {
  check_shape(comparison.shape);
  check_shape(comparison.disturbed);
  check_plans(resident, policy);
  LifeEquivalence result;
  result.policy = name_of(step_of(policy.own.front()).candidate.policy);
  result.on_gpu = executor.on_gpu;
  result.shape = comparison.shape;
  result.disturbed = comparison.disturbed;
  result.ranks = policy.own.size();
  result.other_ranks = policy.other.size();
  const Lives lives(comparison, result);
  result.baseline = lives.uninterrupted(resident, comparison.shape, executor.run, "baseline");
  const LifeRecord through = lives.interrupted(resident, comparison.shape, executor.run, "resident");
  result.life = lives.interrupted(policy, comparison.shape, executor.run, "policy");

  const auto against_baseline = [&](const LifeRecord& life) {
    return first_of(difference(result.baseline, life), content_difference(result.baseline, life));
  };
  result.orders.push_back(
      {"resident, uninterrupted", skip_difference(result.baseline, comparison.shape, comparison.training.scaling.on)});
  result.orders.push_back({"resident, interrupted", against_baseline(through)});
  result.orders.push_back({fmt::format("{}, {}", result.policy, executor.on_gpu ? "as it comes" : "program order"),
                           first_of(against_baseline(result.life), content_difference(through, result.life))});
  add_disturbed(resident, policy, comparison, executor, result);
  result.parts = compare_parts({through, resident.own, resident.other}, {result.life, policy.own, policy.other});
  result.unplanned = first_of(unplanned(result.life), unplanned(through));
  return result;
}

}  // namespace ebb::replay
