// What a program takes on its command line, as plain data: the commands, their options and arguments, examples. Help
// texts, manual pages and completions are written from it (command_text.hpp), so that none of them can forget an
// option. Not here: how it is parsed (command_line.hpp).
#pragma once

#include <string>
#include <vector>

namespace ebb::reports {

/// What the shell offers for a value beside words.
enum class Files { none, any, directories };

/// A value of an option, or an argument without one.
struct CommandValue {
  std::string name;                // as help shows it: "SIZE", "JOB"
  std::vector<std::string> words;  // that it can be: all of them, or names of the library
  bool only_words = false;         // nothing but these
  Files files = Files::none;
};

struct CommandOption {
  std::vector<std::string> names;  // "-o", "--json"
  CommandValue value;              // without a name: a flag
  std::string help;
  std::string group;  // heading in the help; "": among the others
  bool repeated = false;

  bool takes_value() const { return !value.name.empty(); }
};

struct CommandArgument {
  CommandValue value;
  std::string help;
  bool required = false;
  bool repeated = false;
};

struct CommandNode {
  std::string path;  // "ebb plan"
  std::string help;  // a sentence without its full stop
  std::vector<CommandArgument> arguments;
  std::vector<CommandOption> options;
  std::vector<CommandNode> commands;
  std::vector<std::string> examples;  // whole command lines
  std::string exit_one;               // when it exits with 1, e.g. "nothing fits"; "": never

  /// "plan": the last word of the path.
  std::string name() const { return path.substr(path.rfind(' ') + 1); }
};

struct NamedText {
  std::string name;
  std::string text;
};

struct CommandTree {
  CommandNode root;
  std::string version;  // "ebb 0.1.0"
  std::string failure;  // what exit status 3 means: "the machine failed (files, memory)"
  std::vector<NamedText> environment;
  std::vector<NamedText> files;
};

}  // namespace ebb::reports
