// What help, manual and completions share.
#include "reports/command_text.hpp"

namespace ebb::reports {

std::string spaced(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

std::string listed(const CommandValue& value) {
  std::string text;
  for (std::size_t i = 0; i < value.words.size(); ++i) {
    if (i > 0) text += i + 1 < value.words.size() ? ", " : " or ";
    text += value.words[i];
  }
  return text;
}

std::string spelled(const CommandOption& option) {
  std::string text;
  for (const std::string& name : option.names) text.append(text.empty() ? "" : ", ").append(name);
  if (option.takes_value()) text.append(" ").append(option.value.name);
  return text;
}

std::string synopsis(const CommandNode& node) {
  std::string text = node.options.empty() ? "" : "[OPTIONS]";
  const auto add = [&text](const std::string& word) { text.append(text.empty() ? "" : " ").append(word); };
  for (const CommandArgument& argument : node.arguments) {
    std::string word = argument.value.name;
    if (argument.repeated) word += "...";
    add(argument.required ? word : "[" + word + "]");
  }
  if (node.commands.empty()) return text;
  // A command that does something without a subcommand says so by taking an example of its own name.
  add("COMMAND ...");
  return text;
}

std::vector<NamedText> exit_statuses(const CommandTree& tree, const CommandNode& node) {
  std::vector<NamedText> statuses = {{"0", "answered"}};
  if (!node.exit_one.empty()) statuses.push_back({"1", node.exit_one});
  statuses.push_back({"2", "bad input"});
  statuses.push_back({"3", tree.failure});
  statuses.push_back({"130", "interrupted"});
  return statuses;
}

std::string described(const std::string& help, const CommandValue& value) {
  return value.only_words ? help + ": " + listed(value) : help;
}

std::vector<const CommandNode*> all_nodes(const CommandNode& root) {
  std::vector<const CommandNode*> nodes = {&root};
  for (const CommandNode& command : root.commands) {
    const std::vector<const CommandNode*> below = all_nodes(command);
    nodes.insert(nodes.end(), below.begin(), below.end());
  }
  return nodes;
}

}  // namespace ebb::reports
