// Sources: proc(5) and sysfs documents of the kernel (ABI/testing/sysfs-bus-pci, sysfs-devices-node, admin-guide/mm
// transhuge and hugetlbpage); NVIDIA's driver README, "The /proc Interface"; PCI Code and ID Assignment (class 03).
#include "planner/host_facts.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace ebb {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostPages = std::int64_t{1} << 40;

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// The number that `text` begins with, blanks skipped; `otherwise` where there is none.
double number(std::string_view text, double otherwise, int base = 10) {
  const std::size_t at = text.find_first_not_of(" \t");
  if (at == std::string_view::npos) return otherwise;
  text.remove_prefix(at);
  if (base == 16) {
    if (text.starts_with("0x")) text.remove_prefix(2);
    unsigned value = 0;
    return std::from_chars(text.data(), text.data() + text.size(), value, 16).ec == std::errc{} ? value : otherwise;
  }
  double value = 0;
  return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{} ? value : otherwise;
}

/// What follows `key` on the first line that holds it.
std::string behind(const std::string& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find(key);
    if (at == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", at + key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

/// Names in a directory, sorted; none where it is not there.
std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// "16.0 GT/s PCIe", "32 GT/s", "Unknown"; widths are numbers, 255 where unknown, 63 on some kernels.
PcieLink link_of(const std::string& device, const char* speed, const char* width) {
  const double lanes = number(first_line(device + width), 0);
  PcieLink link{number(first_line(device + speed), 0), static_cast<int>(lanes)};
  if (link.width <= 0 || link.width > 32) link.width = 0;
  return link;
}

std::vector<GpuFacts> gpus_of(const std::string& root) {
  constexpr int kNvidia = 0x10de;
  constexpr int kDisplay = 0x03;  // VGA and 3D controllers; 06 are NVSwitches, 04 sound
  const std::string devices = root + "/sys/bus/pci/devices/";
  std::vector<GpuFacts> gpus;
  for (const std::string& address : names_in(devices)) {
    const std::string device = devices + address + "/";
    if (static_cast<int>(number(first_line(device + "vendor"), 0, 16)) != kNvidia) continue;
    if (static_cast<int>(number(first_line(device + "class"), 0, 16)) >> 16 != kDisplay) continue;
    GpuFacts gpu;
    gpu.address = address;
    gpu.name = behind(root + "/proc/driver/nvidia/gpus/" + address + "/information", "Model:");
    const int node = static_cast<int>(number(first_line(device + "numa_node"), -1));
    if (node >= 0) gpu.node = node;
    gpu.now = link_of(device, "current_link_speed", "current_link_width");
    gpu.most = link_of(device, "max_link_speed", "max_link_width");
    gpus.push_back(gpu);
  }
  return gpus;
}

std::vector<NumaNode> nodes_of(const std::string& root) {
  const std::string directory = root + "/sys/devices/system/node/";
  std::vector<NumaNode> nodes;
  for (const std::string& name : names_in(directory)) {
    const std::string_view digits = std::string_view(name).substr(std::min<std::size_t>(4, name.size()));
    if (!name.starts_with("node") || digits.find_first_of("0123456789") != 0) continue;
    const double kibibytes = number(behind(directory + name + "/meminfo", "MemTotal:"), 0);
    const NumaNode node{static_cast<int>(number(digits, 0)), {static_cast<std::int64_t>(kibibytes) * 1024}};
    if (node.total.value > 0) nodes.push_back(node);
  }
  std::sort(nodes.begin(), nodes.end(), [](const NumaNode& a, const NumaNode& b) { return a.number < b.number; });
  return nodes;
}

/// Of all sizes: directories are called hugepages-2048kB.
Bytes huge_pages_of(const std::string& root) {
  const std::string directory = root + "/sys/kernel/mm/hugepages/";
  Bytes sum{0};
  for (const std::string& name : names_in(directory)) {
    const std::size_t dash = name.find('-');
    if (dash == std::string::npos) continue;
    const double kibibytes = number(std::string_view(name).substr(dash + 1), 0);
    const double pages = number(first_line(directory + name + "/nr_hugepages"), 0);
    const double bytes = kibibytes * 1024 * pages;
    if (bytes > 0 && bytes < static_cast<double>(kMostPages)) sum += Bytes{static_cast<std::int64_t>(bytes)};
  }
  return sum;
}

/// The word in brackets: "always [madvise] never".
std::string chosen(const std::string& line) {
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']', open == std::string::npos ? 0 : open);
  return open == std::string::npos || close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

struct Mount {
  std::string point;
  std::string filesystem;
  std::string options;  // of the file system itself
};

/// Lines of mountinfo: id parent major:minor root POINT options... - TYPE source OPTIONS. Blanks in names are "\040".
std::vector<Mount> mounts_of(const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream in(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at < line.size();) {
      const std::size_t end = std::min(line.find(' ', at), line.size());
      words.push_back(line.substr(at, end - at));
      at = end + 1;
    }
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - dash < 4) continue;
    mounts.push_back({words[4], dash[1], dash[3]});
  }
  return mounts;
}

