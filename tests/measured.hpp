// Lines of tests/data/measured.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace ebb::test {

/// The lines of `file` whose experiment `k` is `kind`, in file order.
inline std::vector<nlohmann::json> measured(const std::string& file, const std::string& kind) {
  std::ifstream in(std::string(EBB_TEST_DATA) + "/measured/" + file);
  if (!in) throw std::runtime_error("cannot read " + file);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) {
    auto json = nlohmann::json::parse(line);
    if (json.at("k") == kind) lines.push_back(std::move(json));
  }
  return lines;
}

}  // namespace ebb::test
