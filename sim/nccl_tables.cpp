#include "sim/nccl_tables.hpp"

namespace ebb::sim {
namespace {

struct NamePart {
  std::string_view part;
  NcclGpu gpu;
};

constexpr NcclGpu kHopper{Architecture::hopper, true};
constexpr NcclGpu kBlackwell{Architecture::blackwell, true};
constexpr NcclGpu kBlackwellCard{Architecture::blackwell, false};
constexpr NcclGpu kAmpere{Architecture::ampere, true};
constexpr NcclGpu kAdaCard{Architecture::ampere, false};

/// The first part that a name contains decides. Cards of the Ada and later workstation lines have no NVLink connector
/// (NVIDIA's data sheets of RTX 4090, RTX 6000 Ada, L40S, RTX 5090, RTX PRO 6000).
constexpr std::array<NamePart, 20> kNameParts = {{
    {"H100", kHopper},          {"H200", kHopper},
    {"H800", kHopper},          {"H20", kHopper},
    {"A100", kAmpere},          {"A800", kAmpere},
    {"B200", kBlackwell},       {"B100", kBlackwell},
    {"B300", kBlackwell},       {"RTX PRO", kBlackwellCard},
    {"RTX 50", kBlackwellCard}, {"RTX 40", kAdaCard},
    {"Ada", kAdaCard},          {"L40", kAdaCard},
    {"L4", kAdaCard},           {"RTX", kAmpere},
    {"A40", kAmpere},           {"A30", kAmpere},
    {"A10", kAmpere},           {"V100", kAmpere},
}};

}  // namespace

NcclGpu nccl_gpu(std::string_view name) {
  for (const NamePart& known : kNameParts) {
    if (name.find(known.part) != std::string_view::npos) return known.gpu;
  }
  return {};
}

}  // namespace ebb::sim
