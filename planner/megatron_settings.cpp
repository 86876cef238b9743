// Recomputation, offloading, optimizer, kernels, routing, checkpoints and runtime out of Megatron-LM's arguments.
// Source of names and defaults: Megatron-LM main, arguments.py; the offload flags of dev (#6244) and pull request 6544.
#include <fmt/format.h>

#include <algorithm>

#include "models/job_words.hpp"
#include "planner/megatron_parts.hpp"

namespace ebb {

namespace {

constexpr std::string_view kModules[] = {"core_attn", "moe_act", "layernorm",     "mla_up_proj",
                                         "mlp",       "moe",     "shared_experts"};

void import_modules(const MegatronImport& in, Recompute& recompute) {
  std::vector<std::string> modules = in.values.words("recompute-modules");
  if (in.values.flag("moe-layer-recompute")) modules.emplace_back("moe");
  for (const std::string& module : modules) {
    const bool known = std::find(std::begin(kModules), std::end(kModules), module) != std::end(kModules);
    const bool again = std::find(recompute.modules.begin(), recompute.modules.end(), module) != recompute.modules.end();
    if (!known)
      in.note(ImportNoteKind::not_modelled, "recompute-modules",
              fmt::format("the module \"{}\"", module.substr(0, 40)));
    else if (!again)
      recompute.modules.push_back(module);
  }
  if (recompute.modules.empty()) recompute.modules = {"core_attn"};
}

void import_optimizer(const MegatronImport& in, OptimizerSettings& optimizer) {
  static constexpr Choice<OptimizerKind> kKinds[] = {{"adam", OptimizerKind::adam},
                                                     {"sgd", OptimizerKind::sgd},
                                                     {"muon", OptimizerKind::muon},
                                                     {"dist_muon", OptimizerKind::muon},
                                                     {"lion", OptimizerKind::lion}};
  const MegatronValues& values = in.values;
  optimizer.kind = values.choice<OptimizerKind>("optimizer", OptimizerKind::adam, kKinds);
  optimizer.distributed = values.flag("use-distributed-optimizer");
  // Muon needs whole matrices: its distributed form gives whole parameters to ranks.
  optimizer.layer_wise =
      optimizer.kind == OptimizerKind::muon && (optimizer.distributed || values.text("optimizer", "") == "dist_muon");
  // Its distributed optimizer stands beside, for what Adam steps, where buffers are laid out for whole parameters.
  if (optimizer.layer_wise) optimizer.distributed = !values.flag("no-use-layer-wise-param-layout");
  optimizer.decoupled_lr = values.has("decoupled-lr");
}

void import_activations(const MegatronImport& in, ActivationSettings& settings) {
  static constexpr Choice<CrossEntropy> kFused[] = {{"native", CrossEntropy::native}, {"te", CrossEntropy::te}};
  const MegatronValues& values = in.values;
  settings.attention_dropout = values.number("attention-dropout", 0.1, 0, 1);
  settings.hidden_dropout = values.number("hidden-dropout", 0.1, 0, 1);
  settings.cross_entropy = values.choice<CrossEntropy>("cross-entropy-fusion-impl", CrossEntropy::native, kFused);
  if (!values.flag("cross-entropy-loss-fusion")) settings.cross_entropy = CrossEntropy::unfused;
  settings.gradient_fusion = !values.flag("no-gradient-accumulation-fusion");
  settings.bias_fusion = !values.flag(in.job().model.gated ? "no-bias-swiglu-fusion" : "no-bias-gelu-fusion");
  settings.rope_fusion = !values.flag("no-rope-fusion");
  settings.loader_mask = !values.flag("no-create-attention-mask-in-dataloader");
  settings.deterministic = values.flag("deterministic-mode");
}

/// Transformer Engine's flash and fused kernels take half precision only; without them its own unfused attention runs.
/// Source: Transformer Engine pytorch/attention/dot_product_attention/utils.py, get_attention_backend.
Attention attention_of(const MegatronImport& in) {
  static constexpr Choice<Attention> kBackends[] = {{"auto", Attention::flash},
                                                    {"flash", Attention::flash},
                                                    {"fused", Attention::flash},
                                                    {"unfused", Attention::unfused},
                                                    {"local", Attention::local}};
  const MegatronValues& values = in.values;
  const Attention backend = values.choice<Attention>("attention-backend", Attention::flash, kBackends);
  static constexpr Choice<bool> kLocal[] = {
      {"local", true}, {"transformer_engine", false}, {"inference_optimized", false}};
  if (values.choice<bool>("transformer-impl", false, kLocal)) return Attention::local;
  if (backend != Attention::flash) return backend;
  const bool chosen = values.has("attention-backend") && values.text("attention-backend", "") != "auto";
  const bool none_allowed =
      values.environment("NVTE_FLASH_ATTN") == "0" && values.environment("NVTE_FUSED_ATTN") == "0";
  const bool half = in.job().precision.params != Dtype::fp32;
  return !half || (!chosen && none_allowed) ? Attention::unfused : Attention::flash;
}

void import_experts(const MegatronImport& in, RoutingSettings& experts) {
  const MegatronValues& values = in.values;
  experts.dispatcher = values.choice<Dispatcher>("moe-token-dispatcher-type", Dispatcher::allgather, kDispatchers);
  const std::optional<double> factor = values.find_number("moe-expert-capacity-factor");
  if (factor && *factor > 0)  // negative: no limit
    experts.capacity_factor = values.number("moe-expert-capacity-factor", 1, 0.01, 1000);
  experts.pad_to_capacity = values.flag("moe-pad-expert-input-to-capacity");
  experts.grouped_matmul = values.flag("moe-grouped-gemm");
  experts.permute_fusion = values.flag("moe-permute-fusion");
}

void import_checkpoint(const MegatronImport& in, CheckpointSettings& checkpoint) {
  static constexpr Choice<CheckpointFormat> kFormats[] = {{"torch", CheckpointFormat::torch},
                                                          {"torch_dist", CheckpointFormat::torch_dist},
                                                          {"zarr", CheckpointFormat::torch_dist},
                                                          {"torch_dcp", CheckpointFormat::torch_dist},
                                                          {"fsdp_dtensor", CheckpointFormat::fsdp_dtensor}};
  const MegatronValues& values = in.values;
  checkpoint.format = values.choice<CheckpointFormat>("ckpt-format", CheckpointFormat::torch_dist, kFormats);
  const std::string format = values.text("ckpt-format", "");
  if (format == "zarr" || format == "torch_dcp")
    in.note(ImportNoteKind::not_modelled, "ckpt-format", fmt::format("{}; taken as torch_dist", format));
  if (values.flag("dist-ckpt-optim-fully-reshardable")) checkpoint.sharding = CheckpointSharding::fully_reshardable;
  checkpoint.async_save = values.flag("async-save");
  checkpoint.save_optimizer = !values.flag("no-save-optim");
  const bool finetune = values.flag("finetune");
  if (!values.has("load") && !(finetune && values.has("pretrained-checkpoint"))) return;
  checkpoint.start = finetune ? Start::finetune : values.flag("no-load-optim") ? Start::no_load_optim : Start::resume;
}

void import_runtime(const MegatronImport& in, RuntimeSettings& settings) {
  static constexpr Choice<CudaGraphs> kGraphs[] = {{"none", CudaGraphs::none},
                                                   {"local", CudaGraphs::local},
                                                   {"transformer_engine", CudaGraphs::transformer_engine},
                                                   {"full_iteration", CudaGraphs::full_iteration}};
  const MegatronValues& values = in.values;
  settings.cuda_graphs = values.choice<CudaGraphs>("cuda-graph-impl", CudaGraphs::none, kGraphs);
  if (values.flag("enable-cuda-graph")) settings.cuda_graphs = CudaGraphs::local;
  if (values.flag("external-cuda-graph")) settings.cuda_graphs = CudaGraphs::transformer_engine;
  const std::vector<std::string> scopes = values.words("cuda-graph-scope");
  if (settings.cuda_graphs == CudaGraphs::local &&
      std::find(scopes.begin(), scopes.end(), "full_iteration") != scopes.end())
    settings.cuda_graphs = CudaGraphs::full_iteration;
  settings.optimizer_cuda_graph = values.flag("optimizer-cuda-graph");
  settings.tensor_overlap = in.job().parallel.tensor > 1 && values.flag("tp-comm-overlap");
  settings.fsdp = values.flag("use-megatron-fsdp") || values.flag("use-custom-fsdp");
  settings.rl_offload_optimizer = values.flag("rl-offload-optimizer-during-inference");
  settings.empty_cache_level = values.count("empty-unused-memory-level", 0, 0);
  if (settings.empty_cache_level > 2) values.reject("empty-unused-memory-level", "is out of range", "use 0, 1 or 2");
  settings.nccl_graph_register = values.environment("NCCL_GRAPH_REGISTER") != "0";
  for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    std::string value = values.environment(name);
    std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : static_cast<char>(c);
    });
    if (value.find("expandable_segments:true") != std::string::npos) settings.expandable_segments = true;
  }
}

}  // namespace

