// What `ebb` and `ebb-replay` both want of a command line beyond CLI11: "did you mean" for commands, options and words;
// `help COMMAND`; help, manual and completions from one tree. Includes CLI11: only for the files that declare
// options.
//
// An option's type says what its value is: "SIZE", or "WHAT:step|memory" for one of these words. FILE, DIR, JOB,
// MODEL, CLUSTER and a few more names tell the shell what to offer (command_line.cpp). The footer of a command holds
// its examples, a line each, and what its exit status 1 means:
//
//   Example: ebb plan models/jobs/llama3-8b-hgx-h200.yaml
//   Exit 1: nothing fits
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/command_tree.hpp"

namespace ebb::reports {

/// Of the whole program.
struct ProgramFacts {
  std::string version;
  std::string failure;
  std::vector<NamedText> environment;
  std::vector<NamedText> files;
};

/// To be called before commands are added: they inherit the form of the help.
void prepare(CLI::App& app, const ProgramFacts& facts);

/// `option` takes one of these words, called `name` in the help; another is answered with the nearest.
void limit_to(CLI::Option& option, const char* name, const std::vector<std::string>& words);
template <class Range>
std::vector<std::string> words_of(const Range& range) {
  std::vector<std::string> words;
  for (const auto& word : range) words.emplace_back(word);
  return words;
}

/// Once all commands are there: completion and help of their argument COMMAND know their names.
void name_commands(CLI::App& app);

CommandTree tree_of(const CLI::App& app, const ProgramFacts& facts);

/// `completion SHELL` and `man [COMMAND]`. InputError for a shell or command that there is not.
std::string completion_of(const CommandTree& tree, const std::string& shell);
std::string man_page_of(const CommandTree& tree, const std::optional<std::string>& command);

/// Parses; the text where the arguments only ask for one (`--help`, `help COMMAND`, `--version`). InputError for
/// anything that is not a complete command line.
std::optional<std::string> parse_words(CLI::App& app, std::span<const std::string> arguments);

}  // namespace ebb::reports
