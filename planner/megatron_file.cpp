#include "planner/megatron_file.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "models/quantity_text.hpp"
#include "models/text_file.hpp"
#include "planner/megatron_known.hpp"
#include "planner/shell_script.hpp"

namespace ebb {

namespace {

constexpr std::int64_t kMostGpus = 1'000'000;

bool is_argument(std::string_view word) { return word.size() > 2 && word.starts_with("--") && word[2] != '-'; }

std::string name_of_argument(std::string_view word) {
  while (word.starts_with('-')) word.remove_prefix(1);
  std::string name(word.substr(0, word.find('=')));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// A whole command in one word (sh -c "...") becomes its words.
std::vector<ShellText> flattened(const std::vector<ShellText>& words) {
  std::vector<ShellText> result;
  for (const ShellText& word : words) {
    if (word.text.find("--") == std::string::npos || word.text.find_first_of(" \n") == std::string::npos) {
      result.push_back(word);
      continue;
    }
    constexpr std::string_view kBlanks = " \t\r\n\\";
    for (std::size_t begin = word.text.find_first_not_of(kBlanks); begin != std::string::npos;) {
      const std::size_t end = std::min(word.text.find_first_of(kBlanks, begin), word.text.size());
      result.push_back({word.text.substr(begin, end - begin), word.place});
      begin = word.text.find_first_not_of(kBlanks, end);
    }
  }
  return result;
}

int used_arguments(const std::vector<ShellText>& words) {
  int count = 0;
  for (const ShellText& word : words) {
    if (!is_argument(word.text)) continue;
    const auto known = known_argument(name_of_argument(word.text));
    count += known && known->use == ArgumentUse::used ? 1 : 0;
  }
  return count;
}

void add_value(MegatronArgument& argument, const std::string& text) {
  const std::vector<std::string> unset = unset_names(text);
  // After a value, what only the outside knows is more arguments: "--bf16 $EXTRA", "--seq-length 4096 $EXTRA".
  if (!unset.empty() && without_unset(text).empty() && !argument.values.empty()) return;
  argument.values.push_back(shown(text));
  argument.unset.insert(argument.unset.end(), unset.begin(), unset.end());
}

std::vector<MegatronArgument> arguments_of(const std::vector<ShellText>& words) {
  std::vector<MegatronArgument> arguments;
  for (const ShellText& word : words) {
    if (is_argument(word.text)) {
      arguments.push_back({.name = name_of_argument(word.text), .values = {}, .place = word.place, .unset = {}});
      const std::size_t equals = word.text.find('=');
      if (equals != std::string::npos) add_value(arguments.back(), word.text.substr(equals + 1));
    } else if (!arguments.empty()) {
      add_value(arguments.back(), word.text);
    }
  }
  return arguments;
}

std::optional<std::int64_t> whole_number(const std::string& text, const Place& place) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  const std::int64_t value = parse_count(text, place);
  if (value < 1 || value > kMostGpus) throw InputError(place, "\"" + text + "\" is out of range", "use 1 to 1000000");
  return value;
}

std::optional<std::int64_t> product(std::optional<std::int64_t> per_node, std::int64_t nodes, const Place& place) {
  if (!per_node) return std::nullopt;
  if (*per_node * nodes > kMostGpus)
    throw InputError(place, "more than a million GPUs", "check the numbers of nodes and GPUs");
  return *per_node * nodes;
}

/// --nproc-per-node and --nnodes; without a known number of nodes there is no answer.
std::optional<std::int64_t> launched_gpus(const std::vector<MegatronArgument>& launcher) {
  std::optional<std::int64_t> per_node;
  std::optional<std::int64_t> nodes = 1;
  Place place;
  for (const MegatronArgument& argument : launcher) {
    const bool is_nodes = argument.name == "nnodes";
    if (!is_nodes && argument.name != "nproc-per-node") continue;
    const std::string text = argument.values.empty() || !argument.unset.empty() ? "" : argument.values[0];
    (is_nodes ? nodes : per_node) = whole_number(text, argument.place);
    place = argument.place;
  }
  return nodes ? product(per_node, *nodes, place) : std::nullopt;
}

/// #SBATCH --nodes=4 --gpus-per-node=8 (or -N 4, --ntasks-per-node, --gres=gpu:8).
std::optional<std::int64_t> batch_gpus(std::string_view text, const std::string& file) {
  std::optional<std::int64_t> gpus, tasks;
  std::int64_t nodes = 1;
  int line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const Place place{file, ++line_number, 1};
    if (!line.starts_with("#SBATCH")) continue;
    const auto value_of = [&](std::string_view key) -> std::optional<std::int64_t> {
      const std::size_t at = line.find(key);
      if (at == std::string_view::npos) return std::nullopt;
      const std::string_view rest = line.substr(at + key.size());
      const std::size_t first = rest.find_first_of("0123456789");
      if (first == std::string_view::npos) return std::nullopt;
      const std::size_t last = std::min(rest.find_first_not_of("0123456789", first), rest.size());
      return whole_number(std::string(rest.substr(first, last - first)), place);
    };
    for (const char* key : {"--nodes", "-N "})
      if (const auto value = value_of(key)) nodes = *value;
    for (const char* key : {"--gpus-per-node", "--gres=gpu"})
      if (const auto value = value_of(key)) gpus = *value;
    if (const auto value = value_of("--ntasks-per-node")) tasks = *value;
  }
  // One task a node starts torchrun, whose --nproc-per-node counts then.
  return product(gpus ? gpus : tasks.value_or(1) > 1 ? tasks : std::nullopt, nodes, Place{file});
}

/// The words of the command that starts training: the one with the most arguments that decide something.
std::vector<ShellText> training_command(const ShellScript& script, const std::string& file) {
  std::vector<ShellText> best;
  int most = 0;
  for (const std::vector<ShellText>& command : script.commands) {
    std::vector<ShellText> words = flattened(command);
    const int count = used_arguments(words);
    if (count < most || count == 0) continue;
    most = count;
    best = std::move(words);
  }
  if (best.empty())
    throw InputError(
        Place{file}, "no command here has arguments of Megatron-LM",
        "give the script that calls pretrain_gpt.py, a list of arguments, or a YAML with MODEL_ARGS or ARGS");
  return best;
}

bool ends_in_python(const ShellText& word) { return word.text.ends_with(".py"); }

/// A file of arguments alone: line ends mean nothing.
bool is_list(const std::vector<ShellToken>& tokens) {
  const auto first = std::find_if(tokens.begin(), tokens.end(),
                                  [](const ShellToken& token) { return token.kind != ShellToken::Kind::separator; });
  return first != tokens.end() && first->kind == ShellToken::Kind::word && !first->word.pieces.empty() &&
         is_argument(first->word.pieces[0].text);
}

std::vector<ShellText> list_words(const std::vector<ShellToken>& tokens) {
  const ShellVariables none;
  std::vector<ShellText> words;
  for (const ShellToken& token : tokens)
    if (token.kind == ShellToken::Kind::word)
      for (ShellText& word : none.expand(token.word)) words.push_back(std::move(word));
  return words;
}

void append_value(MegatronArgument& argument, const std::string& text) {
  argument.values.push_back(text);
  const std::size_t begin = text.find("${");
  if (begin != std::string::npos)
    argument.unset.push_back(text.substr(begin + 2, std::min(text.find('}', begin), text.size()) - begin - 2));
}

void add_yaml_arguments(const YamlNode& map, MegatronArguments& result) {
  if (map.kind != YamlNode::Kind::map)
    throw InputError(map.place, "the arguments are " + map.description(), "write `name: value` lines");
  for (const YamlEntry& entry : map.entries) {
    const YamlNode& value = entry.value;
    MegatronArgument argument{.name = name_of_argument(entry.key), .values = {}, .place = entry.key_place, .unset = {}};
    if (value.kind == YamlNode::Kind::null || (value.kind == YamlNode::Kind::scalar && value.text == "false")) continue;
    if (value.kind == YamlNode::Kind::map)
      throw InputError(value.place, "the value of " + entry.key + " is a mapping", "write a word, a number or a list");
    if (value.kind == YamlNode::Kind::scalar && value.text != "true") append_value(argument, value.text);
    for (const YamlEntry& item : value.entries) {
      if (item.value.kind != YamlNode::Kind::scalar)
        throw InputError(item.value.place, "a list of " + entry.key + " holds " + item.value.description(),
                         "write words or numbers");
      append_value(argument, item.value.text);
    }
    result.arguments.push_back(std::move(argument));
  }
}

std::optional<std::int64_t> yaml_number(const YamlNode& root, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const YamlNode* node = root.find(key); node != nullptr && node->kind == YamlNode::Kind::scalar)
      return whole_number(node->text, node->place);
  return std::nullopt;
}

}  // namespace

