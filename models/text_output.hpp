// Where results go: stdout or a file, all or an IoError. A reader that has closed its end of a pipe wanted no more:
// that is no error, and the rest is lost. Reading is text_file.hpp.
#pragma once

#include <string>

namespace ebb {

/// IoError when not every byte could be written (a full disk). To stdout as terminal_text.hpp says.
void write_stdout(const std::string& text);
void write_text_file(const std::string& path, const std::string& text);

}  // namespace ebb
