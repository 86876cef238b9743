// Launch scripts, argument lists and YAML files: what a shell would have passed to Megatron-LM is what is read, with
// places in the file, and hostile files are InputErrors.
#include "planner/megatron_file.hpp"

#include <cstdlib>
#include <random>

#include "models/cluster_yaml.hpp"
#include "models/job_yaml.hpp"
#include "models/library.hpp"
#include "models/text_file.hpp"
#include "planner/any_job.hpp"
#include "planner/constraints.hpp"
#include "planner/parameters.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;

namespace {

std::string path_of(const std::string& name) { return EBB_TEST_DATA "/megatron/scripts/" + name; }

const MegatronArgument* find(const MegatronArguments& arguments, const std::string& name) {
  for (const MegatronArgument& argument : arguments.arguments)
    if (argument.name == name) return &argument;
  return nullptr;
}

/// The value of `name` in a script, "(flag)" for a flag, "(absent)" where it is not there.
std::string value_in(const std::string& script, const std::string& name) {
  const MegatronArguments arguments = read_megatron_script(script, "t.sh");
  const MegatronArgument* argument = find(arguments, name);
  if (argument == nullptr) return "(absent)";
  std::string text;
  for (const std::string& value : argument->values) text += (text.empty() ? "" : " ") + value;
  return argument->values.empty() ? "(flag)" : text;
}

/// The job of a script on one H100 host, with sizes that Megatron needs in front of `more`.
ImportedJob job_in(const std::string& more) {
  static const Cluster cluster = load_cluster(library_path(Library::clusters, "hgx-h100"));
  MegatronArguments arguments = read_megatron_script(
      "torchrun --nproc-per-node 8 p.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --micro-batch-size 1 "
      "--position-embedding-type rope " +
          more,
      "t.sh");
  return job_of(arguments, cluster);
}

}  // namespace

