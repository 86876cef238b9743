#include "reports/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "models/errors.hpp"
#include "models/library.hpp"
#include "models/nearest.hpp"
#include "reports/command_text.hpp"

namespace ebb::reports {

namespace {

constexpr const char* kEverywhere = "Everywhere";

std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : fmt::format("{} {}", path_of(*parent), app.get_name());
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

/// What the shell offers for a value of this name.
void add_offers(CommandValue& value) {
  const auto is = [&value](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&value](const char* name) { return value.name == name; });
  };
  if (is({"JOB"})) value.words = library_names(Library::jobs);
  if (is({"MODEL"})) value.words = library_names(Library::models);
  if (is({"CLUSTER"})) value.words = library_names(Library::clusters);
  if (is({"JOB", "MODEL", "CLUSTER", "FILE", "FILES", "PATH", "LOG", "PLAN", "LIFE", "PREDICTED", "MEASURED"}))
    value.files = Files::any;
  if (is({"DIR"})) value.files = Files::directories;
}

/// `type` as command_line.hpp says; `name` where it has none.
CommandValue value_of(const std::string& type, const std::string& name) {
  CommandValue value;
  // "WHAT:one|two"; the colons of "STEP:RANK" mean nothing.
  const std::size_t colon = type.find('|') == std::string::npos ? std::string::npos : type.find(':');
  value.name = type.substr(0, colon);
  if (value.name.empty()) value.name = name;
  if (colon != std::string::npos) {
    value.words = split(type.substr(colon + 1), '|');
    value.only_words = true;
  } else {
    add_offers(value);
  }
  return value;
}

CommandOption option_of(const CLI::Option& option, bool everywhere) {
  CommandOption o;
  for (const std::string& name : option.get_snames()) o.names.push_back(fmt::format("-{}", name));
  for (const std::string& name : option.get_lnames()) o.names.push_back(fmt::format("--{}", name));
  const bool flag = option.get_items_expected_max() == 0;
  if (!flag) o.value = value_of(option.get_type_name(), "VALUE");
  o.help = option.get_description();
  o.group = everywhere ? kEverywhere : option.get_group() == "Options" ? "" : option.get_group();
  o.repeated = !flag && option.get_expected_max() > 1;
  return o;
}

void read_footer(const std::string& footer, CommandNode& node) {
  for (std::string line : split(footer, '\n')) {
    for (const char* label : {"Examples:", "Example:"})
      if (line.starts_with(label)) line = line.substr(std::string_view(label).size());
    line.erase(0, line.find_first_not_of(' '));
    constexpr std::string_view kExit = "Exit 1: ";
    if (line.starts_with(kExit))
      node.exit_one = line.substr(kExit.size());
    else if (!line.empty())
      node.examples.push_back(line);
  }
}

CommandNode node_of(const CLI::App& app) {
  CommandNode node;
  node.path = path_of(app);
  node.help = app.get_description();
  read_footer(app.get_footer(), node);
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      CommandArgument a;
      a.value = value_of(option->get_type_name(), option->get_name(true));
      a.help = option->get_description();
      a.required = option->get_required();
      a.repeated = option->get_expected_max() > 1;
      node.arguments.push_back(std::move(a));
    } else if (option != app.get_help_ptr()) {
      node.options.push_back(option_of(*option, option->get_group() == kEverywhere));
    }
  }
  for (const CLI::App* command : commands_of(app)) node.commands.push_back(node_of(*command));
  if (app.get_help_ptr() != nullptr) node.options.push_back(option_of(*app.get_help_ptr(), true));
  return node;
}

/// The command that the arguments had reached.
const CLI::App& deepest(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? app : deepest(*parsed.back());
}

bool looks_like_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

[[noreturn]] void reject_option(const CLI::App& app, const std::string& argument) {
  const std::string word = argument.substr(0, std::min<std::size_t>(argument.find('='), 40));
  const CommandNode node = node_of(app);
  std::vector<std::string_view> names;
  for (const CommandOption& option : node.options) names.insert(names.end(), option.names.begin(), option.names.end());
  const std::string near = nearest(word, names);
  throw InputError(Place{}, fmt::format("unknown option \"{}\"", word),
                   near.empty() ? fmt::format("see {} --help", node.path) : fmt::format("did you mean \"{}\"?", near));
}

