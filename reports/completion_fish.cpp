// Completion for fish: one `complete` line for each command, option and argument, on the condition that the words so
// far lead to its command.
#include <fmt/format.h>

#include "reports/command_text.hpp"

namespace ebb::reports {

namespace {

std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return fmt::format("'{}'", out);
}

std::string offers(const CommandValue& value) {
  std::string text;
  if (!value.words.empty()) text += fmt::format(" -a {}", quoted(spaced(value.words)));
  if (value.files == Files::any) text += " -F";
  if (value.files == Files::directories) text += " -a '(__fish_complete_directories)'";
  return text;
}

std::string lines_of(const CommandNode& node, const std::string& begin) {
  std::string text;
  for (const CommandNode& command : node.commands)
    text += fmt::format("{} -a {} -d {}\n", begin, quoted(command.name()), quoted(command.help));
  for (const CommandOption& option : node.options) {
    text += begin;
    for (const std::string& name : option.names)
      text += name.size() == 2 ? fmt::format(" -s {}", name.substr(1)) : fmt::format(" -l {}", name.substr(2));
    if (option.takes_value())
      text += fmt::format(" -{}{}", option.value.files == Files::any ? 'r' : 'x', offers(option.value));
    text += fmt::format(" -d {}\n", quoted(option.help));
  }
  for (const CommandArgument& argument : node.arguments) {
    const std::string what = offers(argument.value);
    if (!what.empty()) text += fmt::format("{}{} -d {}\n", begin, what, quoted(argument.value.name));
  }
  return text;
}

}  // namespace

std::string fish_completion(const CommandNode& root) {
  std::string at = fmt::format("__{}_at", root.path);
  for (char& c : at)
    if (c == '-') c = '_';
  std::string paths;
  for (const CommandNode* node : all_nodes(root)) paths += fmt::format(" {}", quoted(node->path));
  std::string text = fmt::format(
      "# Completion of {0} for fish. For this shell:  {0} completion fish | source\n\n"
      "function {1} --description 'whether the words so far lead to this command'\n"
      "    set -l path {0}\n"
      "    for word in (commandline -opc)[2..-1]\n"
      "        contains -- \"$path $word\"{2}\n"
      "        and set path \"$path $word\"\n"
      "    end\n"
      "    test \"$path\" = \"$argv\"\n"
      "end\n\n"
      "complete -c {0} -f\n",
      root.path, at, paths);
  for (const CommandNode* node : all_nodes(root))
    text += lines_of(*node, fmt::format("complete -c {} -n '{} {}'", root.path, at, node->path));
  return text;
}

}  // namespace ebb::reports
