// Runs a launch script as far as it can be known without running anything: assignments, arrays, exports, conditions on
// texts and numbers. What it calls is not called; each simple command is kept with its words expanded.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/shell_variables.hpp"

namespace ebb {

struct ShellScript {
  std::vector<std::vector<ShellText>> commands;
  std::map<std::string, std::string> environment;  // exported, or set in front of a command
};

/// Loops and functions run once, as they stand. Conditions that are not about texts, numbers and files count as false,
/// and no file exists. InputError: what lex_shell and ShellVariables refuse, and if/case without an end.
ShellScript run_shell(std::string_view text, const std::string& file);

}  // namespace ebb
