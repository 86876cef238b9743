// An Equivalence as text and as JSON.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/json_fields.hpp"
#include "models/quantity_text.hpp"
#include "replay/equivalence.hpp"
#include "reports/answer_head.hpp"
#include "reports/table.hpp"

namespace ebb::replay {

namespace {

/// A step's numbers over all ranks: losses and digests added up; the norm is the same everywhere.
StepNumbers total_of(const std::vector<RankNumbers>& ranks, std::size_t step) {
  StepNumbers total;
  for (const RankNumbers& rank : ranks) {
    total.loss += rank.steps[step].loss;
    total.digest += rank.steps[step].digest;
    total.sum_of_squares = rank.steps[step].sum_of_squares;
  }
  return total;
}

std::string verdict(const Equivalence& equivalence) {
  const std::string where = equivalence.on_gpu ? "on the GPU" : "in every order that a held-back stream gives";
  if (!equivalence.equal())
    return fmt::format("NOT equivalent: {} does not compute what resident does.", equivalence.policy);
  if (!equivalence.lower())
    return fmt::format("NOT an offload: {} computes what resident does, but its peak is not lower.",
                       equivalence.policy);
  return fmt::format("Equivalent: {} gives the bits of resident {}, with a lower peak.", equivalence.policy, where);
}

}  // namespace

std::string to_text(const Equivalence& equivalence) {
  reports::Table steps({{"step"}, {"loss"}, {"gradient norm"}, {"state digest"}});
  for (std::size_t t = 0; t < equivalence.resident.front().steps.size(); ++t) {
    const StepNumbers total = total_of(equivalence.resident, t);
    steps.add_row({fmt::format("{}", t + 1), fmt::format("{:.6f}", total.loss),
                   fmt::format("{:.6f}", std::sqrt(static_cast<double>(total.sum_of_squares))),
                   fmt::format("{:016x}", total.digest)});
  }
  reports::Table orders(
      {{fmt::format("{} against resident", equivalence.policy), reports::Align::left}, {"", reports::Align::left}});
  for (const OrderResult& order : equivalence.orders)
    orders.add_row({order.order, order.difference.empty() ? "equal" : "DIFFERS: " + order.difference});
  reports::Table peaks({{"peak", reports::Align::left}, {"resident"}, {equivalence.policy}, {""}});
  for (const PeakResult& peak : equivalence.peaks)
    peaks.add_row({peak.what, format_bytes(peak.resident), format_bytes(peak.policy),
                   peak.lower() ? fmt::format("-{:.1f} %", 100.0 * (1.0 - static_cast<double>(peak.policy.value) /
                                                                              static_cast<double>(peak.resident.value)))
                                : "NOT lower"});
  std::string text;
  for (const reports::Table* table : {&steps, &orders, &peaks}) {
    for (const std::string& line : table->lines()) text += line + "\n";
    text += "\n";
  }
  return text + verdict(equivalence) + "\n";
}

std::string to_json(const Equivalence& equivalence) {
  Json json = reports::answer_head("equivalence");
  json.update({{"policy", equivalence.policy},
               {"device", equivalence.on_gpu ? "gpu" : "cpu"},
               {"equivalent", equivalence.holds()},
               {"equal", equivalence.equal()},
               {"lower", equivalence.lower()},
               {"verdict", verdict(equivalence)}});
  json["orders"] = Json::array();
  for (const OrderResult& order : equivalence.orders) {
    Json one = {{"order", order.order}, {"equal", order.difference.empty()}};
    if (!order.difference.empty()) one["difference"] = order.difference;
    json["orders"].push_back(one);
  }
  json["peaks"] = Json::array();
  for (const PeakResult& peak : equivalence.peaks)
    json["peaks"].push_back({{"what", peak.what}, {"resident", peak.resident.value}, {"policy", peak.policy.value}});
  json["steps"] = Json::array();
  for (std::size_t t = 0; t < equivalence.resident.front().steps.size(); ++t) {
    const StepNumbers total = total_of(equivalence.resident, t);
    json["steps"].push_back({{"loss", total.loss},
                             {"sum_of_squares", total.sum_of_squares},
                             {"digest", fmt::format("{:016x}", total.digest)}});
  }
  return dump(json) + "\n";
}

}  // namespace ebb::replay
