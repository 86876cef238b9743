// Breakers of the rules of sizes and parallelism.
#include "tests/planner/rule_breakers.hpp"

namespace ebb::test {

std::vector<Breaker> size_breakers() {
  return {
      {"model-range", [](Job& j) { j.model.vocab = 0; }},
      {"model-range", [](Job& j) { j.model.layers = 1 << 20; }},
      {"model-size",
       [](Job& j) {
         j.model.layers = 4096;
         j.model.hidden = j.model.ffn = 1 << 24;
       }},
      {"job-range", [](Job& j) { j.batch.micro = 0; }},
      {"job-range", [](Job& j) { j.parallel.gpus = std::int64_t{1} << 62; }},
      {"world-dense", [](Job& j) { j.parallel.gpus = 12, j.parallel.tensor = 8; }},
      {"world-dense", [](Job& j) { j.parallel.tensor = 16; }},
      {"world-expert", [](Job& j) { j.parallel.expert_tensor = 3; }},
      {"virtual-needs-pipeline", [](Job& j) { j.parallel.virtual_pipeline = 2; }},
      {"layout-alone",
       [](Job& j) {
         j.parallel.pipeline = 2;
         j.parallel.pipeline_layout = "Etttt|ttttL";
         j.parallel.first_stage_layers = 4;
       }},
      {"layout-alone",
       [](Job& j) {
         j.parallel.pipeline = 2;
         j.parallel.pipeline_layout = "Etttt|ttttL";
         j.parallel.account_for_loss = true;
       }},
      {"uneven-without-account",
       [](Job& j) {
         j.parallel.pipeline = 2;
         j.parallel.last_stage_layers = 4;
         j.parallel.account_for_loss = true;
       }},
      {"layout-fits",
       [](Job& j) {
         j.parallel.pipeline = 2;
         j.parallel.pipeline_layout = "Etttt|tttt";
       }},
      {"even-split", [](Job& j) { j.model.layers = 7, j.parallel.pipeline = 2; }},
      {"even-split",
       [](Job& j) {
         j.parallel.pipeline = 2;
         j.parallel.account_for_embedding = true;
       }},
      {"uneven-split",  // more than the model has
       [](Job& j) {
         j.parallel.pipeline = 2;
         j.parallel.last_stage_layers = 9;
       }},
      {"uneven-split",  // not even over the virtual stages
       [](Job& j) {
         j.parallel.pipeline = j.parallel.virtual_pipeline = 2;
         j.parallel.first_stage_layers = 3;
       }},
      {"uneven-split",  // one stage, which is first and last
       [](Job& j) {
         j.parallel.first_stage_layers = 4;
         j.parallel.last_stage_layers = 4;
       }},
      {"uneven-split",
       [](Job& j) {
         j.parallel.pipeline = 4;
         j.parallel.first_stage_layers = 3;
       }},
      {"uneven-split",
       [](Job& j) {
         j.parallel.pipeline = 2;
         j.parallel.first_stage_layers = 4;
         j.parallel.last_stage_layers = 3;
       }},
  };
}

std::vector<Breaker> parallel_breakers() {
  return {
      {"tensor-heads", [](Job& j) { j.model.heads = 12, j.parallel.tensor = 8; }},
      {"tensor-kv-heads", [](Job& j) { j.model.kv_heads = 6, j.parallel.tensor = 4; }},
      {"tensor-qkv-rows",
       [](Job& j) {
         j.model.heads = j.parallel.tensor = 8;
         j.model.kv_heads = 2;
         j.model.head_dim = 3;
       }},
      {"tensor-mtp",
       [](Job& j) {
         j.model.mtp = MtpSpec{1};
         j.model.hidden += 2;
         j.parallel.tensor = 4;
       }},
      {"tensor-ffn", [](Job& j) { j.model.ffn = 4098, j.parallel.tensor = 4; }},
      {"tensor-shared-ffn",
       [](Job& j) {
         add_experts(j);
         j.model.moe->shared_ffn = 1026;
         j.parallel.tensor = 4;
         j.parallel.sequence = true;
       }},
      {"sequence-needs-tensor", [](Job& j) { j.parallel.sequence = true; }},
      {"expert-needs-experts", [](Job& j) { j.parallel.expert = 2; }},
      {"expert-divides",
       [](Job& j) {
         add_experts(j);
         j.model.moe->experts = 6;
         j.parallel.expert = 4;
       }},
      {"experts-of-rank",
       [](Job& j) {
         add_experts(j);
         j.model.layers = 16;
         j.model.moe->experts = 1 << 14;
       }},
      {"expert-tensor-ffn",
       [](Job& j) {
         add_experts(j);
         j.model.moe->ffn = 1025;
         j.parallel.expert_tensor = 2;
       }},
      {"moe-needs-sequence",
       [](Job& j) {
         add_experts(j);
         j.parallel.tensor = 2;
       }},
      {"padding-needs-capacity",
       [](Job& j) {
         add_experts(j);
         j.experts.pad_to_capacity = true;
       }},
      {"expert-not-fp16",
       [](Job& j) {
         add_experts(j);
         j.parallel.expert = 2;
         j.precision.params = Dtype::fp16;
         j.experts.grouped_matmul = false;
       }},
      {"context-sequence", [](Job& j) { j.parallel.context = 4, j.batch.sequence = 2044; }},
      {"sequence-tensor",
       [](Job& j) {
         j.parallel.tensor = 8;
         j.parallel.sequence = true;
         j.batch.sequence = 2044;
       }},
      {"learned-positions", [](Job& j) { j.model.positions = Positions::learned, j.model.max_positions = 1024; }},
      {"prediction-positions",
       [](Job& j) {
         j.model.mtp = MtpSpec{1};
         j.model.positions = Positions::learned;
         j.model.max_positions = 2048;
       }},
      {"batch-divides", [](Job& j) { j.batch.global = 20; }},
      {"interleaved-groups",
       [](Job& j) {
         j.parallel.pipeline = 4;
         j.parallel.virtual_pipeline = 2;
         j.batch.global = 12;
       }},
      {"interleaved-groups",  // smaller than the pipeline
       [](Job& j) {
         j.parallel.pipeline = 4;
         j.parallel.virtual_pipeline = 2;
         j.parallel.micro_batch_group = 2;
       }},
      {"interleaved-groups",  // larger than the batch
       [](Job& j) {
         j.parallel.pipeline = 4;
         j.parallel.virtual_pipeline = 2;
         j.parallel.micro_batch_group = 16;
       }},
      {"interleaved-groups",  // 8 micro-batches: 5, then 3 of at least 4
       [](Job& j) {
         j.parallel.pipeline = 4;
         j.parallel.virtual_pipeline = 2;
         j.parallel.micro_batch_group = 5;
       }},
      {"activation-size",
       [](Job& j) {
         j.compute.attention = Attention::local;
         j.batch.sequence = std::int64_t{1} << 30;
       }},
  };
}

}  // namespace ebb::test
