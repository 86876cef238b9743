// `ebb check`, and the other commands' refusals in the same words.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_ebb.hpp"

using namespace ebb;
using namespace ebb::test;

TEST_CASE("check: exit 0 and one line, or exit 2 and every broken rule, with the words that plan refuses with") {
  const std::string good = "model: megatron-1.8b\ncluster: h200-1gpu\nparallel: {gpus: 1}\n";
  const Outcome clean =
      run_ebb("check " + write_job("clean.yaml", good + "batch: {global: 4, sequence: 2048}\n").string());
  CHECK(clean.code == 0);
  CHECK(clean.err == "");
  CHECK(clean.out.rfind("no rule of ", 0) == 0);
  CHECK(std::count(clean.out.begin(), clean.out.end(), '\n') == 1);

  const std::string bad = write_job("bad.yaml", good +
                                                    "batch: {micro: 3, global: 4, sequence: 2048}\n"
                                                    "precision: {fp8: {recipe: mxfp8, param_gather: true}}\n"
                                                    "checkpoint: {async_save: true}\n"
                                                    "offload: {policy: chunked, chunk_numel: 1e9}\n")
                              .string();
  const Outcome broken = run_ebb("check " + bad);
  CHECK(broken.code == 2);
  CHECK(broken.err == "");
  CHECK(holds(broken.out, "bad.yaml:4:27: batch.global: 4 is not a multiple of"));
  CHECK(holds(broken.out, "bad.yaml:6:26: checkpoint.async_save: chunked does not go with asynchronous saves; the "));
  CHECK(holds(broken.out, "pull request 6544"));
  CHECK(holds(broken.out, "4 violations of "));
  std::istringstream refused(run_ebb("plan " + bad).err.substr(std::string("ebb: ").size()));
  int lines = 0;
  for (std::string line; std::getline(refused, line); ++lines) CHECK(holds(broken.out, line + "\n    rule "));
  CHECK(lines == 4);

  const auto json = nlohmann::json::parse(run_ebb("check " + bad + " --json").out);
  CHECK(json.at("violations").size() == 4);
  CHECK(json.at("violations")[0].at("rule") == "batch-divides");
  CHECK(json.at("policy") == "chunked");
  CHECK(json.at("policies").empty());
}

// What the change for chunked offload and its merged variant reject when arguments are validated (Megatron-LM pull
// request 6544, and dev since #6244), each alone: with the policy in the job, plan and check refuse it.

TEST_CASE("every combination that Megatron rejects is rejected with exit 2") {
  struct Rejected {
    const char* lines;
    std::vector<std::string> policies;
    const char* key;
  };
  const std::vector<std::string> all = {"full-reload", "chunked", "windowed"};
  const std::vector<std::string> reload = {"full-reload", "chunked"};
  const std::vector<Rejected> list = {
      {"optimizer: {kind: sgd}\n", all, "optimizer.kind"},
      {"optimizer: {distributed: false}\nparallel: {gpus: 1, overlap_param_gather: false}\n", reload,
       "optimizer.distributed"},
      {"megatron: {optimizer_cpu_offload: true}\n", all, "megatron.optimizer_cpu_offload"},
      {"checkpoint: {async_save: true}\n", all, "checkpoint.async_save"},
      {"megatron: {optimizer_cuda_graph: true}\n", all, "megatron.optimizer_cuda_graph"},
      {"megatron: {cuda_graphs: full_iteration}\n", all, "megatron.cuda_graphs"},
      {"megatron: {rl_offload_optimizer: true}\n", reload, "megatron.rl_offload_optimizer"},
      {"megatron: {fsdp: true}\ncheckpoint: {format: fsdp_dtensor}\n", all, "megatron.fsdp"},
      {"precision: {exp_avg: fp16, fp8: {recipe: blockwise}}\n", all, "precision.exp_avg"},
      {"precision: {exp_avg_sq: fp8, fp8: {recipe: blockwise}}\n", all, "precision.exp_avg_sq"},
      {"precision: {exp_avg: bf16, exp_avg_sq: bf16}\n", reload, "precision.exp_avg"},
      {"precision: {precision_aware: true, fp8: {recipe: delayed}}\n", reload, "precision.precision_aware"},
      {"precision: {master: fp16}\n", all, "precision.master"},
      {"precision: {fp4: {recipe: nvfp4, param_gather: true}}\ncluster: hgx-b200\n",
       {"chunked"},
       "precision.fp4.param_gather"},
      {"precision: {fp8: {recipe: mxfp8, param_gather: true}}\ncluster: hgx-b200\n",
       {"chunked"},
       "precision.fp8.reuse_grad_buffer"},
      {"checkpoint: {format: torch}\n", {"windowed"}, "checkpoint.format"},
      {"checkpoint: {format: torch, save_optimizer: false, start: resume}\n", {"windowed"}, "checkpoint.format"},
  };
  for (const Rejected& rejected : list)
    for (const std::string& policy : rejected.policies) {
      std::string text = rejected.lines;
      text += "model: megatron-1.8b\nbatch: {global: 4, sequence: 2048}\noffload: {policy: " + policy + "}\n";
      for (const char* line : {"cluster: h200-1gpu\n", "parallel: {gpus: 1}\n"})
        if (!holds(text, std::string(line, std::string(line).find(':') + 1))) text += line;
      INFO(text);
      const std::string job = write_job("rejected.yaml", text).string();
      check_rejected("plan " + job, 2, std::string(rejected.key) + ": ");
      const Outcome check = run_ebb("check " + job);
      CHECK(check.code == 2);
      CHECK(holds(check.out, "\n1 violation of "));
    }
}

