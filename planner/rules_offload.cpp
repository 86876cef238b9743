// Which policy goes with what. A job that names no policy is not wrong for breaking these: the policy is ruled out.
//
// Sources: pull request 6544 (c9eddcd3ae) for full-reload and chunked, dev (d48bd6be0a, since #6244) for windowed, main
// (d98e8a64dd) for cpu-adam.
#include <fmt/format.h>

#include "planner/constraints.hpp"
#include "planner/rule_lists.hpp"

namespace ebb::rule_lists {

namespace {

constexpr std::string_view kPull =
    "Megatron-LM pull request 6544 (c9eddcd3ae), megatron/core/optimizer/optimizer_config.py and "
    "megatron/training/arguments.py";
constexpr std::string_view kDev = "Megatron-LM dev d48bd6be0a (#6244), megatron/core/optimizer/optimizer_config.py";
constexpr std::string_view kBoth =
    "Megatron-LM pull request 6544 (c9eddcd3ae) and dev d48bd6be0a (#6244), "
    "megatron/core/optimizer/optimizer_config.py";

const std::vector<Policy> kReload = {Policy::full_reload, Policy::chunked};
const std::vector<Policy> kChunked = {Policy::chunked};
const std::vector<Policy> kWindowed = {Policy::windowed};
const std::vector<Policy> kStateOffload = {Policy::full_reload, Policy::chunked, Policy::windowed};

std::string with(const Situation& s, const char* what) { return fmt::format("{} {}", name_of(*s.policy), what); }

/// Who takes a policy; Ebb's own runs beside any Megatron that the user does not name.
bool taken(const Situation& s) { return !s.policy || s.megatron == Megatron::any || accepts(s.megatron, *s.policy); }

void find_request_problems(const Situation& s, Findings& out) {
  const Offload& o = s.job.offload;
  const auto problem = problem_of({o.policy, o.chunk_numel, o.chunk_size_mb, o.fraction, o.slots, o.cap});
  if (problem) out.push_back({problem->problem, problem->cure, fmt::format("offload.{}", problem->field)});
}

Rules request_rules() {
  return {
      {.id = "offload-values",
       .key = "offload",
       .find = find_request_problems,
       .reason = "",
       .source = "Ebb: the policies' parameters"},
      {.id = "policy-of-megatron",
       .key = "offload.policy",
       .policies = {kPolicies.begin(), kPolicies.end()},
       .find =
           [](const Situation& s, Findings& out) {
             if (!taken(s))
               out.push_back({fmt::format("Megatron-LM {} does not take {}", name_of(s.megatron), name_of(*s.policy)),
                              fmt::format("choose another policy, or {} {}",
                                          requirement_of(*s.policy) == "ebb" ? "leave out --megatron for" : "run",
                                          takers_of(*s.policy))});
           },
       .reason = "",
       .source = "the flags of Megatron-LM main d98e8a64dd, dev d48bd6be0a and pull request 6544 (c9eddcd3ae)"},
      {.id = "fp32-params-resident",
       .key = "precision.params",
       .policies = {Policy::full_reload, Policy::chunked, Policy::windowed, Policy::cpu_adam, Policy::pipelined,
                    Policy::tidal},
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.params == Dtype::fp32)
               out.push_back({with(s, "with fp32 parameters is nothing that Ebb plans"),
                              "use bf16 or fp16 parameters, or the policy resident"});
           },
       .reason = "an fp32 parameter is its own master weight, which cannot leave the device",
       .source = "Ebb"},
      {.id = "fsdp-not-planned",
       .key = "megatron.fsdp",
       .policies = {Policy::resident, Policy::cpu_adam, Policy::pipelined, Policy::tidal},
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.megatron.fsdp) out.push_back({"Megatron-FSDP is nothing that Ebb plans", "set fsdp: false"});
           },
       .reason = "its shards are not those of the distributed optimizer",
       .source = "Ebb"},
      {.id = "own-adam",
       .key = "optimizer.kind",
       .policies = {Policy::pipelined, Policy::tidal},
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.optimizer.kind != OptimizerKind::adam)
               out.push_back({with(s, "steps Adam only"), "set optimizer.kind: adam"});
           },
       .reason = "Ebb's runtime has no other kernel",
       .source = "Ebb"},
  };
}

