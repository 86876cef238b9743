// Jobs whose memory somebody measured, and what was measured.
//
// Recorded cases: Megatron-LM's functional tests on H100-80GB (tests/functional_tests/test_cases/<id>,
// model_config.yaml and golden_values_dev_dgx_h100.json on the main branch, August 2026): torch's allocated and maximum
// allocated bytes of the last global rank, one node of eight GPUs unless said otherwise. The measured jobs ran
// Megatron-LM with its local transformer implementation on one H200 (driver 580.159, torch 2.11, 2026-11-30).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/job.hpp"

namespace ebb::tests {

struct RecordedCase {
  std::string id;
  Job job;
  bool distributed_optimizer = true;
  Bytes allocated{0};      // between steps
  Bytes max_allocated{0};  // highest in a later step
  double iteration_s = 0;
};

/// 12 layers of hidden 512, learned positions, layernorm, biases, gelu, tied embeddings: most functional tests.
inline Job small_gpt(std::int64_t tensor, std::int64_t pipeline, std::int64_t virtual_pipeline = 1,
                     std::int64_t context = 1) {
  Job job;
  job.model.layers = 12;
  job.model.hidden = 512;
  job.model.ffn = 2048;
  job.model.heads = job.model.kv_heads = 8;
  job.model.head_dim = 64;
  job.model.vocab = 50257;
  job.model.max_positions = 1024;
  job.model.gated = false;
  job.model.tied_embeddings = true;
  job.model.bias = true;
  job.model.norm = Norm::layernorm;
  job.model.positions = Positions::learned;
  job.parallel.gpus = 8;
  job.parallel.tensor = job.parallel.expert_tensor = tensor;
  job.parallel.pipeline = pipeline;
  job.parallel.virtual_pipeline = virtual_pipeline;
  job.parallel.context = context;
  job.parallel.overlap_grad_reduce = job.parallel.overlap_param_gather = false;
  job.batch = {.micro = 4, .global = 32, .sequence = 1024};
  // Megatron-LM's defaults, and what all of its functional tests say: no fusion of gradients, deterministic kernels.
  job.activations = {.attention_dropout = 0.1,
                     .hidden_dropout = 0.1,
                     .gradient_fusion = false,
                     .loader_mask = true,
                     .deterministic = true};
  return job;
}

/// The 7B GPT of the *_memory_speed cases: grouped queries, untied, a vocabulary of 131,073.
inline Job gpt_7b(std::int64_t tensor, std::int64_t pipeline, std::int64_t virtual_pipeline, std::int64_t micro) {
  Job job = small_gpt(tensor, pipeline, virtual_pipeline);
  job.model.layers = 32;
  job.model.hidden = 4096;
  job.model.ffn = 16384;
  job.model.heads = 32;
  job.model.head_dim = 128;
  job.model.vocab = 131073;
  job.model.max_positions = 8192;
  job.model.tied_embeddings = false;
  job.parallel.overlap_grad_reduce = true;
  job.parallel.overlap_param_gather = true;
  job.batch = {.micro = micro, .global = 8, .sequence = 8192};
  return job;
}

/// 15B with squared ReLU and rope. The number of GPUs is not published: 32 data-parallel ranks fit the recorded bytes.
inline Job gpt_15b() {
  Job job = gpt_7b(8, 1, 1, 4);
  job.model.hidden = 6144;
  job.model.ffn = 24576;
  job.model.heads = 48;
  job.model.vocab = 256000;
  job.model.bias = false;
  job.model.positions = Positions::rope;
  job.parallel.gpus = 256;
  job.parallel.sequence = true;
  job.activations = {.loader_mask = true};
  job.batch = {.micro = 4, .global = 1152, .sequence = 4096};
  return job;
}

/// The measured jobs: rmsnorm, rope, gated, untied, local attention, 16 or 24 heads of 128.
inline Job measured_job(std::int64_t layers, std::int64_t hidden) {
  Job job = small_gpt(1, 1);
  job.model.layers = layers;
  job.model.hidden = hidden;
  job.model.ffn = 4 * hidden;
  job.model.heads = hidden / 128;
  job.model.kv_heads = hidden / 128;
  job.model.head_dim = 128;
  job.model.vocab = 50256;
  job.model.gated = true;
  job.model.tied_embeddings = false;
  job.model.bias = false;
  job.model.norm = Norm::rmsnorm;
  job.model.positions = Positions::rope;
  job.parallel.gpus = 1;
  job.batch = {.micro = 1, .global = 4, .sequence = 2048};
  job.compute.attention = Attention::local;
  job.activations = {.gradient_fusion = false, .bias_fusion = false, .rope_fusion = false, .loader_mask = true};
  return job;
}

/// Dense cases with Transformer Engine's fused attention. `gpt3_7b_tp4_pp1_memory_speed` keeps its own name there.
inline std::vector<RecordedCase> recorded_dense_cases() {
  std::vector<RecordedCase> cases;
  cases.push_back({.id = "gpt3_7b_tp4_pp1_memory_speed",
                   .job = gpt_7b(4, 1, 1, 2),
                   .allocated = {20'663'519'232},
                   .max_allocated = {57'143'791'616},
                   .iteration_s = 1.11});
  cases.push_back({.id = "gpt3_7b_tp1_pp4_memory_speed",
                   .job = gpt_7b(1, 4, 8, 1),
                   .allocated = {24'808'996'864},
                   .max_allocated = {60'720'852'992},
                   .iteration_s = 1.15017});
  cases.push_back({.id = "gpt3_15b_8t_release_sm",
                   .job = gpt_15b(),
                   .allocated = {13'268'858'880},
                   .max_allocated = {28'160'194'560}});
  cases.push_back({.id = "gpt3_mcore_te_tp1_pp1_frozen_resume_torch_dist_dist_optimizer",
                   .job = small_gpt(1, 1),
                   .allocated = {581'488'640},
                   .max_allocated = {2'690'742'784}});
  Job tp4 = small_gpt(4, 1);
  tp4.parallel.overlap_grad_reduce = tp4.parallel.overlap_param_gather = true;
  cases.push_back({.id = "gpt3_mcore_te_tp4_pp1_resume_torch_dist_dist_optimizer_overlap_grad_reduce_param_gather",
                   .job = tp4,
                   .allocated = {299'728'384},
                   .max_allocated = {1'041'940'992}});
  Job interleaved = small_gpt(1, 4, 3);
  interleaved.parallel.overlap_grad_reduce = interleaved.parallel.overlap_param_gather = true;
  cases.push_back({.id = "gpt3_mcore_te_tp1_pp4_vp1_resume_torch_dist_dist_optimizer_overlap_grad_reduce_param_gather",
                   .job = interleaved,
                   .allocated = {551'288'320},
                   .max_allocated = {2'431'367'168}});
  interleaved.model.tied_embeddings = false;
  interleaved.parallel.overlap_param_gather = false;
  cases.push_back({.id = "gpt3_mcore_te_tp1_pp4_vp1_resume_torch_dist_dist_optimizer_overlap_grad_reduce_untied",
                   .job = interleaved,
                   .allocated = {552'349'184},
                   .max_allocated = {2'433'476'608}});
  cases.push_back({.id = "gpt3_mcore_te_tp4_pp2_frozen_resume_torch_dist_reshard_8x1xNone",
                   .job = small_gpt(4, 2),
                   .allocated = {312'352'256},
                   .max_allocated = {847'957'504}});
  // Without the distributed optimizer: every rank holds all state.
  Job gated = small_gpt(1, 4);
  gated.model.gated = true;
  gated.model.ffn = 1344;
  cases.push_back({.id = "gpt3_mcore_te_tp1_pp4_frozen_resume_torch_dist_swiglu",
                   .job = gated,
                   .distributed_optimizer = false,
                   .allocated = {745'731'584},
                   .max_allocated = {2'210'568'192}});
  Job untied = small_gpt(1, 4);
  untied.model.tied_embeddings = false;
  cases.push_back({.id = "gpt3_mcore_te_tp1_pp4_resume_torch_dist_untie_embeddings_and_outputs",
                   .job = untied,
                   .distributed_optimizer = false,
                   .allocated = {745'395'712},
                   .max_allocated = {2'210'100'224}});
  Job context = small_gpt(2, 1, 1, 2);
  context.activations.attention_dropout = context.activations.hidden_dropout = 0;
  context.parallel.sequence = true;
  cases.push_back({.id = "gpt3_mcore_te_tp2_pp1_frozen_resume_torch_dist_cp2_nondeterministic",
                   .job = context,
                   .distributed_optimizer = false,
                   .allocated = {688'569'856},
                   .max_allocated = {1'220'435'968}});
  context.parallel.pipeline = 2;
  cases.push_back({.id = "gpt3_mcore_te_tp2_pp2_cp2",
                   .job = context,
                   .distributed_optimizer = false,
                   .allocated = {510'689'792},
                   .max_allocated = {935'253'504}});
  Job without_mask = small_gpt(2, 2);
  without_mask.activations.loader_mask = false;
  cases.push_back({.id = "gpt3_mcore_te_tp2_pp2_resume_torch_dist_no_create_attention_mask_in_dataloader",
                   .job = without_mask,
                   .distributed_optimizer = false,
                   .allocated = {514'359'808},
                   .max_allocated = {1'420'306'944}});
  return cases;
}

/// Mixtral on H100. The number of GPUs is not published: 128 is the power of two that fits the recorded bytes.
inline Job mixtral(std::int64_t layers, std::int64_t hidden, std::int64_t ffn, std::int64_t vocab) {
  Job job = gpt_15b();
  job.model.layers = layers;
  job.model.hidden = hidden;
  job.model.heads = hidden / 128;
  job.model.ffn = ffn;
  job.model.vocab = vocab;
  job.model.gated = true;
  job.model.norm = Norm::rmsnorm;
  job.model.moe = MoeSpec{.experts = 8, .top_k = 2, .ffn = ffn};
  job.parallel.gpus = 128;
  job.parallel.tensor = job.parallel.expert_tensor = 2;
  job.batch.micro = 1;
  return job;
}

inline std::vector<RecordedCase> recorded_moe_cases() {
  std::vector<RecordedCase> cases;
  Job small = mixtral(32, 4096, 14336, 256000);  // the recorded bytes fit a SentencePiece vocabulary of 256,000
  small.parallel.pipeline = 4;
  small.parallel.expert = 4;
  small.batch.global = 1024;
  cases.push_back({.id = "mixtral_8x7b_alltoall_tp2pp4ep4_release_sm",
                   .job = small,
                   .allocated = {17'703'632'896},
                   .max_allocated = {27'638'417'408},
                   .iteration_s = 9.17465});
  Job large = mixtral(56, 6144, 16384, 32000);
  large.parallel.pipeline = 8;
  large.parallel.expert = 8;
  large.batch.global = 256;
  cases.push_back({.id = "mixtral_8x22b_tp2pp8ep8vpp1_release",
                   .job = large,
                   .allocated = {23'002'929'152},
                   .max_allocated = {28'533'706'752},
                   .iteration_s = 6.98051});
  return cases;
}

}  // namespace ebb::tests
