#include "models/job.hpp"

namespace ebb {

Place Job::place_of(const std::string& key) const {
  for (std::string prefix = key;;) {
    if (const auto it = places.find(prefix); it != places.end()) return it->second;
    const std::size_t dot = prefix.rfind('.');
    if (dot == std::string::npos) return {file};
    prefix.resize(dot);
  }
}

}  // namespace ebb
