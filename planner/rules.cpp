#include "planner/rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "planner/rule_lists.hpp"

namespace ebb {

namespace {

struct Table {
  std::vector<Rule> rules;
  std::vector<std::vector<std::size_t>> after;  // of each rule: indices of those before it
};

Table make_table() {
  Table table;
  for (const auto& part : {rule_lists::size_rules(), rule_lists::pipeline_rules(), rule_lists::parallel_rules(),
                           rule_lists::optimizer_rules(), rule_lists::precision_rules(), rule_lists::run_rules(),
                           rule_lists::offload_rules()})
    table.rules.insert(table.rules.end(), part.begin(), part.end());
  for (std::size_t i = 0; i < table.rules.size(); ++i) {
    std::vector<std::size_t>& before = table.after.emplace_back();
    const auto here = table.rules.begin() + static_cast<std::ptrdiff_t>(i);
    for (const std::string_view id : table.rules[i].after) {
      const auto found = std::find_if(table.rules.begin(), here, [&](const Rule& rule) { return rule.id == id; });
      EBB_ASSERT(found != here);
      before.push_back(static_cast<std::size_t>(found - table.rules.begin()));
    }
  }
  return table;
}

const Table& table() {
  static const Table made = make_table();
  return made;
}

void append(const Rule& rule, const Situation& situation, const Findings& findings, std::vector<Violation>& list) {
  for (const Finding& finding : findings) {
    std::string key = finding.key.empty() ? std::string(rule.key) : finding.key;
    const Place place = situation.job.place_of(key);
    list.push_back({&rule, place, std::move(key), finding.problem, finding.cure});
  }
}

}  // namespace

std::span<const Rule> all_rules() { return table().rules; }

bool concerns(const Rule& rule, std::optional<Policy> policy) {
  if (rule.policies.empty()) return true;
  return policy && std::find(rule.policies.begin(), rule.policies.end(), *policy) != rule.policies.end();
}

std::vector<Violation> violations(const Job& job, std::optional<Policy> policy, Megatron megatron) {
  const Situation situation{job, policy, megatron};
  const Table& all = table();
  std::vector<bool> holds(all.rules.size(), true);  // false: broken, or left out
  std::vector<Violation> list;
  for (std::size_t i = 0; i < all.rules.size(); ++i) {
    const Rule& rule = all.rules[i];
    if (!concerns(rule, policy)) continue;
    holds[i] = std::all_of(all.after[i].begin(), all.after[i].end(), [&](std::size_t before) { return holds[before]; });
    if (!holds[i]) continue;
    Findings findings;
    rule.find(situation, findings);
    holds[i] = findings.empty();
    append(rule, situation, findings, list);
  }
  return list;
}

std::vector<Violation> objections(const Job& job, Policy policy, Megatron megatron) {
  const Situation situation{job, policy, megatron};
  std::vector<Violation> list;
  for (const Rule& rule : table().rules) {
    if (rule.policies.empty() || !concerns(rule, policy)) continue;
    Findings findings;
    rule.find(situation, findings);
    append(rule, situation, findings, list);
  }
  return list;
}

std::string text_of(const Violation& violation) {
  const std::string place = violation.place.text();
  std::string text = place.empty() ? "" : place + ": ";
  text += fmt::format("{}: {}", violation.key, violation.problem);
  if (!violation.rule->reason.empty()) text += fmt::format("; {}", violation.rule->reason);
  if (!violation.cure.empty()) text += "; " + violation.cure;
  return text;
}

std::string objection_to(const Job& job, const Candidate& candidate) {
  const Situation situation{job, candidate.policy, Megatron::any};
  Findings findings;
  for (const Rule& rule : table().rules) {
    if (rule.policies.empty() || !concerns(rule, candidate.policy)) continue;
    rule.find(situation, findings);
    if (findings.empty()) continue;
    return rule.reason.empty() ? findings[0].problem : fmt::format("{}: {}", findings[0].problem, rule.reason);
  }
  return "";
}

}  // namespace ebb