bool is_megatron_yaml(const YamlNode& root) {
  return root.find("MODEL_ARGS") != nullptr || root.find("ARGS") != nullptr;
}

MegatronArguments read_megatron_yaml(const YamlNode& root, const std::string& file) {
  MegatronArguments result;
  result.file = file;
  if (!is_megatron_yaml(root))
    throw InputError(Place{file}, "there is neither MODEL_ARGS nor ARGS",
                     "give a test case or a recipe of Megatron-LM");
  for (const char* key : {"MODEL_ARGS", "ARGS"})
    if (const YamlNode* map = root.find(key)) add_yaml_arguments(*map, result);
  if (const YamlNode* variables = root.find("ENV_VARS"))
    for (const YamlEntry& entry : variables->entries)
      if (entry.value.kind == YamlNode::Kind::scalar) result.environment[entry.key] = entry.value.text;
  const std::optional<std::int64_t> gpus = yaml_number(root, {"gpus", "GPUS", "gpus_per_node", "GPUS_PER_NODE"});
  result.gpus = product(gpus, yaml_number(root, {"nodes", "NODES", "nnodes", "NNODES"}).value_or(1), Place{file});
  return result;
}

MegatronArguments read_megatron_script(std::string_view text, const std::string& file) {
  MegatronArguments result;
  result.file = file;
  const std::vector<ShellToken> tokens = lex_shell(text, file);
  std::vector<ShellText> words;
  if (is_list(tokens)) {
    words = list_words(tokens);
  } else {
    ShellScript script = run_shell(text, file);
    words = training_command(script, file);
    result.environment = std::move(script.environment);
  }
  // Options in front of the training script are the launcher's.
  const auto script = std::find_if(words.rbegin(), words.rend(), ends_in_python).base();
  result.arguments = arguments_of({script == words.begin() ? words.begin() : script, words.end()});
  result.gpus = launched_gpus(arguments_of(words));
  if (!result.gpus) result.gpus = batch_gpus(text, file);
  static const std::set<std::string> kLauncher = {
      "nproc-per-node", "nnodes",       "node-rank",  "master-addr", "master-port", "rdzv-id",  "rdzv-backend",
      "rdzv-endpoint",  "max-restarts", "standalone", "log-dir",     "tee",         "redirects"};
  std::erase_if(result.arguments, [&](const MegatronArgument& argument) { return kLauncher.contains(argument.name); });
  return result;
}

MegatronArguments read_megatron_file(const std::string& path) {
  const std::string text = read_text_file(path, kMostYamlBytes);
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".yaml" || extension == ".yml") return read_megatron_yaml(parse_yaml(text, path), path);
  return read_megatron_script(text, path);
}

}  // namespace ebb
