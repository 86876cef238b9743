#include "replay/checkpoint/directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>  // renameat2
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "models/errors.hpp"
#include "replay/checkpoint/file.hpp"
#include "replay/checkpoint/unfinished.hpp"

namespace ebb::replay::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPartial = ".partial";
constexpr std::string_view kOld = ".old";

/// The step of "step-00000120" + suffix.
std::optional<std::int64_t> step_of(std::string_view name, std::string_view suffix) {
  constexpr std::string_view kBegin = "step-";
  if (!name.starts_with(kBegin) || !name.ends_with(suffix)) return std::nullopt;
  const std::string_view digits = name.substr(kBegin.size(), name.size() - kBegin.size() - suffix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (digits.size() < 8 || error != std::errc() || end != digits.data() + digits.size() || step < 0)
    return std::nullopt;
  return step;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_in_use(const std::string& partial) {
  for (const std::string& name : names_in(partial))
    if (is_locked(partial + "/" + name)) return true;
  return false;
}

void remove_quietly(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

void rename_or_throw(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_io_error(from, fmt::format("renaming it to {}", to), errno);
}

/// A checkpoint that cannot be looked at is none that is missing: a resume would begin anew.
bool is_there(const std::string& path) {
  std::error_code error;
  const bool there = fs::exists(path, error);
  if (error && error != std::errc::not_a_directory) throw_io_error(path, "looking at it", error.value());
  return there;
}

/// By step; `step-N.old` where there is no `step-N`. IoError where one cannot be looked at.
std::vector<std::pair<std::int64_t, std::string>> steps_in(const std::string& directory) {
  std::vector<std::pair<std::int64_t, std::string>> steps;
  std::error_code error;
  const fs::directory_iterator readable(directory, error);
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    throw_io_error(directory, "reading the directory", error.value());
  for (const std::string& name : names_in(directory)) {  // "step-N" comes before "step-N.old"
    std::optional<std::int64_t> step = step_of(name, "");
    if (!step) {
      step = step_of(name, kOld);
      if (step && !steps.empty() && steps.back().first == *step) continue;
    }
    const std::string path = directory + "/" + name;
    if (step && is_there(path + "/" + kManifest)) steps.emplace_back(*step, path);
  }
  std::stable_sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return steps;
}

}  // namespace

std::string step_path(const std::string& directory, std::int64_t step) {
  return fmt::format("{}/step-{:08d}", directory, step);
}
std::string partial_path(const std::string& directory, std::int64_t step) {
  return fmt::format("{}{}", step_path(directory, step), kPartial);
}

std::vector<std::string> list(const std::string& directory) {
  std::vector<std::string> paths;
  for (auto& [step, path] : steps_in(directory)) paths.push_back(std::move(path));
  return paths;
}

std::optional<std::int64_t> step_of_name(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const std::optional<std::int64_t> step = step_of(name, "");
  return step ? step : step_of(name, kOld);
}

void require_writable(const std::string& directory) {
  make_directories(directory);
  if (::access(directory.c_str(), W_OK | X_OK) != 0) throw_io_error(directory, "writing into the directory", errno);
}

void require_newest(const std::string& directory, std::int64_t step) {
  const auto steps = steps_in(directory);
  if (steps.empty() || steps.back().first <= step) return;
  const std::string& later = steps.back().second;
  throw InputError({later},
                   step > 0 ? fmt::format("it is of a later step than {}, where this run stands: another run's", step)
                            : "there is a checkpoint of another run already, and this run begins anew",
                   "go on from it with --resume, move it away, or save to another directory");
}

void remove_leftovers(const std::string& directory, std::int64_t step) {
  std::error_code ignored;
  for (const std::string& name : names_in(directory)) {
    const std::string path = directory + "/" + name;
    if (!fs::is_directory(fs::symlink_status(path, ignored))) continue;  // a link is not Ebb's
    const std::optional<std::int64_t> partial = step_of(name, kPartial);
    if (partial && *partial != step && !is_in_use(path)) remove_quietly(path);
    const std::optional<std::int64_t> old = step_of(name, kOld);
    if (old && fs::exists(step_path(directory, *old) + "/" + kManifest, ignored)) remove_quietly(path);
  }
}

void publish(const std::string& directory, std::int64_t step) {
  const std::string partial = partial_path(directory, step);
  const std::string path = step_path(directory, step);
  std::error_code ignored;
  if (!fs::exists(path, ignored) || fs::is_empty(path, ignored)) {  // rename() takes both
    rename_or_throw(partial, path);
    return sync_directory(directory);
  }
  if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    sync_directory(directory);
    remove_quietly(partial);
    return;
  }
  if (errno != EINVAL && errno != ENOSYS) throw_io_error(partial, fmt::format("exchanging it with {}", path), errno);
  const std::string old = fmt::format("{}{}", path, kOld);
  remove_quietly(old);
  rename_or_throw(path, old);
  sync_directory(directory);
  rename_or_throw(partial, path);
  sync_directory(directory);
  remove_quietly(old);
}

void remove_old(const std::string& directory, std::int64_t step, std::size_t keep) {
  const auto steps = steps_in(directory);
  if (keep == 0 || steps.size() <= keep) return;
  for (std::size_t i = 0; i + keep < steps.size(); ++i) {
    if (steps[i].first == step) continue;
    const std::string partial = partial_path(directory, steps[i].first);
    if (is_in_use(partial)) continue;  // another run saves that step now
    remove_quietly(partial);
    const RemovalWaits hold = hold_removal();  // an interrupt lets it end
    if (::rename(steps[i].second.c_str(), partial.c_str()) != 0)
      throw_io_error(steps[i].second, "renaming it, to remove it", errno);
    sync_directory(directory);
    remove_quietly(partial);
  }
}

}  // namespace ebb::replay::checkpoint
