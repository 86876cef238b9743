// doctor: what a host's facts mean for offloading: one finding a topic, each with the figure, what follows from it, and
// what to do. With a job's need (doctor_need.hpp) they are measured against it; without they are general.
//
// A problem is what the plan cannot run with, or cannot run as predicted; a note is worth knowing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/units.hpp"
#include "planner/host_facts.hpp"

namespace ebb {

enum class Verdict : std::uint8_t { ok, note, problem };
std::string_view name_of(Verdict verdict);

struct HostFinding {
  std::string topic{};  // "memory", "numa", ...
  Verdict verdict = Verdict::ok;
  std::string figure{};       // what was read
  std::string consequence{};  // "" where nothing follows
  std::string cure{};         // "" where there is nothing to do
};

/// What a job's plan wants from each of its hosts.
struct HostNeed {
  std::string job;
  std::string policy;  // in words: "chunked, chunk-numel 1e9"
  std::int64_t hosts = 1;
  std::int64_t ranks = 1;  // of a host
  Bytes pinned{0};         // of a host
  Bytes pageable{0};       // of a host, besides: both together are what must fit (host_demand.hpp)
  Bytes checkpoint{0};     // of the whole job, on disk
  std::string gpu;         // of the job's cluster: "H200"
  BytesPerSecond h2d{0};   // that the plan's times count on, one GPU alone
};

/// In a fixed order; a topic that the host says nothing about is left out unless that itself matters.
std::vector<HostFinding> diagnose(const HostFacts& facts, const std::optional<HostNeed>& need);

}  // namespace ebb