void import_recompute(const MegatronImport& in) {
  const MegatronValues& values = in.values;
  Recompute& recompute = in.job().recompute;
  static constexpr Choice<RecomputeGranularity> kWords[] = {{"selective", RecomputeGranularity::selective},
                                                            {"full", RecomputeGranularity::full}};
  recompute.granularity =
      values.choice<RecomputeGranularity>("recompute-granularity", RecomputeGranularity::none, kWords);
  if (values.flag("recompute-activations") ||
      (recompute.granularity == RecomputeGranularity::none && values.flag("moe-layer-recompute")))
    recompute.granularity = RecomputeGranularity::selective;
  if (recompute.granularity == RecomputeGranularity::selective) import_modules(in, recompute);
  if (recompute.granularity != RecomputeGranularity::full) return;
  recompute.method = values.choice<std::string>("recompute-method", "", kRecomputeMethods);
  if (recompute.method.empty())
    values.reject("recompute-granularity", "full recomputation needs a method",
                  "add --recompute-method uniform or block");
  recompute.layers = values.count("recompute-num-layers", 1);
  if (recompute.layers > 100'000) values.reject("recompute-num-layers", "is out of range", "use at most 100000");
}

void import_offload(const MegatronImport& in) {
  const MegatronValues& values = in.values;
  Offload& offload = in.job().offload;
  const bool chunked = values.flag("offload-optimizer-states");
  const bool windowed = values.flag("chunked-optimizer-state-offload");
  const bool cpu_adam = values.flag("optimizer-cpu-offload");
  if (chunked && windowed)
    values.reject("chunked-optimizer-state-offload",
                  "optimizer state is offloaded in two ways: only one of the two trees takes each flag",
                  "leave one of the flags out");
  if (chunked) {
    const std::int64_t numel = values.count("offload-optimizer-states-chunk-numel", 0, 0);
    offload.policy = numel > 0 ? Policy::chunked : Policy::full_reload;
    if (numel > 0) offload.chunk_numel = Numel{numel};
  }
  if (windowed) {
    offload.policy = Policy::windowed;
    offload.chunk_size_mb = values.count("optimizer-state-offload-chunk-size-mb", 0, 0);
    offload.fraction = values.number("optimizer-state-offload-fraction", 1, 1e-9, 1);
  }
  in.job().megatron.optimizer_cpu_offload = cpu_adam && (chunked || windowed);  // a rule refuses it
  if (chunked || windowed) return;
  if (cpu_adam && values.number("optimizer-offload-fraction", 1, 0, 1) > 0) {
    offload.policy = Policy::cpu_adam;
    offload.fraction = values.number("optimizer-offload-fraction", 1, 0, 1);
  }
}

void import_settings(const MegatronImport& in) {
  Job& job = in.job();
  import_optimizer(in, job.optimizer);
  import_activations(in, job.activations);
  job.compute.attention = attention_of(in);
  import_experts(in, job.experts);
  import_checkpoint(in, job.checkpoint);
  import_runtime(in, job.megatron);
}

}  // namespace ebb
