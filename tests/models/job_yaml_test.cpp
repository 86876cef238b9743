// Job files: defaults, the three ways to name a model or a cluster, and each mistake with its place and cure.
#include "models/job_yaml.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "models/library.hpp"
#include "models/model_yaml.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;

namespace {

Job job(const std::string& text) { return read_job(parse_yaml(text, "j.yaml"), "j.yaml"); }
std::string job_error(const std::string& text) {
  return error_of([&] { job(text); });
}

const std::string kSmall =
    "model: llama3-8b\ncluster: hgx-h200\nparallel: {gpus: 8, tensor: 2}\nbatch: {global: 64, sequence: 8192}\n";

}  // namespace

TEST_CASE("defaults, as the contract of a job file states them") {
  const Job j = job(kSmall);
  REQUIRE(j.name == "j");
  REQUIRE(j.model.layers == 32);
  REQUIRE(j.cluster.gpu.name == "NVIDIA H200");
  REQUIRE(j.parallel.expert_tensor == 2);  // as tensor
  REQUIRE(j.parallel.overlap_grad_reduce);
  REQUIRE(j.batch.micro == 1);
  REQUIRE(j.precision.state_bytes() == 12);
  REQUIRE(j.recompute.granularity == RecomputeGranularity::none);
  REQUIRE(j.recompute.modules.empty());
  REQUIRE_FALSE(j.offload.policy);
  REQUIRE_FALSE(j.budget.device);
  REQUIRE_FALSE(j.compute.step_seconds);
  REQUIRE(j.micro_batches() == 16);
}

TEST_CASE("every key") {
  const Job j = job(
      "model: llama3-8b\ncluster: hgx-h200\n"
      "parallel: {gpus: 64, tensor: 2, pipeline: 4, virtual_pipeline: 2, context: 2, expert: 2, expert_tensor: 1,\n"
      "           sequence: true, optimizer_instances: 2, overlap_grad_reduce: false, overlap_param_gather: false,\n"
      "           pipeline_layout: \"Et*8|(t*8|)*2t*8L\", bucket_numel: 40e6}\n"
      "batch: {micro: 2, global: 64, sequence: 8192}\n"
      "precision: {params: bf16, grads: bf16, exp_avg: bf16, exp_avg_sq: bf16, master: fp32,\n"
      "            fp8: {recipe: blockwise, param_gather: true}}\n"
      "recompute: {granularity: full, method: block, layers: 3}\n"
      "offload: {policy: chunked, chunk_numel: 671088640}\n"
      "budget: {device: 130GiB, host: 1800GiB}\n"
      "compute: {step_seconds: 3.1, attention: local, adam: foreach, adam_by_policy: {cpu-adam: fused}}\n");
  REQUIRE(j.parallel.expert_tensor == 1);
  REQUIRE(j.parallel.bucket_numel->value == 40000000);
  REQUIRE(j.parallel.pipeline_layout == "Et*8|(t*8|)*2t*8L");
  REQUIRE(j.precision.fp8 == Fp8Recipe::blockwise);
  REQUIRE(j.precision.state_bytes() == 8);
  REQUIRE(j.recompute.method == "block");
  REQUIRE(j.offload.policy == Policy::chunked);
  REQUIRE(j.offload.chunk_numel->value == 671088640);
  REQUIRE(j.budget.device->value == 139586437120);
  REQUIRE(j.compute.step_seconds->value == 3.1);
  REQUIRE(j.adam_of(Policy::cpu_adam) == AdamKernel::fused);
  REQUIRE(j.adam_of(Policy::chunked) == AdamKernel::foreach);
}

TEST_CASE("places lead later checks to the line") {
  const Job j = job(kSmall);
  REQUIRE(j.place_of("parallel.tensor").text() == "j.yaml:3:29");
  REQUIRE(j.place_of("parallel.pipeline").text() == "j.yaml:3:1");  // absent: its block
  REQUIRE(j.place_of("model").text() == "j.yaml:1:8");
  REQUIRE(j.place_of("model.heads").text() == "j.yaml:1:8");
  REQUIRE(j.place_of("budget.device").text() == "j.yaml");
  REQUIRE(Job{}.place_of("batch").text() == "");
}