/// Without a size, tmpfs takes half of the memory (tmpfs(5)).
std::optional<Bytes> shared_memory_of(const std::vector<Mount>& mounts, const std::optional<Bytes>& total) {
  const auto mount = std::find_if(mounts.rbegin(), mounts.rend(), [](const Mount& m) { return m.point == "/dev/shm"; });
  if (mount == mounts.rend()) return std::nullopt;
  const std::string options = "," + mount->options;
  const std::size_t at = options.find(",size=");
  if (at == std::string::npos) return total ? std::optional(Bytes{total->value / 2}) : std::nullopt;
  const std::string_view text = std::string_view(options).substr(at + 6);
  const std::size_t unit = std::min(text.find_first_not_of("0123456789."), text.size());
  const char letter = unit < text.size() ? text[unit] : ',';
  const double factor = letter == 'k' ? 1024.0 : letter == 'm' ? 1048576.0 : letter == 'g' ? 1073741824.0 : 1.0;
  return Bytes{static_cast<std::int64_t>(number(text, 0) * factor)};
}

/// The longest mount point that `directory` lies in; of equal ones the last, which covers the others.
std::string filesystem_of(const std::vector<Mount>& mounts, const fs::path& directory) {
  std::string type;
  std::size_t longest = 0;
  const std::string path = directory.string() + "/";
  for (const Mount& mount : mounts) {
    const std::string point = mount.point == "/" ? "/" : mount.point + "/";
    if (!path.starts_with(point) || point.size() < longest) continue;
    longest = point.size();
    type = mount.filesystem;
  }
  return type;
}

DiskFacts disk_of(const std::string& root, const std::vector<Mount>& mounts, const std::string& directory) {
  std::error_code error;
  fs::path path = fs::absolute(directory, error).lexically_normal();
  if (path.has_relative_path() && !path.has_filename()) path = path.parent_path();
  fs::path there = path;
  while (there.has_relative_path() && !fs::exists(root + there.string(), error)) there = there.parent_path();
  const fs::space_info space = fs::space(root + there.string(), error);
  DiskFacts disk{directory, filesystem_of(mounts, path), {}, there == path ? "" : there.string()};
  if (!error && space.available <= static_cast<std::uintmax_t>(INT64_MAX))
    disk.free = Bytes{static_cast<std::int64_t>(space.available)};
  return disk;
}

std::string container_of(const std::string& root) {
  if (exists(root + "/run/.containerenv")) return "podman";
  if (exists(root + "/var/run/secrets/kubernetes.io")) return "kubernetes";
  if (exists(root + "/.dockerenv")) return "docker";
  const std::string groups = first_line(root + "/proc/1/cgroup");
  if (groups.find("kubepods") != std::string::npos) return "kubernetes";
  if (groups.find("docker") != std::string::npos) return "docker";
  return groups.find("lxc") != std::string::npos ? "container" : "";
}

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Mon ..."; open modules say "Open Kernel Module for
/// x86_64".
std::string driver_of(const std::string& root) {
  const std::string line = behind(root + "/proc/driver/nvidia/version", "Kernel Module");
  const std::size_t begin = line.find_first_of("0123456789", line.find("x86_64") == 4 ? 10 : 0);
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_first_not_of("0123456789.", begin) - begin);
}

bool may_lock_memory(const std::string& root) {
  constexpr int kIpcLock = 14;  // linux/capability.h
  const std::string mask = behind(root + "/proc/self/status", "CapEff:");
  std::uint64_t bits = 0;
  std::from_chars(mask.data(), mask.data() + mask.size(), bits, 16);
  return (bits >> kIpcLock & 1) != 0;
}

}  // namespace

BytesPerSecond PcieLink::rate() const {
  // Line coding (PCI Express Base Specification): 8b/10b up to 5 GT/s, 128b/130b up to 32, flits of 236 in 256 bytes
  // from 64 on.
  const double coding = gigatransfers <= 5 ? 8.0 / 10 : gigatransfers <= 32 ? 128.0 / 130 : 236.0 / 256;
  return {gigatransfers * 1e9 / 8 * width * coding};
}

HostFacts read_host_facts(const std::string& root, const std::string& checkpoint) {
  HostFacts facts;
  facts.limits = read_host_limits(root);
  facts.may_lock = may_lock_memory(root);
  // "Linux version 5.15.153.1-microsoft-standard-WSL2".
  const std::string version = first_line(root + "/proc/version");
  facts.wsl = version.find("WSL") != std::string::npos || version.find("microsoft-standard") != std::string::npos;
  facts.container = container_of(root);
  facts.driver = driver_of(root);
  facts.windows_driver = exists(root + "/dev/dxg");
  facts.infiniband = !names_in(root + "/sys/class/infiniband").empty();
  facts.gpus = gpus_of(root);
  facts.nodes = nodes_of(root);
  facts.transparent_huge_pages = chosen(first_line(root + "/sys/kernel/mm/transparent_hugepage/enabled"));
  facts.huge_pages = huge_pages_of(root);
  const std::vector<Mount> mounts = mounts_of(root);
  facts.shared_memory = shared_memory_of(mounts, facts.limits.total);
  if (!checkpoint.empty()) facts.disk = disk_of(root, mounts, checkpoint);
  return facts;
}

}  // namespace ebb
