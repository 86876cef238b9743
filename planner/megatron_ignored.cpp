#include "planner/megatron_ignored.hpp"

#include <algorithm>

namespace ebb {

namespace {

// Names by subject.
constexpr std::string_view kIgnored[] = {
    // Learning rate.
    "lr lr-decay-style lr-wsd-decay-style lr-decay-iters lr-decay-samples lr-wsd-decay-samples lr-wsd-decay-iters "
    "lr-warmup-fraction lr-warmup-iters lr-warmup-samples lr-warmup-init min-lr warmup "
    "override-opt_param-scheduler override-opt-param-scheduler use-checkpoint-opt_param-scheduler "
    "use-checkpoint-opt-param-scheduler decoupled-min-lr",
    // Regularisation.
    "weight-decay start-weight-decay end-weight-decay weight-decay-incr-style apply-wd-to-qk-layernorm clip-grad "
    "adam-beta1 adam-beta2 adam-eps sgd-momentum",
    // Initialisation.
    "seed data-parallel-random-init init-method-std embedding-init-method-std init-method-xavier-uniform",
    // Length of training.
    "train-iters train-samples exit-interval exit-duration-in-mins exit-signal-handler exit-on-missing-checkpoint "
    "iterations-to-skip decrease-batch-size-if-needed skip-train full-validation multiple-validation-sets "
    "eval-iters eval-interval test-mode",
    // Checks.
    "no-check-for-nan-in-loss-and-grad check-for-nan-in-loss-and-grad check-for-spiky-loss check-for-large-grads "
    "check-weight-hash-across-dp-replicas-interval calculate-per-token-loss train-sync-interval",
    // Profiling.
    "profile profile-step-start profile-step-end profile-ranks use-pytorch-profiler record-memory-history "
    "memory-snapshot-path nvtx-ranges result-rejected-tracker-filename",
    // Processes and groups.
    "manual-gc manual-gc-interval no-manual-gc-eval disable-gloo-process-groups enable-gloo-process-groups "
    "high-priority-stream-groups distributed-backend distributed-timeout-minutes "
    "distributed-timeout-seconds-after-init local-rank lazy-mpu-init use-cpu-initialization "
    "init-model-with-meta-device nccl-communicator-config-path use-sharp sharp-enabled-group "
    "disable-symmetric-registration pipeline-model-parallel-comm-backend use-ring-exchange-p2p "
    "no-scatter-gather-tensors-in-pipeline no-overlap-p2p-communication overlap-p2p-communication-warmup-flush "
    "no-align-grad-reduce no-align-param-gather ddp-average-in-collective no-gradient-reduce-div-fusion "
    "cp-comm-type",
    // Overlap of tensor-parallel communication.
    "tp-comm-overlap-cfg disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs tp-comm-overlap-rs-dgrad "
    "disable-tp-comm-bulk-dgrad disable-tp-comm-bulk-wgrad tp-comm-bootstrap-backend disable-tp-comm-split-ag "
    "disable-tp-comm-split-rs symmetric-ar-type",
    // Kernels.
    "use-flash-attn use-mcore-models no-masked-softmax-fusion no-bias-dropout-fusion no-persist-layer-norm "
    "no-async-tensor-model-parallel-allreduce use-te-activation-func use-fused-weighted-squared-relu "
    "no-clone-scatter-output-in-embedding dataloader-type enable-experimental te-rng-tracker "
    "inference-rng-tracker cuda-graph-warmup-steps cuda-graph-modules use-transformer-engine-op-fuser "
    "fallback-to-eager-attn",
    // Numerics.
    "norm-epsilon apply-layernorm-1p apply-residual-connection-post-layernorm openai-gelu "
    "activation-func-clamp-value glu-linear-offset onnx-safe bert-no-binary-head qk-l2-norm qk-clip qk-clip-alpha "
    "qk-clip-threshold log-max-attention-logit attention-softmax-in-fp32 apply-query-key-layer-scaling "
    "fp16-lm-cross-entropy disable-bf16-reduced-precision-matmul",
    // Rotary embeddings.
    "rotary-base rotary-percent rotary-interleaved rotary-seq-len-interpolation-factor rotary-scaling-factor "
    "use-rope-scaling rope-scaling-factor rope-type no-rope-freq mrope-section mscale mscale-all-dim "
    "original-max-position-embeddings beta-fast beta-slow relative-attention-num-buckets "
    "relative-attention-max-distance cache-mla-latents mla-down-proj-fusion mtp-loss-scaling-factor",
    // Routing.
    "moe-router-load-balancing-type moe-router-dtype moe-router-fusion moe-router-score-function "
    "moe-router-pre-softmax moe-router-num-groups moe-router-group-topk moe-router-topk-scaling-factor "
    "moe-router-enable-expert-bias moe-router-bias-update-rate moe-router-force-load-balancing moe-aux-loss-coeff "
    "moe-z-loss-coeff moe-input-jitter-eps moe-per-layer-logging moe-enable-deepep moe-deepep-num-sms "
    "moe-hybridep-num-sms moe-flex-dispatcher-backend moe-token-drop-policy moe-apply-probs-on-input "
    "moe-upcycling-granularity moe-mlp-glu-interleave-size moe-pad-experts-for-cuda-graph-inference",
    // Loss scale and FP8 recipes.
    "loss-scale initial-loss-scale min-loss-scale loss-scale-window hysteresis fp8-margin fp8-interval "
    "fp8-amax-history-len fp8-amax-compute-algo fp8-quantizer-factory fp4-quantizer-factory "
    "keep-fp8-transpose-cache",
    // Checkpoint files.
    "save save-interval persistent-save-interval save-retain-interval no-save-rng no-load-rng "
    "load-main-params-from-ckpt no-strict-fsdp-dtensor-load non-persistent-save-interval ckpt-step "
    "no-initialization no-use-tokenizer-model-from-checkpoint-args use-dist-ckpt use-persistent-ckpt-worker "
    "auto-detect-ckpt-format dist-ckpt-format dist-ckpt-strictness ckpt-fully-parallel-save "
    "ckpt-fully-parallel-load ckpt-assume-constant-structure async-strategy async-ckpt-use-cpu-shm "
    "async-ckpt-use-cached-structure verify-integrity replication replication-jump replication-factor",
    // Data.
    "data-path train-data-path valid-data-path test-data-path data-args-path per-split-data-args-path "
    "data-cache-path split mock-data num-workers no-mmap-bin-files reset-position-ids reset-attention-mask "
    "eod-mask-loss num-dataset-builder-threads object-storage-cache-path mid-level-dataset-surplus "
    "allow-ambiguous-pad-tokens sample-rate mask-prob short-seq-prob fim-data fim-rate fim-spm-rate "
    "fim-split-sample fim-fragment-rate fim-no-prefix fim-prefix-token fim-middle-token fim-suffix-token "
    "fim-pad-token fim-eod-token",
    // Tokenizer.
    "tokenizer-model tokenizer-metadata vocab-file merge-file vocab-extra-ids legacy-tokenizer trust-remote-code "
    "sft sft-tokenizer-prompt-format tokenizer-hf-include-special-tokens tokenizer-hf-no-include-special-tokens",
    // Logging.
    "log-interval timing-log-level timing-log-option no-barrier-with-level-1-timing logging-level "
    "error-injection-rate error-injection-type rerun-mode disable-msc dump-param-to-param-group-map "
    "suggested-communication-unit-size enable-ft-package calc-ft-timeouts config-logger-dir app-tag-run-name "
    "app-tag-run-version",
    // Others.
    "refit-method max-tokens-to-oom flash-decode decode-only-cuda-graphs disable-chunked-prefill "
    "disable-straggler-on-startup adlr-autoresume adlr-autoresume-interval run-workload-inspector-server "
    "no-one-logger enable-one-logger no-load-balancing exit-on-nan",
};

// All arguments that begin so.
constexpr std::string_view kIgnoredFamilies[] = {"log-",          "wandb-",          "tensorboard-", "rl-",
                                                 "grpo-",         "langrl-",         "inference-",   "inprocess-",
                                                 "straggler-",    "retro-",          "ft-",          "one-logger-",
                                                 "muon-",         "tiktoken-",       "dino-",        "swin-",
                                                 "biencoder-",    "retriever-",      "bert-",        "ict-",
                                                 "ckpt-convert-", "non-persistent-", "no-log-",      "e2e-",
                                                 "export-",       "no-ft-"};

std::vector<std::string_view> split_names() {
  std::vector<std::string_view> names;
  for (std::string_view group : kIgnored)
    while (!group.empty()) {
      const std::size_t end = std::min(group.find(' '), group.size());
      names.push_back(group.substr(0, end));
      group.remove_prefix(std::min(end + 1, group.size()));
    }
  return names;
}

}  // namespace

const std::vector<std::string_view>& ignored_arguments() {
  static const std::vector<std::string_view> names = split_names();
  return names;
}

bool is_ignored_argument(std::string_view name) {
  const std::vector<std::string_view>& names = ignored_arguments();
  return std::find(names.begin(), names.end(), name) != names.end() ||
         std::any_of(std::begin(kIgnoredFamilies), std::end(kIgnoredFamilies),
                     [&](std::string_view family) { return name.starts_with(family); });
}

}  // namespace ebb
