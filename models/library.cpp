#include "models/library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "models/nearest.hpp"

namespace ebb {

namespace {

namespace fs = std::filesystem;

/// Where an installed program has it, wherever the installation was moved to: bin/ebb, share/ebb. "": not there.
fs::path library_beside_program() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const fs::path library = program.parent_path().parent_path() / "share" / "ebb";
  return fs::is_directory(library / "clusters", error) ? library : fs::path();
}

fs::path library_root() {
  const char* chosen = std::getenv("EBB_LIBRARY");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  std::error_code error;
  static const fs::path beside = library_beside_program();
  if (!beside.empty()) return beside;
  if (fs::is_directory(EBB_SOURCE_LIBRARY, error)) return EBB_SOURCE_LIBRARY;
  return EBB_INSTALLED_LIBRARY;
}

const char* directory_of(Library kind) {
  switch (kind) {
    case Library::models:
      return "llm";
    case Library::clusters:
      return "clusters";
    case Library::jobs:
      return "jobs";
  }
  return "";
}

std::string library_cure(std::string_view word, const std::vector<std::string>& names, const std::string& kind) {
  if (!names.empty()) return did_you_mean(word, names, kind);
  return fmt::format("the library {} has none: set EBB_LIBRARY, or give a path", library_root().string());
}

bool is_path(std::string_view reference) {
  if (reference.find('/') != std::string_view::npos) return true;
  const std::string extension = fs::path(reference).extension().string();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

}  // namespace

std::string_view name_of(Library kind) {
  switch (kind) {
    case Library::models:
      return "model";
    case Library::clusters:
      return "cluster";
    case Library::jobs:
      return "job";
  }
  return "";
}

std::vector<std::string> library_names(Library kind) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(library_root() / directory_of(kind), error))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

fs::path library_path(Library kind, std::string_view name) {
  return library_root() / directory_of(kind) / (std::string(name) + ".yaml");
}

fs::path resolve(Library kind, std::string_view reference, const fs::path& directory, const Place& place) {
  const std::string shown(reference.substr(0, 100));
  const std::vector<std::string> names = library_names(kind);
  std::error_code error;
  if (is_path(reference)) {
    if (fs::path(reference).extension() == ".json" && kind != Library::models)
      throw InputError(place, fmt::format("\"{}\": JSON is not read as a {}", shown, name_of(kind)),
                       "write its figures as YAML");
    const fs::path path = directory / fs::path(reference);
    if (fs::exists(path, error)) return path;
    const std::string stem = fs::path(reference).stem().string();
    throw InputError(place, fmt::format("there is no file \"{}\"", path.string()),
                     library_cure(stem, names, fmt::format("{}s in the library", name_of(kind))));
  }
  if (std::find(names.begin(), names.end(), reference) != names.end()) return library_path(kind, reference);
  throw InputError(place, fmt::format("unknown {} \"{}\"", name_of(kind), shown),
                   library_cure(reference, names, fmt::format("{}s", name_of(kind))));
}

}  // namespace ebb