TEST_CASE("mistakes in a job file") {
  REQUIRE(job_error("modle: llama3-8b\n") == "j.yaml:1:1: unknown key \"modle\"; did you mean \"model\"?");
  REQUIRE(job_error("model: llama3-8b\n") == "j.yaml:1:1: the key \"cluster\" is missing; add it");
  REQUIRE(job_error("model: llama3-8b\ncluster: hgx-h200\nparallel: {tensor: 2}\nbatch: {global: 1, sequence: 1}\n") ==
          "j.yaml:3:11: the key \"parallel.gpus\" is missing; add it");
  REQUIRE(job_error("model: llama3-8b\ncluster: hgx-h200\nparallel: 8\nbatch: {global: 1, sequence: 1}\n") ==
          "j.yaml:3:11: \"parallel\" must be a mapping, found \"8\"; write `key: value` with keys like gpus");
  REQUIRE(job_error(kSmall + "budget: {device: -20GiB}\n") ==
          "j.yaml:5:18: \"-20GiB\" is negative; use a number that is zero or more");
  REQUIRE(job_error(kSmall + "budget: {device: .NaN}\n") ==
          "j.yaml:5:18: \".NaN\" is not a number; write it like 20GiB or 1.5e9");
  REQUIRE(job_error(kSmall + "compute: {step_seconds: nan}\n") ==
          "j.yaml:5:25: \"nan\" is not a number; write it like 0.34s or 3us");
  REQUIRE(job_error(kSmall + "compute: {step_seconds: 0}\n").starts_with("j.yaml:5:25: a step of no time"));
  REQUIRE(job_error(kSmall + "compute: {adam_by_policy: {windowd: fused}}\n") ==
          "j.yaml:5:28: unknown key \"compute.adam_by_policy.windowd\"; did you mean \"windowed\"?");
  REQUIRE(job_error(kSmall + "precision: {exp_avg: fp64}\n") ==
          "j.yaml:5:22: \"precision.exp_avg\" cannot be \"fp64\"; did you mean \"fp32\"?");
  REQUIRE(job_error(kSmall + "precision: {fp8: {param_gather: true}}\n") ==
          "j.yaml:5:33: FP8 parameter gather needs an FP8 recipe; give precision.fp8.recipe, or leave param_gather "
          "out");
  REQUIRE(job_error(kSmall + "recompute: {granularity: selective, layers: 2}\n") ==
          "j.yaml:5:45: \"recompute.layers\" belongs to full recomputation; use granularity: full, or leave it out");
  REQUIRE(job_error(kSmall + "recompute: {granularity: selective, modules: [core_attn, mpl]}\n") ==
          "j.yaml:5:58: unknown module \"mpl\"; did you mean \"mlp\"?");
  REQUIRE(job_error(kSmall + "recompute: {granularity: selective, modules: core_attn}\n") ==
          "j.yaml:5:46: \"recompute.modules\" must be a list, found \"core_attn\"; write it like [first, second]");
}

TEST_CASE("what a run of the job held beyond Ebb's account is read and written") {
  const Job plain = job(kSmall);
  REQUIRE(plain.measured == Measured{});
  REQUIRE(write_job(plain).find("\nmeasured:") == std::string::npos);
  const std::string text = kSmall + "measured: {resident_remainder: 97MiB, peak_remainder: 512}\n";
  const Job learned = job(text);
  REQUIRE(learned.measured == Measured{97_MiB, Bytes{512}});
  REQUIRE(read_job(parse_yaml(write_job(learned), "w.yaml"), "w.yaml").measured == learned.measured);
  REQUIRE(
      job_error(kSmall + "measured: {resident: 1}\n").starts_with("j.yaml:5:12: unknown key \"measured.resident\""));
  REQUIRE(job_error(kSmall + "measured: {peak_remainder: -1}\n").starts_with("j.yaml:5:28: "));
}

TEST_CASE("mistakes in the offload block") {
  REQUIRE(job_error(kSmall + "offload: {policy: chunkd}\n") ==
          "j.yaml:5:19: \"offload.policy\" cannot be \"chunkd\"; did you mean \"chunked\"?");
  REQUIRE(job_error(kSmall + "offload: {policy: windowed, chunk_numel: 1e9}\n") ==
          "j.yaml:5:42: the policy windowed has no chunk_numel; leave it out (windowed takes chunk_size_mb)");
  REQUIRE(job_error(kSmall + "offload: {chunk_numel: 0}\n")
              .starts_with("j.yaml:5:24: a chunk of no elements; use a positive number"));
  REQUIRE(job_error(kSmall + "offload: {fraction: 1.5}\n") ==
          "j.yaml:5:21: the fraction is 1.5; use more than 0 and at most 1");
  REQUIRE(job_error(kSmall + "offload: {slots: 0}\n") ==
          "j.yaml:5:18: \"offload.slots\" is 0; use a whole number from 1 to 1024");
  REQUIRE(job_error(kSmall + "offload: {policy: auto, chunk_numel: auto, fraction: auto, slots: auto}\n") == "");
}

