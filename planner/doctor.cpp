// What each fact means. Sources of the rules stand beside them (doctor_parts.hpp says where); those that other parts of
// Ebb already apply are theirs (models/host_limits.hpp: which limit is hard).
#include "planner/doctor.hpp"

#include <utility>

#include "planner/doctor_parts.hpp"

namespace ebb {

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::note:
      return "note";
    case Verdict::problem:
      return "problem";
  }
  return "";
}

std::vector<HostFinding> diagnose(const HostFacts& facts, const std::optional<HostNeed>& need) {
  std::vector<HostFinding> findings;
  const auto add = [&findings](std::optional<HostFinding> found) {
    if (found) findings.push_back(std::move(*found));
  };
  using namespace doctor;
  add(machine(facts, need));
  add(memory(facts, need));
  add(control_group(facts, need));
  add(locked_memory(facts, need));
  add(numa(facts, need));
  add(driver(facts, need));
  add(devices(facts, need));
  add(link(facts, need));
  add(huge_pages(facts));
  add(shared_memory(facts, need));
  add(disk(facts, need));
  return findings;
}

}  // namespace ebb
