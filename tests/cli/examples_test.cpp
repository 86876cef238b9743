// Everything a help text or a document tells people to type, typed: in a directory that looks like the tree, with the
// files that the texts speak of. What an example writes, later ones find. Commands for GPUs are parsed, not run.
#include <algorithm>
#include <array>
#include <sstream>

#include "planner/cli_options.hpp"
#include "replay/cli_options.hpp"
#include "tests/cli/doc_commands.hpp"
#include "tests/cli/run_ebb.hpp"

using namespace ebb;
using namespace ebb::test;

namespace {

const fs::path kSource = EBB_SOURCE_DIR;

/// Files that texts name without saying where they come from: what each is.
constexpr std::array<std::pair<const char*, const char*>, 7> kFiles = {{
    {"job.yaml", "models/jobs/measured-1.8b-1xh200.yaml"},
    {"small.yaml", "tests/gpu/replay-small.yaml"},
    {"train.sh", "tests/data/megatron/scripts/llama3_8b_fp8.sh"},
    {"train.log", "tests/data/logs/resident-1.8b.log"},
    {"config.json", "tests/data/hf/llama3-8b/config.json"},
    // Written by commands for GPUs: a committed run of job.yaml's pipelined plan, and the host it ran on.
    {"cluster.yaml", "tests/data/replay/h200-2026-11-30/cluster.yaml"},
    {"measured.json",
     "tests/data/replay/h200-2026-11-30/measured-1.8b-1xh200-pipelined-chunk-numel-4194304-slots-4.measured.json"},
}};

/// A directory of its own that looks like the tree.
fs::path fresh_copy(const std::string& name) {
  const fs::path directory = scratch() / name;
  fs::create_directories(directory);
  for (const char* part : {"models", "tests", "docs", "README.md"})
    fs::create_symlink(kSource / part, directory / part);
  for (const auto& [file, is] : kFiles)
    if (fs::exists(kSource / is)) fs::copy_file(kSource / is, directory / file);
  const fs::path bin = scratch() / "bin";
  fs::create_directories(bin);
  for (const auto& [program, binary] : {std::pair{"ebb", EBB_BINARY}, std::pair{"ebb-replay", EBB_REPLAY_BINARY}})
    if (!fs::exists(bin / program)) fs::create_symlink(binary, bin / program);
  return directory;
}

Outcome run_in(const fs::path& directory, const std::string& command) {
  const fs::path script = scratch() / "command.sh";
  std::ofstream(script) << "set -o pipefail\nexport PATH=" << (scratch() / "bin").string() << ":$PATH\ncd "
                        << directory.string() << "\n"
                        << command << "\n";
  return run_ebb("--version >/dev/null; bash " + script.string());
}

/// What ./run hands on.
std::string without_run(const std::string& command) {
  return command.rfind("./run ", 0) == 0 ? "ebb " + command.substr(6) : command;
}

/// The words of a plain command.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  std::istringstream stream(command);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

void check_parses(const std::string& command) {
  const std::vector<std::string> words = words_of(command);
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const std::span<const char* const> all(arguments);
  const bool through_ebb = words.size() > 1 && words[0] == "ebb" && words[1] == "replay";
  if (words[0] == "ebb-replay" || through_ebb)
    CHECK_NOTHROW(replay::cli::parse(through_ebb ? all.subspan(1) : all));
  else
    CHECK_NOTHROW(cli::parse(all));
}

void check_command(const DocCommand& command, const fs::path& directory) {
  INFO("line " << command.line << ": " << command.command);
  const std::string line = without_run(command.command);
  if (line == "ebb test" || line.rfind("ebb test ", 0) == 0) return;  // ./run test: this very test
  if (command.gpu) return check_parses(line);
  const Outcome outcome = run_in(directory, line);
  INFO("stdout: " << outcome.out.substr(0, 4000) << "\nstderr: " << outcome.err);
  CHECK(outcome.code == command.exits);
  if (command.prints) CHECK(prints_as(outcome.out + outcome.err, *command.prints));
}

/// Names under "Commands:" in a help text.
std::vector<std::string> commands_in(const std::string& help) {
  std::vector<std::string> names;
  bool inside = false;
  std::istringstream text(help);
  for (std::string line; std::getline(text, line);) {
    if (line == "Commands:")
      inside = true;
    else if (line.rfind("  ", 0) != 0)
      inside = false;
    else if (inside && line[2] != ' ')
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

/// The help of `command` and of all below it, each with the words that lead there.
void collect_helps(const std::string& command, const fs::path& directory,
                   std::vector<std::pair<std::string, std::string>>& helps) {
  const Outcome outcome = run_in(directory, command + " --help");
  INFO(command);
  REQUIRE(outcome.code == 0);
  REQUIRE(outcome.err.empty());
  helps.emplace_back(command, outcome.out);
  for (const std::string& name : commands_in(outcome.out))
    if (name != "help" && !(command == "ebb" && name == "replay"))
      collect_helps(command + " " + name, directory, helps);
}

const std::vector<std::pair<std::string, std::string>>& all_helps() {
  static const auto helps = [] {
    std::vector<std::pair<std::string, std::string>> list;
    const fs::path directory = fresh_copy("helps");
    collect_helps("ebb", directory, list);
    collect_helps("ebb-replay", directory, list);
    return list;
  }();
  return helps;
}

}  // namespace

TEST_CASE("every help text has an example, and every example runs") {
  const fs::path directory = fresh_copy("examples");
  REQUIRE(all_helps().size() >= 34);
  for (const auto& [command, help] : all_helps()) {
    INFO(command << " --help");
    const std::vector<DocCommand> examples = help_examples(help);
    CHECK_FALSE(examples.empty());
    for (const DocCommand& example : examples) check_command(example, directory);
  }
}

TEST_CASE("every help text is at most 100 columns wide and says what its exit statuses mean") {
  for (const auto& [command, help] : all_helps()) {
    INFO(command << " --help");
    std::istringstream text(help);
    for (std::string line; std::getline(text, line);) {
      INFO(line);
      CHECK(line.size() <= 100);
    }
    std::string one_line = help;
    std::replace(one_line.begin(), one_line.end(), '\n', ' ');
    CHECK(holds(one_line, " Exit status: 0 answered"));
    CHECK(holds(one_line, " 130 interrupted."));
    CHECK(holds(help, "\nUsage: " + command));
    CHECK(holds(help, "-h, --help"));
  }
}

TEST_CASE("every command of the README and of the documents runs, and prints what stands there") {
  std::vector<fs::path> documents = {kSource / "README.md"};
  for (const auto& entry : fs::directory_iterator(kSource / "docs"))
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  std::sort(documents.begin() + 1, documents.end());
  std::size_t commands = 0;
  for (const fs::path& document : documents) {
    INFO(document.string());
    const fs::path directory = fresh_copy(document.stem().string());
    for (const DocCommand& command : doc_commands(text_of_file(document))) {
      check_command(command, directory);
      ++commands;
    }
  }
  CHECK(commands >= 12);
}

TEST_CASE("the rule by which documents mark commands") {
  const auto commands = doc_commands(
      "text `ebb plan x`\n"               // 1
      "```\n"                             // 2
      "ebb plan a.yaml   # a remark\n"    // 3
      "cmake --build .\n"                 // 4
      "```\n"                             // 5
      "prints\n"                          // 6
      "```\n"                             // 7
      "first\n"                           // 8
      "\n"                                // 9
      "```\n"                             // 10
      "```yaml\nebb no\n```\n"            // 11 to 13
      "```\n"                             // 14
      "$ ebb x   # exits 1: no\n"         // 15
      "out\n"                             // 16
      "$ ls\n"                            // 17
      "a\n"                               // 18
      "ebb-replay run p   # GPU: long\n"  // 19
      "./run test\n"                      // 20
      "```\n");
  REQUIRE(commands.size() == 4);
  CHECK(commands[0] == DocCommand{3, "ebb plan a.yaml", false, 0, "first\n\n"});
  CHECK(commands[1] == DocCommand{15, "ebb x", false, 1, "out\n"});
  CHECK(commands[2] == DocCommand{19, "ebb-replay run p", true, 0, std::nullopt});
  CHECK(commands[3] == DocCommand{20, "./run test", false, 0, std::nullopt});
}

TEST_CASE("output with lines left out") {
  CHECK(prints_as("a\nb\n", "a\nb\n"));
  CHECK_FALSE(prints_as("a\nb\n", "a\n"));
  CHECK_FALSE(prints_as("a\n", "a\nb\n"));
  CHECK(prints_as("a\nb\nc\n", "a\n...\n"));
  CHECK(prints_as("a\nb\nc\n", "...\nb\n...\n"));
  CHECK(prints_as("a\nb\nc\n", "a\n...\nc\n"));
  CHECK(prints_as("a\nc\nb\nc\n", "a\n...\nc\n"));
  CHECK_FALSE(prints_as("a\nb\nc\n", "a\n...\nd\n"));
  CHECK_FALSE(prints_as("a\nb\nc\n", "b\n...\n"));
  CHECK_FALSE(prints_as("a\nb\nc\n", "...\nc\n...\nb\n...\n"));
}
