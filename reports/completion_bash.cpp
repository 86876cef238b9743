// Completion for bash (3.2 and later, without the bash-completion package). One function looks up what may follow
// (the table), the other walks the words so far to where the cursor is. Keys of the table:
//
//   "ebb plan"         a command: its subcommands      "ebb plan #-"   its options
//   "ebb plan --set"   an option with a value          "ebb plan #2"   its second argument; "#*": all that follow
#include <fmt/format.h>

#include "reports/command_text.hpp"

namespace ebb::reports {

namespace {

std::string offers(const std::string& key, const CommandValue& value) {
  std::string does;
  if (!value.words.empty()) does += fmt::format(" words='{}'", spaced(value.words));
  if (value.files != Files::none) does += value.files == Files::directories ? " files=-d" : " files=-f";
  return fmt::format("    '{}'){} ;;\n", key, does);
}

std::string table_of(const CommandNode& node) {
  std::vector<std::string> names, commands;
  std::string text;
  for (const CommandOption& option : node.options)
    for (const std::string& name : option.names) {
      names.push_back(name);
      if (option.takes_value()) text += offers(fmt::format("{} {}", node.path, name), option.value);
    }
  for (const CommandNode& command : node.commands) commands.push_back(command.name());
  const auto words = [](const std::vector<std::string>& list) { return CommandValue{{}, list, true, Files::none}; };
  text += offers(node.path, words(commands));
  text += offers(node.path + " #-", words(names));
  for (std::size_t i = 0; i < node.arguments.size(); ++i) {
    const CommandArgument& argument = node.arguments[i];
    text += offers(fmt::format("{} #{}", node.path, i + 1), argument.value);
    if (argument.repeated) text += offers(node.path + " #*", argument.value);
  }
  return text;
}

constexpr const char* kWalk = R"sh(
@() {
  local cur=${COMP_WORDS[COMP_CWORD]} command=PROGRAM option= argument=0 i=0 word words= files=
  COMPREPLY=()
  while ((++i < COMP_CWORD)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -* ]]; then
      if @_table "$command $word"; then
        ((++i))
        [[ ${COMP_WORDS[i]} == = ]] && ((++i))
        ((i >= COMP_CWORD)) && option=$word
      fi
    elif @_table "$command $word"; then
      command+=" $word"
    else
      ((++argument))
    fi
  done
  words= files=
  [[ $cur == = ]] && cur=
  if [[ -n $option ]]; then
    @_table "$command $option"
  elif [[ $cur == -* ]]; then
    @_table "$command #-"
  else
    @_table "$command" && [[ -n $words ]] && ((argument == 0)) ||
      @_table "$command #$((argument + 1))" || @_table "$command #*"
  fi
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$words" -- "$cur")
  [[ -z $files ]] && return
  compopt -o filenames 2>/dev/null
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen "$files" -- "$cur")
}
complete -F @ PROGRAM
)sh";

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

}  // namespace

std::string bash_completion(const CommandNode& root) {
  std::string function = fmt::format("_{}", root.path);
  for (char& c : function)
    if (c == '-') c = '_';
  std::string text = fmt::format(
      "# Completion of {0} for bash. For this shell:  source <({0} completion bash)\n\n"
      "{1}_table() {{\n  words= files=\n  case $1 in\n",
      root.path, function);
  for (const CommandNode* node : all_nodes(root)) text += table_of(*node);
  text += "    *) return 1 ;;\n  esac\n}\n";
  return text + replaced(replaced(kWalk, "@", function), "PROGRAM", root.path);
}

}  // namespace ebb::reports