Rules optimizer_kind_rules() {
  return {
      {.id = "reload-adam",
       .key = "optimizer.kind",
       .policies = kReload,
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.optimizer.kind != OptimizerKind::adam)
               out.push_back({with(s, "steps Adam only"), "set optimizer.kind: adam, or use the policy resident"});
           },
       .reason = "it moves exp_avg, exp_avg_sq and master weights of the fused Adam, by name",
       .source = kPull},
      {.id = "reload-distributed",
       .key = "optimizer.distributed",
       .policies = kReload,
       .find =
           [](const Situation& s, Findings& out) {
             if (!s.job.optimizer.distributed)
               out.push_back({with(s, "needs the distributed optimizer"), "set optimizer.distributed: true"});
           },
       .reason = "the distributed optimizer is what releases and reloads its shards",
       .source = kPull},
      {.id = "windowed-optimizer",
       .key = "optimizer.kind",
       .policies = kWindowed,
       .find =
           [](const Situation& s, Findings& out) {
             const OptimizerSettings& o = s.job.optimizer;
             const bool adam = o.kind == OptimizerKind::adam && o.distributed;
             const bool muon = o.kind == OptimizerKind::muon && o.layer_wise && !o.distributed;
             if (!adam && !muon)
               out.push_back(
                   {"windowed takes Adam with the distributed optimizer, or Muon with the layer-wise one and its "
                    "compact layout",
                    "set optimizer: {kind: adam, distributed: true}, or {kind: muon, layer_wise: true, distributed: "
                    "false}"});
           },
       .reason = "other optimizers do not lend their state to the windows",
       .source = kDev},
      {.id = "windowed-muon-bf16",
       .key = "precision.params",
       .policies = kWindowed,
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.optimizer.kind == OptimizerKind::muon && s.job.precision.params != Dtype::bf16)
               out.push_back({"windowed with Muon needs bf16 parameters", "set precision.params: bf16"});
           },
       .reason = "only the compact bf16 layout of the layer-wise optimizer is offloaded",
       .source = kDev},
  };
}

Rules combination_rules() {
  return {
      {.id = "one-offload",
       .key = "megatron.optimizer_cpu_offload",
       .policies = kStateOffload,
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.megatron.optimizer_cpu_offload)
               out.push_back(
                   {with(s, "does not go with --optimizer-cpu-offload"), "leave one of them out: pick one strategy"});
           },
       .reason = "two strategies would own the same state",
       .source = kBoth},
      {.id = "reload-async-save",
       .key = "checkpoint.async_save",
       .policies = kReload,
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.checkpoint.async_save)
               out.push_back({with(s, "does not go with asynchronous saves"), "set async_save: false"});
           },
       .reason = "the background writer would race the next step's offloads, which overwrite the same host buffers",
       .source = kPull},
      {.id = "windowed-async-save",
       .key = "checkpoint.async_save",
       .policies = kWindowed,
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.checkpoint.async_save && s.job.checkpoint.save_optimizer)
               out.push_back({"windowed does not go with asynchronous saves of the optimizer",
                              "set async_save: false, or save_optimizer: false"});
           },
       .reason = "the background writer would race the next step's offloads, which overwrite the same host buffers",
       .source = kDev},
      {.id = "offload-optimizer-graph",
       .key = "megatron.optimizer_cuda_graph",
       .policies = kStateOffload,
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.megatron.optimizer_cuda_graph)
               out.push_back(
                   {with(s, "does not go with a CUDA graph of the optimizer"), "set optimizer_cuda_graph: false"});
           },
       .reason = "a captured step replays on pointers that offloading has freed",
       .source = kBoth},
      {.id = "offload-full-iteration-graph",
       .key = "megatron.cuda_graphs",
       .policies = kStateOffload,
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.megatron.cuda_graphs == CudaGraphs::full_iteration)
               out.push_back({with(s, "does not go with full-iteration CUDA graphs"),
                              "set cuda_graphs: local, transformer_engine or none"});
           },
       .reason =
           "the reload starts in gradient finalization, inside the captured iteration, with new storage each step",
       .source = kDev},
      {.id = "reload-rl-offload",
       .key = "megatron.rl_offload_optimizer",
       .policies = kReload,
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.megatron.rl_offload_optimizer)
               out.push_back(
                   {with(s, "does not go with RL optimizer offload during inference"), "leave one of them out"});
           },
       .reason = "its raw reads touch released storage",
       .source = kPull},
      {.id = "offload-fsdp",
       .key = "megatron.fsdp",
       .policies = kStateOffload,
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.megatron.fsdp) out.push_back({with(s, "does not go with Megatron-FSDP"), "set fsdp: false"});
           },
       .reason = "FSDP shards and places the state itself",
       .source = kBoth},
      {.id = "chunked-fp4-gather",
       .key = "precision.fp4.param_gather",
       .policies = kChunked,
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.fp4_param_gather)
               out.push_back(
                   {"chunked does not go with FP4 parameter gather", "use full-reload, or leave fp4.param_gather out"});
           },
       .reason = "there is no quantisation of FP4 parameters chunk by chunk",
       .source = kPull},
      {.id = "chunked-mxfp8-reuse",
       .key = "precision.fp8.reuse_grad_buffer",
       .policies = kChunked,
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.reuses_grad_buffer())
               out.push_back({"chunked refuses the reuse of the gradient buffer that MXFP8 parameter gather needs",
                              "use full-reload or windowed, or leave fp8.param_gather out"});
           },
       .reason = "all masters are copied into that buffer at once, after the chunks have left",
       .source = kPull},
  };
}

}  // namespace

Rules offload_rules() {
  Rules rules = request_rules();
  for (const Rules& more : {optimizer_kind_rules(), combination_rules(), offload_state_rules()})
    rules.insert(rules.end(), more.begin(), more.end());
  return rules;
}

}  // namespace ebb::rule_lists
