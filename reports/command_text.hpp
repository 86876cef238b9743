// A command line written for people and for shells: help texts, manual pages, completions. All of them from the same
// data (command_tree.hpp) and without the clock: the same program, the same text.
#pragma once

#include <string>

#include "reports/command_tree.hpp"

namespace ebb::reports {

/// At most 100 columns wide.
std::string help_text(const CommandTree& tree, const CommandNode& node);

/// roff with the man macros.
std::string man_page(const CommandTree& tree, const CommandNode& node);

/// To be sourced by the shell, or put where it looks for completions.
std::string bash_completion(const CommandNode& root);
std::string zsh_completion(const CommandNode& root);
std::string fish_completion(const CommandNode& root);

// What these share.

/// With blanks between.
std::string spaced(const std::vector<std::string>& words);
/// "step, memory or balanced"; "" without words.
std::string listed(const CommandValue& value);
/// "-o FILE", "--json".
std::string spelled(const CommandOption& option);
/// "[OPTIONS] JOB [FILE]...".
std::string synopsis(const CommandNode& node);
/// Exit statuses and what they mean, 0 first.
std::vector<NamedText> exit_statuses(const CommandTree& tree, const CommandNode& node);
/// The help of an option or argument with the words that it can be.
std::string described(const std::string& help, const CommandValue& value);
/// Those without subcommands and those with, depth first, parents before children.
std::vector<const CommandNode*> all_nodes(const CommandNode& root);

}  // namespace ebb::reports
