#include "replay/checkpoint/unfinished.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace ebb::replay::checkpoint {

namespace {

namespace fs = std::filesystem;

struct Registry {
  std::recursive_mutex mutex;
  std::list<Unfinished::Part> parts;
};

/// Never destroyed: a signal may come while the process ends.
Registry& registry() {
  static Registry* const all = new Registry;
  return *all;
}

}  // namespace

Unfinished::Unfinished(std::string directory) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  part_ = all.parts.emplace(all.parts.end());
  part_->directory = std::move(directory);
}

Unfinished::~Unfinished() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.parts.erase(part_);
}

void Unfinished::own(std::int64_t of, std::vector<std::string> files) {
  const std::lock_guard lock(registry().mutex);
  part_->of = of;
  part_->files = std::move(files);
}

void Unfinished::complete() {
  const std::lock_guard lock(registry().mutex);
  part_->complete = true;
}

RemovalWaits hold_removal() { return RemovalWaits(registry().mutex); }

RemovalWaits forget_unfinished(const std::string& directory) {
  Registry& all = registry();
  RemovalWaits lock(all.mutex);
  for (Unfinished::Part& part : all.parts)
    if (part.directory == directory) part = {};  // its owner still erases it
  return lock;
}

void remove_unfinished() noexcept {
  Registry& all = registry();
  all.mutex.lock();  // and never unlocked
  std::error_code ignored;
  for (const Unfinished::Part& part : all.parts) {
    if (part.directory.empty()) continue;
    const auto here = std::count_if(all.parts.begin(), all.parts.end(),
                                    [&](const Unfinished::Part& other) { return other.directory == part.directory; });
    if (here >= part.of) {
      fs::remove_all(part.directory, ignored);
      continue;
    }
    if (!part.complete)
      for (const std::string& file : part.files) fs::remove(file, ignored);
    ::rmdir(part.directory.c_str());  // where it is empty
  }
}

}  // namespace ebb::replay::checkpoint
