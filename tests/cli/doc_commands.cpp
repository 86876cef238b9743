#include "tests/cli/doc_commands.hpp"

#include <array>
#include <sstream>

namespace ebb::test {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool begins_as_command(const std::string& text) {
  for (const char* begin : {"ebb ", "ebb-replay ", "./run ", "source <(ebb "})
    if (text.rfind(begin, 0) == 0) return true;
  return false;
}

/// One fenced block: its commands, each with what it prints where it begins with "$".
std::vector<DocCommand> commands_of(const std::vector<std::string>& block, int first_line) {
  std::vector<DocCommand> commands;
  bool printing = false;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const std::string& text = block[i];
    const int line = first_line + static_cast<int>(i);
    if (text.rfind("$ ", 0) == 0) {
      const std::optional<DocCommand> command = doc_command(text.substr(2), line);
      printing = command.has_value();
      if (!command) continue;
      commands.push_back(*command);
      commands.back().prints = "";
    } else if (printing) {
      *commands.back().prints += text + "\n";
    } else if (const std::optional<DocCommand> command = doc_command(text, line)) {
      commands.push_back(*command);
    }
  }
  // A command alone shows nothing of its output.
  for (DocCommand& command : commands)
    if (command.prints && command.prints->find_first_not_of('\n') == std::string::npos) command.prints.reset();
  return commands;
}

}  // namespace

std::optional<DocCommand> doc_command(const std::string& text, int line) {
  if (!begins_as_command(text)) return std::nullopt;
  DocCommand command;
  command.line = line;
  const std::size_t comment = text.find(" # ");
  command.command = text.substr(0, comment);
  command.command.erase(command.command.find_last_not_of(' ') + 1);
  if (comment == std::string::npos) return command;
  const std::string says = text.substr(comment + 3);
  command.gpu = says.rfind("GPU", 0) == 0;
  constexpr std::string_view kExits = "exits ";
  if (says.rfind(kExits, 0) == 0) command.exits = std::stoi(says.substr(kExits.size()));
  return command;
}

std::vector<DocCommand> doc_commands(const std::string& markdown) {
  const std::vector<std::string> lines = lines_of(markdown);
  std::vector<DocCommand> commands;
  std::string between;  // text since the last block
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].rfind("```", 0) != 0) {
      between += lines[i];
      continue;
    }
    const bool plain = lines[i] == "```" || lines[i] == "```sh";
    std::vector<std::string> block;
    const int first = static_cast<int>(i) + 2;
    for (++i; i < lines.size() && lines[i] != "```"; ++i) block.push_back(lines[i]);
    if (plain && between == "prints" && !commands.empty()) {
      std::string text;
      for (const std::string& line : block) text += line + "\n";
      commands.back().prints = text;
    } else if (plain) {
      const std::vector<DocCommand> of_block = commands_of(block, first);
      commands.insert(commands.end(), of_block.begin(), of_block.end());
    }
    between.clear();
  }
  return commands;
}

std::vector<DocCommand> help_examples(const std::string& help) {
  std::vector<DocCommand> commands;
  bool inside = false;
  int number = 0;
  for (const std::string& line : lines_of(help)) {
    ++number;
    if (line == "Example:" || line == "Examples:")
      inside = true;
    else if (line.rfind("  ", 0) != 0)
      inside = false;
    else if (inside)
      commands.push_back(
          doc_command(line.substr(2), number).value_or(DocCommand{number, line.substr(2), false, 0, std::nullopt}));
  }
  return commands;
}

bool prints_as(const std::string& text, const std::string& pattern) {
  constexpr std::string_view kGap = "...\n";
  std::size_t at = 0;
  std::size_t begin = 0;
  bool anywhere = false;  // a gap stands before this piece
  while (begin <= pattern.size()) {
    std::size_t gap = begin;
    while (gap < pattern.size() &&
           !(pattern.compare(gap, kGap.size(), kGap) == 0 && (gap == 0 || pattern[gap - 1] == '\n')))
      ++gap;
    const std::string piece = pattern.substr(begin, gap - begin);
    const bool last = gap >= pattern.size();
    std::size_t found = at;
    if (anywhere) {
      found = last && piece.empty() ? text.size() : text.find(piece, at);
      if (last && !piece.empty() && text.size() >= piece.size()) found = text.size() - piece.size();
      if (found == std::string::npos || found < at) return false;
    }
    if (text.compare(found, piece.size(), piece) != 0) return false;
    at = found + piece.size();
    if (last) return at == text.size();
    begin = gap + kGap.size();
    anywhere = true;
  }
  return false;
}

}  // namespace ebb::test
