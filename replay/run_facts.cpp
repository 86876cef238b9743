#include "replay/run_facts.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>

#include "models/quantity_text.hpp"

namespace ebb::replay {

namespace {

/// The first line of a small file of the kernel's, or nothing.
std::string first_line(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

std::string driver_name() {
  if (std::string version = first_line("/sys/module/nvidia/version"); !version.empty()) return version;
  // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build ...": the first word of digits
  // with a point.
  std::istringstream words(first_line("/proc/driver/nvidia/version"));
  for (std::string word; words >> word;) {
    const bool digits = word.find_first_not_of("0123456789.") == std::string::npos;
    if (digits && word.find('.') != std::string::npos) return word;
  }
  return "";
}

std::string cuda_version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string run_date() {
  std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  if (const char* epoch = std::getenv("SOURCE_DATE_EPOCH"); epoch != nullptr && *epoch != '\0')
    now = static_cast<std::time_t>(parse_count(epoch, {"SOURCE_DATE_EPOCH", 0, 0}));
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

}  // namespace ebb::replay
