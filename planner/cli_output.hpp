// Where results go: stdout or a file, all or an IoError. Nothing else is ever written to stdout.
#pragma once

#include <string>

namespace ebb::cli {

/// IoError when not every byte could be written (a closed pipe, a full disk).
void write_stdout(const std::string& text);
void write_file(const std::string& path, const std::string& text);

}  // namespace ebb::cli
