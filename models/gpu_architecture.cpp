#include "models/gpu_architecture.hpp"

#include <array>

namespace ebb {

namespace {

struct Known {
  std::string_view part;  // of the name
  ComputeCapability capability;
};

// The first match counts, so what contains another's name comes first.
constexpr std::array<Known, 21> kKnown = {{
    {"Blackwell", {12, 0}},  // RTX PRO Blackwell
    {"RTX 50", {12, 0}},    {"GB300", {10, 3}}, {"B300", {10, 3}}, {"GB200", {10, 0}}, {"B200", {10, 0}},
    {"B100", {10, 0}},      {"GH200", {9, 0}},  {"H200", {9, 0}},  {"H100", {9, 0}},   {"H800", {9, 0}},
    {"H20", {9, 0}},        {"RTX 40", {8, 9}}, {"Ada", {8, 9}},   {"L40", {8, 9}},    {"RTX 30", {8, 6}},
    {"A40", {8, 6}},        {"A6000", {8, 6}},  {"A100", {8, 0}},  {"A800", {8, 0}},   {"V100", {7, 0}},
}};

}  // namespace

std::optional<ComputeCapability> compute_capability(std::string_view gpu_name) {
  for (const Known& known : kKnown)
    if (gpu_name.find(known.part) != std::string_view::npos) return known.capability;
  return std::nullopt;
}

}  // namespace ebb