/// What CLI11 says, where it says it well; the rest in words of ours.
[[noreturn]] void reject(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App& app = deepest(root);
  const std::string cure = fmt::format("see {} --help", path_of(app));
  const std::vector<std::string> extras = root.remaining(true);
  for (const std::string& extra : extras)
    if (looks_like_option(extra)) reject_option(app, extra);
  std::string what = error.what();
  std::replace(what.begin(), what.end(), '\n', ' ');
  while (!what.empty() && (what.back() == ' ' || what.back() == '.')) what.pop_back();
  // A word that is none of the values has its cure in the message.
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) throw InputError(Place{}, what);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && what.find("required") != std::string::npos)
    what = fmt::format("{} takes a value", what.substr(0, what.find(':')));
  if (!extras.empty()) what = fmt::format("argument \"{}\" was not expected", extras.front().substr(0, 100));
  throw InputError(Place{}, what, cure);
}

/// CLI11 would only say that a command is missing.
void check_command_words(const CLI::App& app, std::span<const std::string> arguments) {
  const std::vector<const CLI::App*> commands = commands_of(app);
  if (commands.empty()) return;
  if (arguments.empty()) {
    if (app.get_require_subcommand_min() > 0)
      throw InputError(Place{}, "no command was given", fmt::format("see {} --help", path_of(app)));
    return;
  }
  const std::string& word = arguments.front();
  if (!word.empty() && word[0] == '-') return;
  std::vector<std::string> known;
  for (const CLI::App* command : commands) {
    if (command->get_name() == word) return check_command_words(*command, arguments.subspan(1));
    known.push_back(command->get_name());
  }
  throw InputError(Place{}, fmt::format("unknown command \"{}\"", word.substr(0, 40)),
                   did_you_mean(word, known, "commands"));
}

}  // namespace

void prepare(CLI::App& app, const ProgramFacts& facts) {
  app.formatter_fn([facts](const CLI::App* command, const std::string&, CLI::AppFormatMode) {
    const CLI::App* root = command;
    while (root->get_parent() != nullptr) root = root->get_parent();
    return help_text(tree_of(*root, facts), node_of(*command));
  });
  app.set_help_flag("-h,--help", "print this and exit");
  app.set_version_flag("--version", facts.version, "print the version and exit")->group(kEverywhere);
}

void limit_to(CLI::Option& option, const char* name, const std::vector<std::string>& words) {
  std::string type = name;
  for (const std::string& word : words) type.append(&word == words.data() ? ":" : "|").append(word);
  option.type_name(type);
  option.check([words](const std::string& word) {
    if (std::find(words.begin(), words.end(), word) != words.end()) return std::string();
    return fmt::format("unknown value \"{}\"; {}", word.substr(0, 40), did_you_mean(word, words, "values"));
  });
}

void name_commands(CLI::App& app) {
  std::string type = "COMMAND";
  for (const CLI::App* command : commands_of(app))
    type.append(type == "COMMAND" ? ":" : "|").append(command->get_name());
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
    if (CLI::Option* option = command->get_option_no_throw("COMMAND"); option != nullptr) option->type_name(type);
}

CommandTree tree_of(const CLI::App& app, const ProgramFacts& facts) {
  return {node_of(app), facts.version, facts.failure, facts.environment, facts.files};
}

std::string completion_of(const CommandTree& tree, const std::string& shell) {
  if (shell == "bash") return bash_completion(tree.root);
  if (shell == "zsh") return zsh_completion(tree.root);
  if (shell == "fish") return fish_completion(tree.root);
  throw InputError(Place{}, fmt::format("unknown shell \"{}\"", shell.substr(0, 40)), "bash, zsh or fish");
}

std::string man_page_of(const CommandTree& tree, const std::optional<std::string>& command) {
  if (!command) return man_page(tree, tree.root);
  std::vector<std::string> known;
  for (const CommandNode& node : tree.root.commands) {
    if (node.name() == *command) return man_page(tree, node);
    known.push_back(node.name());
  }
  throw InputError(Place{}, fmt::format("unknown command \"{}\"", command->substr(0, 40)),
                   did_you_mean(*command, known, "commands"));
}

std::optional<std::string> parse_words(CLI::App& app, std::span<const std::string> arguments) {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  check_command_words(app, words);
  std::reverse(words.begin(), words.end());
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) reject(app, error);
    std::ostringstream text;
    app.exit(error, text, text);
    return text.str();
  }
  return std::nullopt;
}

}  // namespace ebb::reports
