// A LifeEquivalence as text and as JSON.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/json_fields.hpp"
#include "models/quantity_text.hpp"
#include "replay/life_equivalence.hpp"
#include "reports/answer_head.hpp"
#include "reports/table.hpp"

namespace ebb::replay {

namespace {

constexpr std::size_t kUndisturbed = 3;  // orders: resident twice, and the policy in one

std::string verdict(const LifeEquivalence& e) {
  if (!e.equal()) return fmt::format("NOT equivalent: {} does not live as resident does.", e.policy);
  if (!e.unplanned.empty()) return fmt::format("NOT as planned: {}.", e.unplanned);
  if (!e.lower())
    return fmt::format("NOT an offload: {} computes what resident does, but not every peak is lower.", e.policy);
  if (!e.bounded()) return fmt::format("NOT bounded: {} has more state on the device than its chunks allow.", e.policy);
  const bool disturbed = e.orders.size() > kUndisturbed;
  const char* where = e.on_gpu    ? "on the GPU"
                      : disturbed ? "in every order that a held-back stream gives"
                                  : "in program order";
  return fmt::format("Equivalent: {} gives the bits of resident through the whole life {}, with lower peaks.", e.policy,
                     where);
}

struct Total {
  int step = 0;
  StepNumbers numbers;
};

/// The baseline's steps over all ranks: losses and digests added up; the rest is the same everywhere. The own leg, then
/// the resharded one.
std::vector<Total> totals_of(const LifeRecord& baseline) {
  std::vector<Total> totals;
  for (const LegRecord& leg : baseline) {
    if (leg.kind == LegKind::fresh) continue;
    for (std::size_t i = 0; i < leg.taken.size(); ++i) {
      Total total{leg.taken[i], leg.numbers.front().steps[i]};
      for (std::size_t r = 1; r < leg.numbers.size(); ++r) {
        total.numbers.loss += leg.numbers[r].steps[i].loss;
        total.numbers.digest += leg.numbers[r].steps[i].digest;
      }
      totals.push_back(total);
    }
  }
  return totals;
}

std::string part_text(const PartRow& row) { return row.part ? std::string(name_of(*row.part)) : "whole life"; }

std::string found(const PartRow& row) {
  if (!row.met()) return fmt::format("NOT {}", name_of(row.demand));
  if (row.part && !row.as_planned()) return fmt::format("NOT the planned {}", format_bytes(row.planned));
  if (!row.bounded()) return "OVER the bound";
  if (row.resident == row.policy) return "the same";
  return fmt::format("{:+.3g} %",
                     100.0 * (static_cast<double>(row.policy.value) / static_cast<double>(row.resident.value) - 1.0));
}

void add(std::string& text, const reports::Table& table) {
  for (const std::string& line : table.lines()) text += line + "\n";
  text += "\n";
}

Json part_json(const PartRow& row) {
  Json json = {{"part", part_text(row)},         {"ranks", row.ranks},
               {"resident", row.resident.value}, {"policy", row.policy.value},
               {"planned", row.planned.value},   {"state", row.state.value},
               {"demand", name_of(row.demand)},  {"met", row.met()},
               {"as_planned", row.as_planned()}};
  if (row.bound) json["bound"] = row.bound->value;
  return json;
}

std::string ranks_text(const LifeEquivalence& e) {
  const std::string own = fmt::format("on {} {}", e.ranks, e.ranks == 1 ? "rank" : "ranks");
  return e.other_ranks == 0 ? own : fmt::format("{}, then on {}", own, e.other_ranks);
}

}  // namespace

std::string to_text(const LifeEquivalence& e) {
  reports::Table steps({{"step"}, {"loss"}, {"gradient norm"}, {"state digest"}});
  for (const Total& total : totals_of(e.baseline))
    steps.add_row({fmt::format("{}", total.step), fmt::format("{:.6f}", total.numbers.loss),
                   fmt::format("{:.6f}", std::sqrt(static_cast<double>(total.numbers.sum_of_squares))),
                   total.numbers.skipped ? "skipped" : fmt::format("{:016x}", total.numbers.digest)});
  reports::Table orders({{"life", reports::Align::left}, {"", reports::Align::left}});
  for (const OrderResult& order : e.orders)
    orders.add_row({order.order, order.difference.empty() ? "equal" : "DIFFERS: " + order.difference});
  reports::Table parts(
      {{"part", reports::Align::left}, {"ranks"}, {"resident"}, {e.policy}, {""}, {"state of it"}, {"bound"}});
  for (const PartRow& row : e.parts)
    parts.add_row({part_text(row), fmt::format("{}", row.ranks), format_bytes(row.resident), format_bytes(row.policy),
                   found(row), format_bytes(row.state), row.bound ? format_bytes(*row.bound) : "-"});
  std::string text = fmt::format("life       {}: {}\n", ranks_text(e), to_text(e.shape));
  if (e.orders.size() > kUndisturbed) text += fmt::format("disturbed  {}\n", to_text(e.disturbed));
  text += "\n";
  add(text, steps);
  add(text, orders);
  add(text, parts);
  for (const std::string& remark : e.remarks) text += fmt::format("note: {}\n", remark);
  return text + verdict(e) + "\n";
}

std::string to_json(const LifeEquivalence& e) {
  Json json = reports::answer_head("life-equivalence");
  json.update({{"policy", e.policy},
               {"device", e.on_gpu ? "gpu" : "cpu"},
               {"equivalent", e.holds()},
               {"equal", e.equal()},
               {"lower", e.lower()},
               {"bounded", e.bounded()},
               {"verdict", verdict(e)},
               {"ranks", e.ranks},
               {"other_ranks", e.other_ranks},
               {"life", to_text(e.shape)},
               {"disturbed", to_text(e.disturbed)}});
  json["orders"] = Json::array();
  for (const OrderResult& order : e.orders) {
    Json one = {{"order", order.order}, {"equal", order.difference.empty()}};
    if (!order.difference.empty()) one["difference"] = order.difference;
    json["orders"].push_back(one);
  }
  json["parts"] = Json::array();
  for (const PartRow& row : e.parts) json["parts"].push_back(part_json(row));
  if (!e.unplanned.empty()) json["unplanned"] = e.unplanned;
  json["steps"] = Json::array();
  for (const Total& total : totals_of(e.baseline)) {
    const double sum = total.numbers.sum_of_squares;
    json["steps"].push_back({{"step", total.step},
                             {"loss", total.numbers.loss},
                             {"sum_of_squares", std::isfinite(sum) ? Json(sum) : Json()},  // JSON has no inf
                             {"skipped", total.numbers.skipped},
                             {"digest", fmt::format("{:016x}", total.numbers.digest)}});
  }
  json["provenance"] = Json::object();
  for (const auto& [what, value] : e.provenance) json["provenance"][what] = value;
  json["remarks"] = e.remarks;
  return dump(json) + "\n";
}

}  // namespace ebb::replay
