// Where results go: stdout or a file, all or an IoError. Reading is text_file.hpp.
#pragma once

#include <string>

namespace ebb {

/// IoError when not every byte could be written (a closed pipe, a full disk).
void write_stdout(const std::string& text);
void write_text_file(const std::string& path, const std::string& text);

}  // namespace ebb
