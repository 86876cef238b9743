// Where results go: stdout or a file, all or an IoError. Nothing else is ever written to stdout.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ebb::cli {

/// As in models/text_output.hpp.
void write_stdout(const std::string& text);
void write_file(const std::string& path, const std::string& text);

/// What a command reads, and under which option it writes. Files that are not there and empty names are passed over.
struct Output {
  const char* option;
  std::optional<std::string> file;
};
/// InputError where an output is an input, or two outputs are one file: nothing is lost to a mistyped name.
void check_outputs(const std::vector<std::string>& inputs, const std::vector<Output>& outputs);

}  // namespace ebb::cli
