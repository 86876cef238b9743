// Which NUMA node a GPU hangs on, and memory placed there. Raw system calls: libnuma would be one more library to find.
// Not here: CPU affinity.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ebb::replay {

/// Of the PCI device `pci_bus_id` ("0000:1B:00.0", any case); unset where the machine does not say.
std::optional<int> numa_node_of(std::string_view pci_bus_id, const std::string& root = "/");

/// Pages of [begin, begin + bytes) that are not there yet come from `node` as long as it has some, then from others.
/// False where the kernel refuses (no NUMA, seccomp). Precondition: `begin` is at a page.
bool prefer_node(void* begin, std::size_t bytes, int node);

/// The same for everything that this thread allocates, until it goes out of scope. Does nothing without a node.
class PreferNode {
 public:
  explicit PreferNode(std::optional<int> node);
  ~PreferNode();
  PreferNode(const PreferNode&) = delete;
  PreferNode& operator=(const PreferNode&) = delete;

 private:
  bool set_ = false;
};

}  // namespace ebb::replay