TEST_CASE("check: no job of the library breaks a rule, and its JSON is repeatable") {
  for (const std::string& job : library_jobs()) {
    const Outcome outcome = run_ebb("check " + job + " --json");
    INFO(job << outcome.out);
    CHECK(outcome.code == 0);
    const auto json = nlohmann::json::parse(outcome.out);
    CHECK(json.at("violations").empty());
    CHECK(json.at("policies").size() == (json.at("policy").is_null() ? 7 : 0));
    if (json.at("policy").is_null()) CHECK(json.at("policies")[0].at("ruled_out") == false);  // resident
    CHECK(run_ebb("check " + job + " --json").out == outcome.out);
  }
}

TEST_CASE("check: a policy of the command line is judged, an open one only ruled out") {
  const std::string job = write_job("graphs.yaml",
                                    "model: megatron-1.8b\ncluster: h200-1gpu\nparallel: {gpus: 1}\n"
                                    "batch: {global: 4, sequence: 2048}\nmegatron: {optimizer_cuda_graph: true}\n")
                              .string();
  const Outcome open = run_ebb("check " + job);
  CHECK(open.code == 0);
  CHECK(holds(open.out, "policies that nothing stands against: resident, cpu-adam, pipelined, tidal\n"));
  CHECK(
      holds(open.out, "windowed is ruled out: " + job + ":5:34: megatron.optimizer_cuda_graph: windowed does not go"));
  for (const char* policy : {"full-reload", "chunked", "windowed"}) {
    INFO(policy);
    CHECK(run_ebb("check " + job + " --policy " + policy).code == 2);
    check_rejected("simulate " + job + " --chunk-numel 1e9 --policy chunked", 2, "replays on pointers");
  }
  CHECK(run_ebb("check " + job + " --policy cpu-adam --fraction 0.5").code == 0);
  CHECK(run_ebb("check " + job + " --policy cpu-adam --fraction 1.5").code == 2);
  CHECK(run_ebb("check " + kMeasured + " --policy chunked --megatron pr6544").code == 0);
  CHECK(run_ebb("check " + kMeasured + " --policy chunked --megatron main").code == 2);
  check_rejected("check " + kMeasured + " --policy chunkd", 2, "did you mean");
  check_rejected("check no/such/job.yaml", 2, "no/such/job.yaml");
}

TEST_CASE(
    "Megatron's own recipe with graphs and expandable segments passes, and a fixed policy is not called fastest") {
  const fs::path job = scratch() / "recipe.yaml";
  std::ofstream(job) << run_ebb(
                            "import megatron tests/data/megatron/scripts/deepseek_v3_gb200.yaml --gpus 256 "
                            "--cluster gb200-nvl72")
                            .out;
  const Outcome check = run_ebb("check " + job.string());
  INFO(check.out);
  CHECK(check.code == 0);
  const Outcome plan = run_ebb("plan " + job.string());
  CHECK(!holds(plan.out, "fastest schedule that you can deploy"));
}
