// The topics of diagnose(), one function each, by what they look at. Internal to it.
#pragma once

#include <optional>

#include "planner/doctor.hpp"

namespace ebb::doctor {

using Need = std::optional<HostNeed>;

// Memory (doctor_memory.cpp).
HostFinding machine(const HostFacts& facts, const Need& need);
HostFinding memory(const HostFacts& facts, const Need& need);
HostFinding control_group(const HostFacts& facts, const Need& need);
HostFinding locked_memory(const HostFacts& facts, const Need& need);
std::optional<HostFinding> numa(const HostFacts& facts, const Need& need);

// The driver, the GPUs and their links (doctor_devices.cpp).
HostFinding driver(const HostFacts& facts, const Need& need);
HostFinding devices(const HostFacts& facts, const Need& need);
std::optional<HostFinding> link(const HostFacts& facts, const Need& need);

// Settings of the kernel, and disks (doctor_system.cpp).
HostFinding huge_pages(const HostFacts& facts);
HostFinding shared_memory(const HostFacts& facts, const Need& need);
std::optional<HostFinding> disk(const HostFacts& facts, const Need& need);

}  // namespace ebb::doctor
