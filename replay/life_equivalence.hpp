// Equivalence of lives: does a policy train exactly as resident does through saves, kills, resumes, another number of
// ranks and skipped steps, with less memory in every part?
//
//   baseline   resident, uninterrupted: it saves and loads only where the number of ranks changes
//   resident   through everything: for its peaks, and because a save must not change what it saves
//   policy     through everything
//   disturbed  the policy through a short life, against a short baseline: on the CPU each stream held back in turn
//              (reference.hpp says why), on GPUs each slowed down. Short, as the order of ops cannot depend on how
//              often a steady step has run.
//
// Demanded: equal numbers at every step, equal state, parameters and place at the ends (life_compare.hpp), checkpoints
// of equal content from both policies and on both numbers of ranks, and the peaks of life_parts.hpp.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "replay/equivalence.hpp"
#include "replay/life.hpp"
#include "replay/life_compare.hpp"
#include "replay/life_parts.hpp"
#include "replay/life_script.hpp"

namespace ebb::replay {

/// What executes one leg.
using RunLeg = std::function<LifeRun(std::span<const LifeRank>, const LifeScript&)>;
struct DisturbedOrder {
  std::string name;
  RunLeg run;
};
struct LifeExecutor {
  bool on_gpu = false;
  RunLeg run;  // in program order; on GPUs as it comes
  std::vector<DisturbedOrder> disturbed;
  std::size_t at_once = 1;  // that many disturbed lives
};

/// One policy's plans on both numbers of ranks; `other` is empty where the number does not change.
struct LifePlans {
  std::span<const LifeRank> own;
  std::span<const LifeRank> other;
};

/// InputError where a life on the CPU is too large for it.
LifeExecutor cpu_executor(const LifePlans& policy);
/// With poison at every allocation.
LifeExecutor gpu_executor(const LifePlans& policy, const std::vector<int>& devices);

struct LifeComparison {
  LifeShape shape;
  LifeShape disturbed;  // of the disturbed lives
  TrainingOptions training;
  std::string directory;  // for checkpoints, which are removed again
};

struct LifeEquivalence {
  std::string policy;
  bool on_gpu = false;
  LifeShape shape;
  LifeShape disturbed;
  std::size_t ranks = 1;
  std::size_t other_ranks = 0;  // 0: the number does not change
  LifeRecord baseline;
  LifeRecord life;  // the policy's
  std::vector<OrderResult> orders;
  std::vector<PartRow> parts;
  std::string unplanned;  // the first peak that is not the planned one
  std::vector<std::pair<std::string, std::string>> provenance;
  std::vector<std::string> remarks;

  bool equal() const;
  bool lower() const;    // every part's demand
  bool bounded() const;  // planned peaks, and state below its bound
  bool holds() const { return equal() && lower() && bounded(); }
};

/// InputError when the plans are not of one job (check_comparable), or the shape is none.
LifeEquivalence compare_lives(const LifePlans& resident, const LifePlans& policy, const LifeComparison& comparison,
                              const LifeExecutor& executor);

std::string to_text(const LifeEquivalence& equivalence);
std::string to_json(const LifeEquivalence& equivalence);

}  // namespace ebb::replay
