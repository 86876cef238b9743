// Completions and manual pages, by the programs that read them: bash always; zsh, fish, groff and mandoc where they
// are.
#include <sstream>

#include "tests/cli/run_ebb.hpp"

using namespace ebb::test;

namespace {

/// A shell's output; exit status 0 is required.
std::string shell(const std::string& command) {
  const fs::path script = scratch() / "script";
  std::ofstream(script) << command;
  const Outcome outcome = run_ebb("--version >/dev/null; bash " + script.string());
  INFO(command << "\n" << outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  return outcome.out;
}

bool there(const std::string& program) { return run_ebb("--version >/dev/null; command -v " + program).code == 0; }

/// What bash offers at the end of these words ("" begins a new one), in the order of the alphabet, a line each.
std::string offered(const std::string& words, const std::string& program = "ebb", const char* binary = EBB_BINARY) {
  std::string function = "_" + program;
  for (char& c : function)
    if (c == '-') c = '_';
  return shell("set -u\nsource <('" + std::string(binary) + "' completion bash)\ncomplete -p " + program +
               " >/dev/null\nCOMP_WORDS=(" + program + " " + words +
               ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\ncompopt() { :; }\n" + function +
               "\n((${#COMPREPLY[@]} == 0)) || printf '%s\\n' \"${COMPREPLY[@]}\" | LC_ALL=C sort\n");
}

}  // namespace

TEST_CASE("bash: commands, subcommands, options, and what options can be") {
  CHECK(offered("pl") == "plan\n");
  CHECK(holds("\n" + offered("''"), "\nsimulate\n"));
  CHECK(offered("plan --bu") == "--budget\n");
  CHECK(offered("plan --objective ''") == "balanced\nmemory\nstep\n");
  CHECK(offered("plan --objective m") == "memory\n");
  CHECK(offered("plan --objective = b") == "balanced\n");  // "--objective=b", as bash splits it
  CHECK(offered("plan --objective =") == "balanced\nmemory\nstep\n");
  CHECK(offered("simulate x.yaml --policy c") == "chunked\ncpu-adam\n");
  CHECK(offered("plan --budget ''").empty());
  CHECK(offered("models ''") == "list\nshow\n");
  CHECK(offered("models show llama3-8") == "llama3-8b\n");
  CHECK(offered("clusters show h") == "h200-1gpu\nhgx-b200\nhgx-h100\nhgx-h200\n");
  CHECK(offered("completion ''") == "bash\nfish\nzsh\n");
  CHECK(offered("import ''") == "hf\nmegatron\n");
  CHECK(offered("models show --json ''").find("llama3-8b\n") != std::string::npos);
  for (const char* command : {"help", "man"})
    CHECK(offered(std::string(command) + " s") == "schema\nscore\nsimulate\nsweep\n");
}

TEST_CASE("bash: jobs of the library and files for JOB, files for -o, and a second argument after the first") {
  CHECK(offered("plan models/jobs/measured-1") == "models/jobs/measured-1.8b-1xh200.yaml\n");
  CHECK(offered("plan measured-1") == "measured-1.8b-1xh200\n");
  CHECK(offered("plan --budget 5GiB measured-1") == "measured-1.8b-1xh200\n");
  CHECK(offered("simulate x -o CHANGE") == "CHANGELOG.md\n");
  CHECK(offered("import megatron CHANGE") == "CHANGELOG.md\n");
  CHECK(offered("report a b CHANGE") == "CHANGELOG.md\n");
  CHECK(offered("plan one.yaml CHANGE").empty());  // takes one
  const fs::path odd = scratch() / "a file.yaml";
  std::ofstream(odd) << "\n";
  CHECK(offered("plan '" + (scratch() / "a f").string() + "'") == odd.string() + "\n");
}

TEST_CASE("bash: ebb-replay has its own") {
  CHECK(offered("r", "ebb-replay", EBB_REPLAY_BINARY) == "run\n");
  CHECK(offered("man cali", "ebb-replay", EBB_REPLAY_BINARY) == "calibrate\n");
  CHECK(offered("run --device ''", "ebb-replay", EBB_REPLAY_BINARY) == "cpu\ngpu\n");
  CHECK(offered("run --slow ''", "ebb-replay", EBB_REPLAY_BINARY) == "comm\ncompute\nd2h\nh2d\nhost\n");
  CHECK(offered("run a CHANGE", "ebb-replay", EBB_REPLAY_BINARY) == "CHANGELOG.md\n");
}

TEST_CASE("every shell reads its completion without complaint") {
  for (const std::string binary : {EBB_BINARY, EBB_REPLAY_BINARY})
    for (const std::string name : {"bash", "zsh", "fish"}) {
      if (!there(name)) continue;
      INFO(binary << " " << name);
      CHECK(shell("'" + binary + "' completion " + name + " > " + (scratch() / "completion").string() + "\n" + name +
                  " -n " + (scratch() / "completion").string())
                .empty());
    }
}

TEST_CASE("fish offers what bash offers, with descriptions") {
  if (!there("fish")) return;
  const auto offers = [](const std::string& words) {
    return shell("export HOME=" + scratch().string() +
                 "\nfish --no-config -c \"'" EBB_BINARY "' completion fish | source; complete -C '" + words + "'\"");
  };
  CHECK(holds(offers("ebb pl"), "plan\tWhich flags"));
  CHECK(holds(offers("ebb plan --objective m"), "memory"));
  CHECK(holds(offers("ebb plan --bu"), "--budget\tdevice memory"));
  CHECK(holds(offers("ebb models show llama3-8"), "llama3-8b"));
  CHECK_FALSE(holds(offers("ebb models "), "plan"));
  CHECK(holds(offers("ebb plan models/jobs/measured-1"), "models/jobs/measured-1.8b-1xh200.yaml"));
}

TEST_CASE("zsh offers what bash offers") {
  if (!there("zsh")) return;
  // _arguments needs a line editor: zsh in a terminal of zsh's own module, its list of matches read back.
  const fs::path driver = scratch() / "driver.zsh";
  std::ofstream(driver) << R"(
zmodload zsh/zpty
offers() {
  zpty session zsh -f -i
  zpty -w session "PS1=; PROMPT=; unsetopt zle_bracketed_paste; cd $PWD; autoload -Uz compinit; compinit -u -d $SCRATCH/dump"
  zpty -w session "zstyle ':completion:*' list-colors 'no=<match>' 'lc=' 'rc=' 'ec=</match>'; LISTMAX=1000"
  zpty -w session "source <($EBB completion zsh); bindkey '^I' complete-word; setopt no_list_beep; echo ready\\!"
  local line=
  zpty -m -r session line '*ready!*'
  zpty -w -n session "$1"$'\t'
  sleep 1
  zpty -w -n session $'\t'
  sleep 1
  zpty -r -t session line '*'
  local all=$line
  while zpty -r -t session line; do all+=$line; done
  print -r -- $all
  zpty -d session
}
offers "$1"
)";
  const auto offers = [&driver](const std::string& words) {
    return shell("SCRATCH=" + scratch().string() + " EBB='" EBB_BINARY "' TERM=xterm zsh -f " + driver.string() + " '" +
                 words + "'");
  };
  CHECK(holds(offers("ebb plan --objective m"), "emory"));
  CHECK(holds(offers("ebb models "), "show"));
}

TEST_CASE("manual pages have every section and no complaint from groff or mandoc") {
  for (const std::string page :
       {"ebb man", "ebb man plan", "ebb man models", "ebb-replay man", "ebb-replay man train"}) {
    const bool replay = page.rfind("ebb-replay", 0) == 0;
    const std::string arguments = page.substr(page.find("man"));
    const fs::path file = scratch() / "page.1";
    shell("'" + std::string(replay ? EBB_REPLAY_BINARY : EBB_BINARY) + "' " + arguments + " > " + file.string());
    INFO(page);
    const std::string text = text_of_file(file);
    for (const char* section :
         {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "SEE ALSO"})
      CHECK(holds(text, std::string("\n.SH ") + section + "\n"));
    if (there("groff")) {
      const std::string shown = shell("groff -man -ww -Tascii -P-cbou " + file.string() + " 2>&1");
      CHECK_FALSE(holds(shown, "warning"));
      CHECK(holds(shown, "\nSYNOPSIS\n"));
    }
    if (there("mandoc")) {
      // It has no date, so that the same program prints the same page.
      CHECK(shell("mandoc -Tlint -Wwarning " + file.string() + " 2>&1 | grep -v 'missing date' || true").empty());
    }
  }
}
