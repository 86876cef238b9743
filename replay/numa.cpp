#include "replay/numa.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <fstream>

namespace ebb::replay {

namespace {

// linux/mempolicy.h, which not every system has installed. Preferred, not bound: a full node must not kill the process.
constexpr int kPreferred = 1;
constexpr int kDefault = 0;

constexpr int kMostNodes = 1024;
using NodeMask = std::array<unsigned long, kMostNodes / (8 * sizeof(unsigned long))>;

NodeMask mask_of(int node) {
  constexpr int kBits = 8 * sizeof(unsigned long);
  NodeMask mask{};
  mask[static_cast<std::size_t>(node / kBits)] = 1UL << (node % kBits);
  return mask;
}

}  // namespace

std::optional<int> numa_node_of(std::string_view pci_bus_id, const std::string& root) {
  std::string id(pci_bus_id);
  for (char& c : id) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::ifstream file(root + "/sys/bus/pci/devices/" + id + "/numa_node");
  int node = -1;
  if (!(file >> node) || node < 0 || node >= kMostNodes) return std::nullopt;
  return node;
}

bool prefer_node(void* begin, std::size_t bytes, int node) {
  const NodeMask mask = mask_of(node);
  return syscall(SYS_mbind, begin, bytes, kPreferred, mask.data(), kMostNodes, 0U) == 0;
}

PreferNode::PreferNode(std::optional<int> node) {
  if (!node) return;
  const NodeMask mask = mask_of(*node);
  set_ = syscall(SYS_set_mempolicy, kPreferred, mask.data(), kMostNodes) == 0;
}

PreferNode::~PreferNode() {
  if (set_) syscall(SYS_set_mempolicy, kDefault, nullptr, 0);
}

}  // namespace ebb::replay
