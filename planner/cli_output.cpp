#include "planner/cli_output.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "models/errors.hpp"
#include "models/text_output.hpp"

namespace ebb::cli {

namespace fs = std::filesystem;

namespace {

/// Devices (/dev/null) may be written as often as one likes.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code failed;
  if (fs::exists(a, failed) && !fs::is_regular_file(a, failed)) return false;
  if (fs::equivalent(a, b, failed) && !failed) return true;
  return fs::weakly_canonical(a, failed) == fs::weakly_canonical(b, failed);
}

}  // namespace

void write_stdout(const std::string& text) { ebb::write_stdout(text); }
void write_file(const std::string& path, const std::string& text) { write_text_file(path, text); }

void check_outputs(const std::vector<std::string>& inputs, const std::vector<Output>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].file) continue;
    for (const std::string& input : inputs)
      if (!input.empty() && same_file(*outputs[i].file, input))
        throw InputError({outputs[i].option}, fmt::format("{} is read, and would be lost", input), "name another file");
    for (std::size_t j = 0; j < i; ++j)
      if (outputs[j].file && same_file(*outputs[i].file, *outputs[j].file))
        throw InputError({outputs[i].option}, fmt::format("{} also goes to {}", outputs[j].option, *outputs[i].file),
                         "name another file");
  }
}

}  // namespace ebb::cli
