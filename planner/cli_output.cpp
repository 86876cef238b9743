#include "planner/cli_output.hpp"

#include "models/text_output.hpp"

namespace ebb::cli {

void write_stdout(const std::string& text) { ebb::write_stdout(text); }
void write_file(const std::string& path, const std::string& text) { write_text_file(path, text); }

}  // namespace ebb::cli
