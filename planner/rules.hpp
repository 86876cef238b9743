// Constraints as data: one table of every rule that a job, or a policy for it, must keep. A rule says which key it
// blames, when it is broken, why that matters, what cures it, and where it comes from; `ebb check` prints the broken
// ones, the other commands refuse with them (constraints.hpp). Not here: the syntax of files (models/), and whether a
// candidate fits (search.hpp).
//
// Rules are tried in the order of the table. One that computes from what another guarantees (a division by a size that
// must not be 0) names it in `after` and is left out when that one is broken or left out itself, so that one mistake is
// not reported ten times over.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/job.hpp"
#include "models/policy.hpp"
#include "planner/flags.hpp"

namespace ebb {

/// What a rule judges. Without a policy only the rules of the job itself apply.
struct Situation {
  const Job& job;
  std::optional<Policy> policy{};
  Megatron megatron = Megatron::any;  // what the user runs
};

/// One way in which a rule is broken.
struct Finding {
  std::string problem;
  std::string cure;
  std::string key{};  // where it is not the rule's own
};
using Findings = std::vector<Finding>;

struct Rule {
  std::string_view id;
  std::string_view key;            // of the job, to blame
  std::vector<Policy> policies{};  // it concerns; empty: the job, whatever the policy
  void (*find)(const Situation&, Findings&) = nullptr;
  std::string_view reason;
  std::string_view source;
  std::vector<std::string_view> after{};  // rules that must hold for this one to be computed
};

/// Every rule, in the order of their messages; ids are unique, and `after` names earlier rules only.
std::span<const Rule> all_rules();

struct Violation {
  const Rule* rule = nullptr;
  Place place;
  std::string key, problem, cure;
};

/// What the job breaks; with a policy, also what forbids that policy to this job. In the table's order.
std::vector<Violation> violations(const Job& job, std::optional<Policy> policy = std::nullopt,
                                  Megatron megatron = Megatron::any);

/// Whether the rule is asked of a job, or of a job under that policy.
bool concerns(const Rule& rule, std::optional<Policy> policy);

/// What forbids the policy to this job. Rules of policies compute nothing that a rule of the job guards.
std::vector<Violation> objections(const Job& job, Policy policy, Megatron megatron = Megatron::any);

/// "job.yaml:3:20: parallel.tensor: 3 does not divide the 32 attention heads; why; cure".
std::string text_of(const Violation& violation);

/// Why Megatron would refuse the candidate's policy for this job; "" when it would not.
std::string objection_to(const Job& job, const Candidate& candidate);

}  // namespace ebb