TEST_CASE("Llama 3 8B's launch script: arrays, conditions, arithmetic, quoted pairs") {
  const ImportedJob imported = import_megatron(path_of("llama3_8b_fp8.sh"), ImportChoices());
  const Job& job = imported.job;
  check(job);
  REQUIRE(total_parameters(job.model).value == 8'030'261'248 + 2 * 4096);  // NullTokenizer's one token more, untied
  REQUIRE(job.parallel.gpus == 8);
  REQUIRE_FALSE(job.parallel.sequence);  // tensor parallelism is 1
  REQUIRE(job.parallel.overlap_param_gather);
  REQUIRE(job.precision.fp8 == Fp8Recipe::delayed);
  REQUIRE(job.precision.fp8_param_gather);
  REQUIRE(job.precision.grads == Dtype::bf16);
  REQUIRE(job.optimizer.distributed);
  REQUIRE(job.optimizer.decoupled_lr);
  REQUIRE(job.activations.cross_entropy == CrossEntropy::native);
  REQUIRE_FALSE(job.activations.loader_mask);
  REQUIRE(job.megatron.empty_cache_level == 1);
  REQUIRE(job.megatron.expandable_segments);
  REQUIRE(job.batch.sequence == 8192);
  // --hidden-size stands in line 25, in the array MODEL.
  REQUIRE(job.place_of("model.hidden").text().ends_with("llama3_8b_fp8.sh:25:5"));
}

TEST_CASE("Mixtral 8x7B's launch script: outer variables, comments between arguments") {
  const Job job = import_megatron(path_of("mixtral_8x7b.sh"), ImportChoices()).job;
  check(job);
  REQUIRE(job.parallel.gpus == 16);
  REQUIRE(job.parallel.virtual_pipeline == 4);  // 32 layers, 4 ranks, 2 a stage
  REQUIRE(job.model.moe->experts == 8);
  REQUIRE(job.model.positions == Positions::rope);
  REQUIRE(job.experts.grouped_matmul);
  REQUIRE_FALSE(job.experts.permute_fusion);  // commented out
  REQUIRE(job.checkpoint.start == Start::no_load_optim);
  // 46,702,792,704 as published with 32,000 tokens; here GPT-2's 50,257 are assumed.
  REQUIRE(total_parameters(job.model).value == 46'702'792'704 + 2 * 4096 * (50'257 - 32'000));
}

TEST_CASE("GPT-3 175B's launch script: fp16, no distributed optimizer, a ramp") {
  const Job job = import_megatron(path_of("gpt3_175b.sh"), ImportChoices()).job;
  check(job);
  REQUIRE(job.parallel.gpus == 128);
  REQUIRE(job.parallel.tensor == 8);
  REQUIRE(job.parallel.pipeline == 16);
  REQUIRE(job.precision.params == Dtype::fp16);
  REQUIRE(job.precision.grads == Dtype::fp16);
  REQUIRE_FALSE(job.optimizer.distributed);
  REQUIRE(job.batch.global == 1536);
  REQUIRE(job.model.tied_embeddings);
  REQUIRE(std::llabs(total_parameters(job.model).value - 175'000'000'000) < 500'000'000);
}

TEST_CASE("a recipe: lists, a layout, quantised weights, offloaded state") {
  ImportChoices choices;
  choices.gpus = 256;
  const ImportedJob imported = import_megatron(path_of("deepseek_v3_gb200.yaml"), choices);
  const Job& job = imported.job;
  REQUIRE(job.model.layers == 61);  // not the text of the dockerfile
  REQUIRE(job.model.moe->first_dense_layers == 3);
  REQUIRE(job.parallel.virtual_pipeline == 4);  // 16 stages on 4 ranks
  REQUIRE(job.precision.fp8 == Fp8Recipe::mxfp8);
  REQUIRE(job.precision.fp8_reuse_grad_buffer == true);
  REQUIRE(job.precision.exp_avg == Dtype::bf16);
  REQUIRE(job.precision.is_precision_aware());
  REQUIRE(job.offload.policy == Policy::full_reload);
  REQUIRE(job.recompute.modules == std::vector<std::string>{"mla_up_proj"});
  REQUIRE(job.megatron.cuda_graphs == CudaGraphs::transformer_engine);
  REQUIRE(job.checkpoint.start == Start::no_load_optim);
  REQUIRE_FALSE(job.checkpoint.save_optimizer);
  REQUIRE(
      error_of([] { import_megatron(path_of("deepseek_v3_gb200.yaml"), ImportChoices()); }).ends_with("give --gpus"));
}

TEST_CASE("a test case and a list of arguments") {
  const Job job = import_megatron(path_of("test_case.yaml"), ImportChoices()).job;
  REQUIRE(job.parallel.gpus == 8);
  REQUIRE_FALSE(job.optimizer.distributed);  // false is absent
  REQUIRE(job.compute.attention == Attention::local);
  REQUIRE(job.activations.deterministic);
  REQUIRE_FALSE(job.activations.gradient_fusion);

  ImportChoices choices;
  choices.gpus = 1;
  const Job list = import_megatron(path_of("arguments.txt"), choices).job;
  REQUIRE(list.model.heads == 24);
  REQUIRE(list.model.vocab == 50'304);
  REQUIRE(list.offload.policy == Policy::windowed);
  REQUIRE(list.offload.chunk_size_mb == 256);
}

TEST_CASE("what a shell does with words") {
  const std::string run = "\npython pretrain_gpt.py --num-layers 2 ";
  REQUIRE(value_in("A=5" + run + "--hidden-size $A", "hidden-size") == "5");
  REQUIRE(value_in("A=5" + run + "--hidden-size ${A}12", "hidden-size") == "512");
  REQUIRE(value_in(run + "--hidden-size ${A:-7}", "hidden-size") == "7");
  REQUIRE(value_in("A=\nB=${A:-\"${C:-9}\"}" + run + "--hidden-size $B", "hidden-size") == "9");
  REQUIRE(value_in("A=64; B=$((A * (2 + 2) / 8))" + run + "--hidden-size $B", "hidden-size") == "32");
  REQUIRE(value_in("A='a b'" + run + "--load $A", "load") == "a b");
  REQUIRE(value_in("O='--bf16 --hidden-size 8'" + run + "$O", "hidden-size") == "8");
  REQUIRE(value_in("O='--bf16'\nO=\"$O --fp16\"" + run + "$O", "fp16") == "(flag)");
  REQUIRE(value_in("O+=' --bf16'\nO+=' --hidden-size 3'" + run + "$O", "hidden-size") == "3");
  REQUIRE(value_in(run + "--hidden-size=12 --bf16", "hidden-size") == "12");
  REQUIRE(value_in(run + "--hidden_size 12", "hidden-size") == "12");
  REQUIRE(value_in(run + "\\\n  --hidden-size \\\n 12 # --bf16\n", "hidden-size") == "12");
  REQUIRE(value_in(run + "--bf16 # --fp16\n", "fp16") == "(absent)");
  REQUIRE(value_in(run + "--bf16 > log.txt 2>&1", "bf16") == "(flag)");
  REQUIRE(value_in(run + "--bf16 | tee log", "bf16") == "(flag)");
  REQUIRE(value_in("CMD=\"python pretrain_gpt.py --num-layers 4 --bf16\"\nsrun -l sh -c \"${CMD}\"", "num-layers") ==
          "4");
  REQUIRE(value_in("cat <<EOF\npython x.py --num-layers 1 --bf16 --swiglu\nEOF" + run, "num-layers") == "2");
  REQUIRE(value_in("S=8B\nif [ $S = 7B ]; then\n H=1\nelif [ $S = 8B ] && [[ -n $S ]]; then\n H=2\nelse\n H=3\nfi" +
                       run + "--hidden-size $H",
                   "hidden-size") == "2");
  REQUIRE(value_in("case ${S:-big} in\n small) H=1 ;;\n b*|huge) H=2 ;;\n *) H=3 ;;\nesac" + run + "--hidden-size $H",
                   "hidden-size") == "2");
  REQUIRE(value_in("N=4\nif [ $N -gt 1 ]; then P=(--bf16); else P=(--fp16); fi" + run + "${P[@]}", "bf16") == "(flag)");
  REQUIRE(value_in("f() {\n python a.py --num-layers 2 --bf16\n}\nf", "bf16") == "(flag)");
}

TEST_CASE("the number of GPUs") {
  const auto gpus = [](const std::string& text) { return read_megatron_script(text, "t.sh").gpus; };
  REQUIRE(gpus("torchrun --nproc_per_node=4 --nnodes=3 a.py --num-layers 2") == 12);
  REQUIRE(gpus("torchrun --nproc-per-node 4 a.py --num-layers 2") == 4);
  REQUIRE_FALSE(gpus("torchrun --nproc-per-node 4 --nnodes $N a.py --num-layers 2"));
  REQUIRE_FALSE(gpus("python a.py --num-layers 2"));
  REQUIRE(gpus("#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\nsrun python a.py --num-layers 2") == 32);
  REQUIRE(gpus("#!/bin/bash\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=4\nsrun python a.py --num-layers 2") == 8);
  REQUIRE(error_of([&] {
            gpus("torchrun --nproc-per-node 999999 --nnodes 999999 a.py --num-layers 2");
          }).starts_with("t.sh:1:34: more than a million GPUs"));
}

TEST_CASE("a variable from outside matters where a known argument needs it") {
  REQUIRE(
      error_of([] { job_in("--seq-length $SEQ"); }) ==
      "t.sh:1:142: --seq-length: the variable SEQ is not set in this file; write the value, or set the variable, for "
      "example SEQ=... on a line of its own");
  const ImportedJob imported = job_in("--seq-length 128 $MORE --bf16 ${EXTRA[@]} --data-path $DATA --lr $LR");
  REQUIRE(imported.job.batch.sequence == 128);
  REQUIRE(imported.job.precision.params == Dtype::bf16);
}

TEST_CASE("unknown arguments are named with the nearest known one") {
  const ImportedJob imported = job_in("--seq-length 128 --use-distributed-optimiser --frobnicate 3");
  REQUIRE(imported.notes.size() == 3);  // and the vocabulary
  REQUIRE(imported.notes[1].argument == "use-distributed-optimiser");
  REQUIRE(imported.notes[1].text == "not known; did you mean --use-distributed-optimizer?");
  REQUIRE(imported.notes[2].kind == ImportNoteKind::not_modelled);
}

TEST_CASE("an imported job loads back, with its notes as comments") {
  const ImportedJob imported = import_megatron(path_of("mixtral_8x7b.sh"), ImportChoices());
  const std::string text = write_imported(imported, "hgx-h100");
  REQUIRE(text.starts_with("# Written by ebb import from "));
  REQUIRE(text.find("\n#   vocab-size: the vocabulary is not named") != std::string::npos);
  REQUIRE(text.find("\ncluster: hgx-h100\n") != std::string::npos);
  const Job again = read_job(parse_yaml(text, "j.yaml"), "j.yaml");
  REQUIRE(again.model == imported.job.model);
  REQUIRE(again.cluster == imported.job.cluster);
  REQUIRE(again.parallel == imported.job.parallel);
  REQUIRE(again.batch == imported.job.batch);
  REQUIRE(again.precision == imported.job.precision);
  REQUIRE(again.recompute == imported.job.recompute);
  REQUIRE(again.offload == imported.job.offload);
  REQUIRE(again.compute == imported.job.compute);
  REQUIRE(again.optimizer == imported.job.optimizer);
  REQUIRE(again.activations == imported.job.activations);
  REQUIRE(again.experts == imported.job.experts);
  REQUIRE(again.checkpoint == imported.job.checkpoint);
  REQUIRE(again.megatron == imported.job.megatron);
}

TEST_CASE("a job in any form") {
  REQUIRE(load_any_job("llama3-8b-hgx-h200").job.model.name == "llama3-8b");
  REQUIRE(load_any_job(EBB_SOURCE_DIR "/models/jobs/llama3-8b-hgx-h200.yaml").notes.empty());
  REQUIRE(load_any_job(path_of("llama3_8b_fp8.sh")).job.model.hidden == 4096);
  REQUIRE(load_any_job(path_of("test_case.yaml")).job.model.hidden == 512);
  const ImportedJob moe = load_any_job(EBB_TEST_DATA "/hf/qwen3-30b-a3b/config.json");
  REQUIRE(moe.job.parallel.expert == 8);
  REQUIRE(moe.job.parallel.gpus == 8);
  check(moe.job);
}

TEST_CASE("Hugging Face configurations have their publishers' numbers of parameters") {
  const auto total = [](const std::string& name) {
    return total_parameters(load_any_job(EBB_TEST_DATA "/hf/" + name + "/config.json").job.model).value;
  };
  REQUIRE(total("llama3-8b") == 8'030'261'248);
  REQUIRE(total("llama3.2-1b") == 1'235'814'400);
  REQUIRE(total("qwen2.5-7b") == 7'615'616'512);
  REQUIRE(total("qwen3-8b") == 8'190'735'360);
  REQUIRE(total("qwen3-30b-a3b") == 30'532'122'624);
  REQUIRE(total("mixtral-8x7b") == 46'702'792'704);
  REQUIRE(total("deepseek-v2-lite") == 15'706'484'224);
  REQUIRE(total("deepseek-v3") + 58 * 256 == 671'026'419'200);  // with its routing biases
  REQUIRE(total("gpt-oss-120b") == 116'829'156'672);
  // Rounded by their publishers: 355 B, 9.4 B and 4.19 B.
  REQUIRE(std::llabs(total("glm-4.5") - 355'000'000'000) < 4'000'000'000);
  REQUIRE(std::llabs(total("glm-4-9b") - 9'400'000'000) < 50'000'000);
  REQUIRE(std::llabs(total("nemotron-4b") - 4'190'000'000) < 5'000'000);
}

TEST_CASE("hostile scripts") {
  const auto error = [](const std::string& text) { return error_of([&] { read_megatron_script(text, "t.sh"); }); };
  REQUIRE(error("A=\"never closed\npython a.py --num-layers 2") == "t.sh:1:3: this quote is never closed; close it");
  REQUIRE(error("A=( --num-layers 2") == "t.sh:1:3: this bracket is never closed; close it");
  REQUIRE(error("python a.py --num-layers ${A:-${B:-2}") == "t.sh:1:26: this expansion is never closed; close it");
  REQUIRE(error("if [ 1 = 1 ]; then\npython a.py --num-layers 2") ==
          "t.sh:1:1: this has no end; close it with fi or esac");
  REQUIRE(error("").starts_with("t.sh: no command here has arguments of Megatron-LM"));
  // Doubling, eighty times: the values are written out at once and limited.
  std::string doubling = "A=xxxxxxxxxxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 80; ++i) doubling += "A=$A$A\n";
  REQUIRE(error(doubling + "python a.py --num-layers 2 $A").find("grow beyond any use") != std::string::npos);
  std::string array = "A=(1 2 3 4)\n";
  for (int i = 0; i < 80; ++i) array += "A+=(${A[@]})\n";
  REQUIRE(error(array).starts_with("t.sh:"));
  REQUIRE(error("A=$A\nB=${A:-$B}\npython a.py --num-layers $A").empty());  // nothing refers to itself forever
  std::string deep = "2";
  for (int i = 0; i < 40; ++i) deep = "${A:-" + deep + "}";
  REQUIRE(error("python a.py --num-layers " + deep).find("nested too deeply") != std::string::npos);
  REQUIRE(error(std::string(100'000, '!') + " python a.py --num-layers 2").empty());  // a command of that name
  std::string bangs;
  for (int i = 0; i < 50'000; ++i) bangs += "! ";
  REQUIRE(error(bangs).find("nested too deeply") != std::string::npos);
  REQUIRE(error_of([] { job_in("--seq-length 99999999999999999999"); }).find("out of range") != std::string::npos);
  REQUIRE(error_of([] {
            job_in("--seq-length 128 --num-experts 4 --moe-layer-freq [1]*1000000*1000000");
          }).find("--moe-layer-freq") == std::string::npos);
}

TEST_CASE("mutated launch files") {
  static const std::string kTokens[] = {
      "\"",    "'",  "`",   "$(",   "${",    "}",          ")",           "(",     "((", "\\", "\n",  ";;",
      "&&",    "||", "if ", "fi\n", "then ", "case x in ", "esac ",       "done ", "--", "=",  "[@]", "[*]",
      "<<E\n", "#",  " ",   "!",    "1e99",  "-1",         "99999999999", ":-",    "$A", "[[", "]]"};
  static const Cluster cluster = load_cluster(library_path(Library::clusters, "hgx-h100"));
  std::vector<std::string> texts;
  for (const char* name : {"llama3_8b_fp8.sh", "mixtral_8x7b.sh", "gpt3_175b.sh", "arguments.txt", "test_case.yaml",
                           "deepseek_v3_gb200.yaml"})
    texts.push_back(read_text_file(path_of(name), 1 << 20));
  std::mt19937 random(20261130);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = texts[static_cast<std::size_t>(round) % texts.size()];
    for (auto edits = 1 + random() % 6; edits > 0; --edits) {
      const std::size_t at = random() % (text.size() + 1);
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 20);
          break;
        case 1:
          text.insert(at, text.substr(random() % (text.size() + 1), random() % 80));
          break;
        case 2:
          text.insert(at, 1, static_cast<char>(' ' + random() % 95));
          break;
        default:
          text.insert(at, kTokens[random() % std::size(kTokens)]);
      }
    }
    const std::string error = error_of([&] {
      const bool yaml = static_cast<std::size_t>(round) % texts.size() >= 4;
      MegatronArguments arguments =
          yaml ? read_megatron_yaml(parse_yaml(text, "t.sh"), "t.sh") : read_megatron_script(text, "t.sh");
      if (!arguments.gpus) arguments.gpus = 8;
      const ImportedJob imported = job_of(arguments, cluster);
      const std::string written = write_imported(imported, "hgx-h100");
      read_job(parse_yaml(written, "j.yaml"), "j.yaml");
    });
    INFO(text);
    INFO(error);
    REQUIRE(error.size() < 1000);
    if (error.empty()) continue;
    ++refused;
    REQUIRE(error.starts_with("t.sh"));
  }
  REQUIRE(refused > 500);
}
