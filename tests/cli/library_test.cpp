// `ebb models|clusters|policies`: every entry of the library, in text and JSON, against the files themselves; and what
// the command line says to mistyped words.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/run_ebb.hpp"

using namespace ebb::test;

namespace {

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(EBB_SOURCE_DIR) / "models" / directory))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

nlohmann::json json_of(const std::string& arguments) {
  const Outcome outcome = run_ebb(arguments);
  INFO(arguments << "\n" << outcome.err);
  REQUIRE(outcome.code == 0);
  REQUIRE(outcome.err.empty());
  return nlohmann::json::parse(outcome.out);
}

std::vector<std::string> names_of(const nlohmann::json& list) {
  std::vector<std::string> names;
  for (const auto& entry : list) names.push_back(entry.at("name"));
  return names;
}

std::size_t widest(const std::string& text) {
  std::size_t width = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) width = std::max(width, line.size());
  return width;
}

}  // namespace

TEST_CASE("lists name what the library holds, with and without `list`") {
  CHECK(names_of(json_of("models list --json").at("models")) == names_in("llm"));
  CHECK(names_of(json_of("clusters list --json").at("clusters")) == names_in("clusters"));
  CHECK(names_of(json_of("policies list --json").at("policies")) ==
        std::vector<std::string>{"resident", "full-reload", "chunked", "windowed", "cpu-adam", "pipelined", "tidal"});
  for (const std::string kind : {"models", "clusters", "policies"}) {
    const Outcome list = run_ebb(kind + " list");
    CHECK(list.out == run_ebb(kind).out);
    INFO(list.out);
    CHECK(widest(list.out) <= 120);
    CHECK(holds(list.out, "\nebb " + kind + " show "));
  }
}

