// Completion for zsh: one function for each command, which hands its options and arguments to _arguments.
#include <fmt/format.h>

#include "reports/command_text.hpp"

namespace ebb::reports {

namespace {

/// Inside single quotes, and inside the brackets or between the colons of a spec.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      out.append("\\").push_back(c);
    else
      out += c;
  }
  return out;
}

std::string function_of(const std::string& path) {
  std::string name = fmt::format("_{}", path);
  for (char& c : name)
    if (c == ' ') c = '_';  // hyphens stay: "ebb replay" is not "ebb-replay"
  return name;
}

/// ":NAME:action". `helper`: where names of the library and files are offered together.
std::string action_of(const CommandValue& value, const std::string& helper) {
  std::string action = " ";
  if (!value.words.empty() && value.files != Files::none)
    action = fmt::format("{}_{}", helper, value.name);
  else if (!value.words.empty())
    action = fmt::format("({})", spaced(value.words));
  else if (value.files != Files::none)
    action = value.files == Files::directories ? "_files -/" : "_files";
  return fmt::format(":{}:{}", escaped(value.name), action);
}

std::string option_specs(const CommandOption& option, const std::string& helper) {
  std::string all;
  for (const std::string& name : option.names) all.append(all.empty() ? "" : " ").append(name);
  std::string text;
  for (const std::string& name : option.names) {
    const std::string before = option.repeated ? "*" : fmt::format("({})", all);
    const bool equals = option.takes_value() && name.size() > 2;
    text += fmt::format(" \\\n    '{}{}{}[{}]{}'", before, name, equals ? "=" : "", escaped(option.help),
                        option.takes_value() ? action_of(option.value, helper) : "");
  }
  return text;
}

std::string dispatch(const CommandNode& node) {
  std::string text = "  case $state in\n    command)\n      commands=(\n";
  for (const CommandNode& command : node.commands)
    text += fmt::format("        '{}:{}'\n", command.name(), escaped(command.help));
  text += "      )\n      _describe -t commands command commands ;;\n    rest)\n      case $words[1] in\n";
  for (const CommandNode& command : node.commands)
    text += fmt::format("        {}) {} ;;\n", command.name(), function_of(command.path));
  return text + "      esac ;;\n  esac\n";
}

std::string function_text(const CommandNode& node, const std::string& helper) {
  std::string specs;
  for (const CommandOption& option : node.options) specs += option_specs(option, helper);
  for (std::size_t i = 0; i < node.arguments.size(); ++i) {
    const CommandArgument& argument = node.arguments[i];
    const std::string place = argument.repeated ? "*" : fmt::format("{}{}", i + 1, argument.required ? "" : ":");
    specs += fmt::format(" \\\n    '{}{}'", place, action_of(argument.value, helper));
  }
  std::string text = function_of(node.path) + "() {\n";
  if (node.commands.empty()) return text + fmt::format("  _arguments -s{}\n}}\n\n", specs);
  text += "  local curcontext=$curcontext context state state_descr line commands\n  typeset -A opt_args\n";
  text += fmt::format("  _arguments -C -s{} \\\n    '1:command:->command' \\\n    '*::argument:->rest'\n", specs);
  return text + dispatch(node) + "}\n\n";
}

/// Values for which names and files are offered together.
std::string helpers(const CommandNode& root, const std::string& helper) {
  std::vector<const CommandValue*> values;
  const auto add = [&values](const CommandValue& value) {
    if (value.words.empty() || value.files == Files::none) return;
    for (const CommandValue* known : values)
      if (known->name == value.name) return;
    values.push_back(&value);
  };
  for (const CommandNode* node : all_nodes(root)) {
    for (const CommandOption& option : node->options) add(option.value);
    for (const CommandArgument& argument : node->arguments) add(argument.value);
  }
  std::string text;
  for (const CommandValue* value : values)
    text += fmt::format("{0}_{1}() {{\n  _alternative 'names:{1}:({2})' 'files:file:_files'\n}}\n\n", helper,
                        value->name, spaced(value->words));
  return text;
}

}  // namespace

std::string zsh_completion(const CommandNode& root) {
  const std::string main = function_of(root.path);
  const std::string helper = main + "_offer";
  std::string text = fmt::format(
      "#compdef {0}\n# Completion of {0} for zsh. For this shell:  source <({0} completion zsh)\n\n", root.path);
  text += helpers(root, helper);
  for (const CommandNode* node : all_nodes(root)) text += function_text(*node, helper);
  // In a file of $fpath this text is the function's body; sourced, it has to be registered.
  return text +
         fmt::format("if [[ $funcstack[1] == {0} ]]; then {0} \"$@\"; else compdef {0} {1}; fi\n", main, root.path);
}

}  // namespace ebb::reports
