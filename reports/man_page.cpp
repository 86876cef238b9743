// A manual page in roff, with the man macros. Text is escaped; hyphens of options are \- so that they can be copied.
#include <fmt/format.h>

#include <algorithm>

#include "reports/command_text.hpp"

namespace ebb::reports {

namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  if (!out.empty() && (out.front() == '.' || out.front() == '\'')) out.insert(0, "\\&");
  return out;
}

/// A macro's argument.
std::string argument(const std::string& text) {
  std::string out;
  for (const char c : escaped(text)) out += c == '"' ? std::string("\\(dq") : std::string(1, c);
  return fmt::format("\"{}\"", out);
}

std::string section(const char* title, const std::string& body) {
  return body.empty() ? "" : fmt::format(".SH {}\n{}", title, body);
}

std::string entry(const std::string& title, const std::string& text) {
  return fmt::format(".TP\n.B {}\n{}\n", argument(title), escaped(text));
}

std::string sentence(std::string text) {
  if (text.empty()) return text;
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text + ".";
}

std::string options_of(const CommandNode& node) {
  std::string text;
  for (const CommandArgument& a : node.arguments) text += entry(a.value.name, sentence(described(a.help, a.value)));
  for (const CommandOption& o : node.options) text += entry(spelled(o), sentence(described(o.help, o.value)));
  return text;
}

std::string examples_of(const CommandNode& node) {
  if (node.examples.empty()) return "";
  std::string text = ".EX\n";
  for (const std::string& example : node.examples) text += escaped(example) + "\n";
  return text + ".EE\n";
}

std::string named(const std::vector<NamedText>& list) {
  std::string text;
  for (const NamedText& item : list) text += entry(item.name, sentence(item.text));
  return text;
}

/// "ebb-plan": how a page is called.
std::string page_of(const CommandNode& node) {
  std::string name = node.path;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string description_of(const CommandTree& tree, const CommandNode& node) {
  std::string text = escaped(sentence(node.help)) + "\n";
  if (!node.commands.empty()) text += ".PP\nIts commands:\n";
  for (const CommandNode& command : node.commands) text += entry(command.name(), sentence(command.help));
  return text + ".PP\n" +
         escaped(fmt::format(
             "Results go to standard output, everything else to standard error. \"{} help COMMAND\" has the "
             "short form of this page.",
             tree.root.path)) +
         "\n";
}

std::string see_also(const CommandTree& tree, const CommandNode& node) {
  const bool root = &node == &tree.root;
  std::string text;
  for (const CommandNode& command : root ? tree.root.commands : std::vector<CommandNode>{})
    if (command.name() != "help")
      text += fmt::format("{}.BR {} (1)", text.empty() ? "" : " ,\n", argument(page_of(command)));
  return root ? text + "\n" : fmt::format(".BR {} (1)\n", argument(tree.root.path));
}

}  // namespace

std::string man_page(const CommandTree& tree, const CommandNode& node) {
  const std::string page = page_of(node);
  std::string title = page;
  for (char& c : title)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  std::string text = fmt::format(".TH {} 1 \"\" {} \"User Commands\"\n", argument(title), argument(tree.version));
  text += section("NAME", fmt::format("{} \\- {}\n", escaped(page), escaped(node.help)));
  text += section("SYNOPSIS", fmt::format(".B {}\n{}\n", argument(node.path), escaped(synopsis(node))));
  text += section("DESCRIPTION", description_of(tree, node));
  text += section("OPTIONS", options_of(node));
  text += section("EXAMPLES", examples_of(node));
  text += section("EXIT STATUS", named(exit_statuses(tree, node)));
  text += section("ENVIRONMENT", named(tree.environment));
  text += section("FILES", named(tree.files));
  return text + section("SEE ALSO", see_also(tree, node));
}

}  // namespace ebb::reports
