// The commands that help texts and documents show. In a document they stand in fenced blocks without a language:
//
//   ```
//   $ ebb models list                      `$ COMMAND`: the lines below are what it prints, `...` for lines left out
//   name               parameters
//   ...
//   ```
//
// or a line begins with `ebb `, `ebb-replay ` or `./run `. A paragraph "prints" between two blocks says that the second
// is what the first's last command prints. A comment at the end may say `# GPU ...` (the command is parsed, not run) or
// `# exits N ...`. Other lines, and blocks with a language, are no commands.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ebb::test {

struct DocCommand {
  int line = 0;         // in its document, from 1
  std::string command;  // shell syntax, without its comment
  bool gpu = false;
  int exits = 0;
  std::optional<std::string> prints;  // "...\n" stands for lines left out

  bool operator==(const DocCommand&) const = default;
};

/// Of a line of a block, or of an example of a help text; nullopt: no command.
std::optional<DocCommand> doc_command(const std::string& text, int line);
std::vector<DocCommand> doc_commands(const std::string& markdown);

/// The lines below "Example:" or "Examples:" of a help text.
std::vector<DocCommand> help_examples(const std::string& help);

/// Whether `text` is `pattern`, in which a line "..." stands for any lines.
bool prints_as(const std::string& text, const std::string& pattern);

}  // namespace ebb::test
