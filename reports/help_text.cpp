// `--help` for a terminal: at most 100 columns, names on the left, what they are on the right.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "reports/command_text.hpp"

namespace ebb::reports {

namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kNames = 24;  // a longer name has its help on the next line

/// `text` in lines that end before column 100; all but the first begin with `indent` blanks. `at`: where the first
/// begins.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t at) {
  std::string out;
  std::istringstream words(text);
  bool first_of_line = true;
  for (std::string word; words >> word;) {
    if (!first_of_line && at + 1 + word.size() > kColumns) {
      out.append("\n").append(indent, ' ');
      at = indent;
      first_of_line = true;
    }
    if (!first_of_line) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
    first_of_line = false;
  }
  return out;
}

std::string entry(const std::string& name, const std::string& help) {
  std::string line = fmt::format("  {}", name);
  constexpr std::size_t kHelpAt = 2 + kNames;
  if (help.empty()) return line + "\n";
  if (name.size() + 1 > kNames) line.append("\n").append(kHelpAt, ' ');
  line.resize(std::max(line.size(), kHelpAt), ' ');
  return fmt::format("{}{}\n", line, wrapped(help, kHelpAt, kHelpAt));
}

std::string arguments_of(const CommandNode& node) {
  if (node.arguments.empty()) return "";
  std::string text = "\nArguments:\n";
  for (const CommandArgument& argument : node.arguments)
    text += entry(argument.value.name, described(argument.help, argument.value));
  return text;
}

std::string commands_of(const CommandNode& node) {
  if (node.commands.empty()) return "";
  std::string text = "\nCommands:\n";
  for (const CommandNode& command : node.commands) text += entry(command.name(), command.help);
  return text;
}

/// Those without a group, then each group in the order of its first option.
std::string options_of(const CommandNode& node) {
  std::vector<std::string> groups = {""};
  for (const CommandOption& option : node.options)
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  std::string text;
  for (const std::string& group : groups) {
    std::string entries;
    for (const CommandOption& option : node.options)
      if (option.group == group) entries += entry(spelled(option), described(option.help, option.value));
    if (!entries.empty()) text += fmt::format("\n{}:\n{}", group.empty() ? "Options" : group, entries);
  }
  return text;
}

std::string examples_of(const CommandNode& node) {
  if (node.examples.empty()) return "";
  std::string text = node.examples.size() == 1 ? "\nExample:\n" : "\nExamples:\n";
  for (const std::string& example : node.examples) text += fmt::format("  {}\n", example);
  return text;
}

}  // namespace

std::string help_text(const CommandTree& tree, const CommandNode& node) {
  std::string text = wrapped(node.help + ".", 0, 0) + "\n\n";
  text += wrapped(fmt::format("Usage: {} {}", node.path, synopsis(node)), 7, 0) + "\n";
  text += arguments_of(node) + commands_of(node) + options_of(node) + examples_of(node);
  std::string statuses = "Exit status:";
  for (const NamedText& status : exit_statuses(tree, node))
    statuses += fmt::format("{} {} {}", status.name == "0" ? "" : ",", status.name, status.text);
  return text + fmt::format("\n{}\n", wrapped(statuses + ".", 0, 0));
}

}  // namespace ebb::reports