TEST_CASE("a model or a cluster that does not exist") {
  const std::string rest = "cluster: hgx-h200\nparallel: {gpus: 8}\nbatch: {global: 64, sequence: 8192}\n";
  REQUIRE(job_error("model: lama3-8b\n" + rest) ==
          "j.yaml:1:8: unknown model \"lama3-8b\"; did you mean \"llama3-8b\"?");
  REQUIRE(job_error("model: no/where.yaml\n" + rest)
              .starts_with("j.yaml:1:8: there is no file \"no/where.yaml\"; known models in the library: "));
  REQUIRE(job_error("model: config.json\n" + rest).starts_with("j.yaml:1:8: there is no file \"config.json\""));
  REQUIRE(job_error("model: llama3-8b\ncluster: c.json\nparallel: {gpus: 8}\nbatch: {global: 1, sequence: 1}\n") ==
          "j.yaml:2:10: \"c.json\": JSON is not read as a cluster; write its figures as YAML");
  REQUIRE(job_error("model: llama3-8b\ncluster: hgx-h20\nparallel: {gpus: 8}\nbatch: {global: 1, sequence: 1}\n") ==
          "j.yaml:2:10: unknown cluster \"hgx-h20\"; did you mean \"hgx-h200\"?");
  REQUIRE(job_error("model: [a]\n" + rest) ==
          "j.yaml:1:8: \"model\" must be a single value, found a list; write one value after the colon");
  REQUIRE(job_error("model: {layers: 2}\n" + rest) == "j.yaml:1:8: the key \"model.hidden\" is missing; add it");
}

TEST_CASE("a model by path stands relative to the job's directory, and its mistakes are placed in its own file") {
  namespace fs = std::filesystem;
  const fs::path directory = "job_yaml_test.tmp";
  fs::create_directories(directory);
  std::ofstream(directory / "tiny.yaml") << "layers: 2\nhidden: 64\nffn: 256\nheads: 4\nvocab: 1000\n";
  std::ofstream(directory / "bad.yaml") << "layers: 2\nhiden: 64\n";
  const std::string rest = "cluster: hgx-h200\nparallel: {gpus: 8}\nbatch: {global: 64, sequence: 8192}\n";
  std::ofstream(directory / "good.job.yaml") << "model: ./tiny.yaml\n" << rest;
  std::ofstream(directory / "bad.job.yaml") << "model: bad.yaml\n" << rest;
  const Job loaded = load_job((directory / "good.job.yaml").string());
  const std::string error = error_of([&] { load_job((directory / "bad.job.yaml").string()); });
  fs::remove_all(directory);
  REQUIRE(loaded.model.name == "tiny");
  REQUIRE(loaded.name == "good.job");
  REQUIRE(error.starts_with("job_yaml_test.tmp/bad.yaml:2:1: unknown key \"hiden\"; did you mean \"hidden\"?"));
}

TEST_CASE("a job that does not exist") {
  REQUIRE(error_of([] { load_job("measured-1.8b-1xh20.yaml"); }) ==
          "measured-1.8b-1xh20.yaml: there is no such file; did you mean \"measured-1.8b-1xh200\"?");
  REQUIRE(load_job("measured-1.8b-1xh200").batch.sequence == 2048);  // by its library name
}

TEST_CASE("EBB_LIBRARY names another library") {
  ::setenv("EBB_LIBRARY", "no-such-directory", 1);
  const auto names = library_names(Library::models);
  const std::string error = job_error(kSmall);
  ::unsetenv("EBB_LIBRARY");
  REQUIRE(names.empty());
  REQUIRE(error ==
          "j.yaml:1:8: unknown model \"llama3-8b\"; the library no-such-directory has none: set EBB_LIBRARY, or give a "
          "path");
}