TEST_CASE("a model: its published total, sizes and source") {
  const auto model = json_of("models show llama3-8b --json").at("model");
  CHECK(model.at("parameters") == 8'030'261'248);  // safetensors total of meta-llama/Meta-Llama-3-8B
  CHECK(model.at("published_parameters") == 8'030'261'248);
  CHECK(model.at("layers") == 32);
  CHECK(model.at("hidden") == 4096);
  CHECK(holds(model.at("source"), "meta-llama/Meta-Llama-3-8B"));
  const auto experts = json_of("models show mixtral-8x7b --json").at("model");
  CHECK(experts.at("moe").at("experts") == 8);
  CHECK(experts.at("moe").at("top_k") == 2);
  const std::string text = run_ebb("models show llama3-8b").out;
  CHECK(holds(text, "8,030,261,248"));
  CHECK(widest(text) <= 100);
}

TEST_CASE("a model or cluster of a file") {
  const auto by_name = json_of("models show llama3-8b --json").at("model");
  CHECK(json_of("models show ./models/llm/llama3-8b.yaml --json").at("model") == by_name);
  const auto hf = json_of("models show tests/data/hf/llama3-8b/config.json --json").at("model");
  CHECK(hf.at("parameters") == 8'030'261'248);
  const auto cluster = json_of("clusters show tests/data/replay/h200-2026-11-30/cluster.yaml --json").at("cluster");
  CHECK(cluster.at("gpu").at("name") == "NVIDIA H200");
}

TEST_CASE("a cluster: every figure with value and source") {
  for (const std::string& name : names_in("clusters")) {
    INFO(name);
    const auto cluster = json_of("clusters show " + name + " --json").at("cluster");
    std::size_t figures = 0;
    for (const char* block : {"gpu", "host_link", "topology", "host", "calls", "interconnect", "storage"})
      for (const auto& [key, value] : cluster.at(block).items()) {
        if (!value.is_object()) continue;
        INFO(key << " " << value);
        const std::string source = value.at("source");
        bool known = false;
        for (const char* kind : {"measured", "datasheet", "report", "default"}) known |= source.rfind(kind, 0) == 0;
        CHECK(known);
        CHECK(value.contains("value"));
        ++figures;
      }
    CHECK(figures >= 27);  // those that a file must state
    const std::string text = run_ebb("clusters show " + name).out;
    CHECK(widest(text) <= 100);
  }
  // models/clusters/hgx-h200.yaml
  const auto cluster = json_of("clusters show hgx-h200 --json").at("cluster");
  CHECK(cluster.at("gpu").at("memory").at("value") == 150'109'880'320);
  CHECK(cluster.at("host_link").at("h2d").at("value") == 55.4e9);
  CHECK(cluster.at("host").at("sockets") == 2);
}

TEST_CASE("a policy: its flags, and which Megatron-LM has them") {
  const auto chunked = json_of("policies show chunked --json").at("policy");
  CHECK(chunked.at("flags").at(0) == "--offload-optimizer-states");
  CHECK(chunked.at("requires") == "pr6544");
  CHECK(json_of("policies show resident --json").at("policy").at("flags").empty());
  CHECK(json_of("policies show pipelined --json").at("policy").at("requires") == "ebb");
  CHECK(widest(run_ebb("policies show windowed").out) <= 100);
}

TEST_CASE("mistyped names are answered with the nearest") {
  check_rejected("models show llama3-8", 2, "did you mean \"llama3-8b\"?");
  check_rejected("clusters show hgx-h20", 2, "did you mean \"hgx-h200\"?");
  check_rejected("policies show chunkd", 2, "did you mean \"chunked\"?");
  check_rejected("models shwo x", 2, "did you mean \"show\"?");
  check_rejected("models show no/such/file.yaml", 2, "no/such/file.yaml");
}

TEST_CASE("mistyped options and words are answered with the nearest") {
  check_rejected("simulate " + kMeasured + " --polcy chunked", 2,
                 "unknown option \"--polcy\"; did you mean \"--policy\"?");
  check_rejected("plan --jsn", 2, "unknown option \"--jsn\"; did you mean \"--json\"?");
  check_rejected("plan " + kMeasured + " --budgt=3", 2, "unknown option \"--budgt\"; did you mean \"--budget\"?");
  check_rejected("plan " + kMeasured + " --xyzzy", 2, "unknown option \"--xyzzy\"; see ebb plan --help");
  check_rejected("plan " + kMeasured + " --objective stp", 2, "did you mean \"step\"?");
  check_rejected("plan " + kMeasured + " --format yml", 2, "did you mean \"yaml\"?");
  check_rejected("fit " + kMeasured + " --max sequnce", 2, "did you mean \"sequence\"?");
  check_rejected("explain " + kMeasured + " --phase stpe", 2, "did you mean \"step\"?");
  check_rejected("schema jub", 2, "did you mean \"job\"?");
  check_rejected("completion fihs", 2, "did you mean \"fish\"?");
  check_rejected("import megatrn x", 2, "did you mean \"megatron\"?");
  check_rejected("help plam", 2, "did you mean \"plan\"?");
  check_rejected("man plam", 2, "did you mean \"plan\"?");
}

TEST_CASE("help in all its forms is the same text") {
  const std::string help = run_ebb("plan --help").out;
  CHECK(run_ebb("plan -h").out == help);
  CHECK(run_ebb("help plan").out == help);
  CHECK(run_ebb("help").out == run_ebb("--help").out);
  CHECK(run_ebb("help models show").out == run_ebb("models show -h").out);
}

TEST_CASE("flags win over EBB_ variables, these over the file, and --print-config shows what results") {
  const fs::path job =
      write_job("resolved.yaml", text_of_file(fs::path(EBB_SOURCE_DIR) / kMeasured) + "budget: {device: 50GiB}\n");
  const std::string config = "plan " + job.string() + " --print-config";
  const auto budget_of = [](const std::string& text) {
    const std::size_t at = text.find("budget:\n");
    REQUIRE(at != std::string::npos);
    std::istringstream lines(text.substr(at));
    std::string line;
    std::getline(lines, line);
    std::getline(lines, line);
    return line;
  };
  CHECK(budget_of(run_ebb(config).out) == "  device: 50GiB");
  ::setenv("EBB_BUDGET", "40GiB", 1);
  CHECK(budget_of(run_ebb(config).out) == "  device: 40GiB");
  CHECK(budget_of(run_ebb(config + " --budget 30GiB").out) == "  device: 30GiB");
  CHECK(budget_of(run_ebb(config + " --budget=30GiB").out) == "  device: 30GiB");
  ::setenv("EBB_BUDGET", "40XB", 1);
  check_rejected("plan " + job.string(), 2, "EBB_BUDGET: ");
  CHECK(run_ebb("models").code == 0);  // has no budget
  ::unsetenv("EBB_BUDGET");
  ::setenv("EBB_MEGATRON", "mian", 1);
  check_rejected("plan " + job.string(), 2, "EBB_MEGATRON: ");
  ::unsetenv("EBB_MEGATRON");
  // What is printed is a job file that gives the same answer.
  const Outcome printed = run_ebb("simulate " + kMeasured + " --policy chunked --chunk-numel 1e8 --print-config");
  REQUIRE(printed.code == 0);
  const fs::path again = write_job("measured-1.8b-1xh200.yaml", printed.out);
  const auto of = [](const std::string& file, const std::string& options) {
    const auto json = nlohmann::json::parse(run_ebb("simulate " + file + options + " --json").out);
    std::vector<nlohmann::json> figures;
    for (const char* key : {"policy", "chunk_numel", "device_peak_bytes", "device_reserved_bytes", "step_seconds"})
      figures.push_back(json.at(key));
    return figures;
  };
  CHECK(of(again.string(), "") == of(kMeasured, " --policy chunked --chunk-numel 1e8"));
}
