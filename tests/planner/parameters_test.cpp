// Proves parameter totals against published ones, Megatron's definition order, and how layers are spread over stages.
#include "planner/parameters.hpp"

#include <algorithm>

#include "planner/pipeline_layout.hpp"
#include "tests/catch.hpp"
#include "tests/planner/layout_jobs.hpp"

namespace ebb {
namespace {

TEST_CASE("totals equal the published ones", "[parameters]") {
  // Sums over the tensors of each publisher's safetensors index, without DeepSeek-V3's prediction layer and its
  // e_score_correction_bias (58 x 256 buffer elements of the 671,026,419,200 that its checkpoint holds).
  CHECK(total_parameters(test::llama3_8b()).value == 8'030'261'248);
  CHECK(total_parameters(test::llama32_1b()).value == 1'235'814'400);
  CHECK(total_parameters(test::qwen3_8b()).value == 8'190'735'360);
  CHECK(total_parameters(test::mixtral_8x7b()).value == 46'702'792'704);
  CHECK(total_parameters(test::deepseek_v3()).value == 671'026'419'200 - 58 * 256);
  CHECK(total_parameters(test::gpt_oss_120b()).value == 116'829'156'672);
}

std::vector<std::string> names(const std::vector<Parameter>& parameters) {
  std::vector<std::string> result;
  for (const Parameter& parameter : parameters) result.push_back(parameter.name);
  return result;
}

std::vector<Parameter> whole_model(const Job& job) { return chunk_parameters(job, model_chunks(job, 0).at(0)); }

TEST_CASE("definition order of a dense layer with biases and LayerNorm", "[parameters]") {
  ModelSpec model = test::gpt3_small();
  model.layers = 1;
  model.qk_norm = true;
  CHECK(names(whole_model(test::job(model, 1))) ==
        std::vector<std::string>{"embedding.word_embeddings.weight",
                                 "embedding.position_embeddings.weight",
                                 "decoder.layers.0.self_attention.linear_proj.weight",
                                 "decoder.layers.0.self_attention.linear_proj.bias",
                                 "decoder.layers.0.self_attention.linear_qkv.layer_norm_weight",
                                 "decoder.layers.0.self_attention.linear_qkv.layer_norm_bias",
                                 "decoder.layers.0.self_attention.linear_qkv.weight",
                                 "decoder.layers.0.self_attention.linear_qkv.bias",
                                 "decoder.layers.0.self_attention.q_layernorm.weight",
                                 "decoder.layers.0.self_attention.q_layernorm.bias",
                                 "decoder.layers.0.self_attention.k_layernorm.weight",
                                 "decoder.layers.0.self_attention.k_layernorm.bias",
                                 "decoder.layers.0.mlp.linear_fc1.layer_norm_weight",
                                 "decoder.layers.0.mlp.linear_fc1.layer_norm_bias",
                                 "decoder.layers.0.mlp.linear_fc1.weight",
                                 "decoder.layers.0.mlp.linear_fc1.bias",
                                 "decoder.layers.0.mlp.linear_fc2.weight",
                                 "decoder.layers.0.mlp.linear_fc2.bias",
                                 "decoder.final_layernorm.weight",
                                 "decoder.final_layernorm.bias"});
}

TEST_CASE("definition order of latent attention, experts and prediction layers", "[parameters]") {
  ModelSpec model = test::deepseek_v3();
  model.layers = 1;
  model.moe->first_dense_layers = 0;
  model.moe->experts = 4;
  Job job = test::job(model, 2);
  job.parallel.expert = 2;
  const std::vector<std::string> layer = {"input_layernorm.weight",
                                          "self_attention.linear_proj.weight",
                                          "self_attention.linear_q_down_proj.weight",
                                          "self_attention.linear_q_up_proj.layer_norm_weight",
                                          "self_attention.linear_q_up_proj.weight",
                                          "self_attention.linear_kv_down_proj.weight",
                                          "self_attention.linear_kv_up_proj.layer_norm_weight",
                                          "self_attention.linear_kv_up_proj.weight",
                                          "pre_mlp_layernorm.weight",
                                          "mlp.router.weight",
                                          "mlp.experts.linear_fc1.weight0",
                                          "mlp.experts.linear_fc1.weight1",
                                          "mlp.experts.linear_fc2.weight0",
                                          "mlp.experts.linear_fc2.weight1",
                                          "mlp.shared_experts.linear_fc1.weight",
                                          "mlp.shared_experts.linear_fc2.weight"};
  std::vector<std::string> expected = {"embedding.word_embeddings.weight"};
  for (const std::string& name : layer) expected.push_back("decoder.layers.0." + name);
  expected.insert(expected.end(), {"decoder.final_layernorm.weight", "mtp.layers.0.enorm.weight",
                                   "mtp.layers.0.hnorm.weight", "mtp.layers.0.eh_proj.weight"});
  for (const std::string& name : layer) expected.push_back("mtp.layers.0.transformer_layer." + name);
  expected.insert(expected.end(), {"mtp.layers.0.final_layernorm.weight", "output_layer.weight"});
  CHECK(names(whole_model(job)) == expected);
}

const Parameter& find(const std::vector<Parameter>& parameters, const std::string& name) {
  const auto it = std::find_if(parameters.begin(), parameters.end(), [&](auto& p) { return p.name == name; });
  REQUIRE(it != parameters.end());
  return *it;
}

TEST_CASE("shapes under tensor parallelism, with padded vocabulary", "[parameters]") {
  const Job job = test::job(test::gpt3_7b(), 8, 4);
  const std::vector<Parameter> parameters = whole_model(job);
  const auto shape = [&](const std::string& name) {
    const Parameter& p = find(parameters, name);
    return std::tuple(p.rows, p.columns, p.tensor_parallel, p.decayed);
  };
  // 131,073 rounded up to a multiple of 128 x 4 is 131,584.
  CHECK(shape("embedding.word_embeddings.weight") == std::tuple(32'896, 4096, true, true));
  CHECK(shape("embedding.position_embeddings.weight") == std::tuple(8192, 4096, false, true));
  CHECK(shape("decoder.layers.0.self_attention.linear_qkv.weight") == std::tuple((8 + 2 * 2) * 128, 4096, true, true));
  CHECK(shape("decoder.layers.0.self_attention.linear_qkv.bias") == std::tuple((8 + 2 * 2) * 128, 0, true, false));
  CHECK(shape("decoder.layers.0.self_attention.linear_proj.weight") == std::tuple(4096, 1024, true, true));
  CHECK(shape("decoder.layers.0.self_attention.linear_proj.bias") == std::tuple(4096, 0, false, false));
  CHECK(shape("decoder.layers.31.mlp.linear_fc1.weight") == std::tuple(4096, 4096, true, true));
  CHECK(shape("decoder.layers.31.mlp.linear_fc2.weight") == std::tuple(4096, 4096, true, true));
  CHECK(shape("output_layer.weight") == std::tuple(32'896, 4096, true, true));
}

TEST_CASE("tied embeddings: one weight on one stage, a marked copy on the last of several", "[parameters]") {
  Job job = test::job(test::llama32_1b(), 8);
  CHECK(names(whole_model(job)).back() == "decoder.final_layernorm.weight");
  job.parallel.pipeline = 4;
  const auto stage = [&](std::int64_t rank) { return chunk_parameters(job, model_chunks(job, rank).at(0)); };
  CHECK(find(stage(0), "embedding.word_embeddings.weight").shared_embedding);
  CHECK(find(stage(3), "output_layer.weight").shared_embedding);
  for (const Parameter& parameter : stage(1)) CHECK_FALSE(parameter.embedding_or_output);
  // Untied, nothing is shared.
  job.model.tied_embeddings = false;
  CHECK_FALSE(find(stage(0), "embedding.word_embeddings.weight").shared_embedding);
  CHECK_FALSE(find(stage(3), "output_layer.weight").shared_embedding);
}

TEST_CASE("the prediction stage holds a shared copy of the embedding, the last decoder stage the final norm",
          "[parameters]") {
  const Job job = test::deepseek_v3_2048();
  const auto chunk = [&](std::int64_t rank, std::size_t c) {
    return chunk_parameters(job, model_chunks(job, rank).at(c));
  };
  // 32 virtual stages: E and three layers, 29 of two, m, L. Stage s is on rank s % 16.
  CHECK(find(chunk(0, 0), "embedding.word_embeddings.weight").shared_embedding);
  CHECK(names(chunk(13, 1)).back() == "decoder.final_layernorm.weight");
  CHECK(find(chunk(14, 1), "embedding.word_embeddings.weight").shared_embedding);
  CHECK(names(chunk(14, 1)).back() == "mtp.layers.0.final_layernorm.weight");
  CHECK(names(chunk(15, 1)) == std::vector<std::string>{"output_layer.weight"});
  CHECK_FALSE(chunk(15, 1)[0].shared_embedding);
  CHECK(model_chunks(job, 13)[1].decoder_layers == std::vector<std::int64_t>{59, 60});
}

TEST_CASE("the even split gives each rank interleaved chunks", "[parameters]") {
  Job job = test::job(test::gpt3_7b(), 8, 1, 4);
  job.parallel.virtual_pipeline = 8;
  const std::vector<ModelChunk> chunks = model_chunks(job, 3);
  REQUIRE(chunks.size() == 8);
  for (std::size_t c = 0; c < 8; ++c) {
    CHECK(chunks[c].decoder_layers == std::vector<std::int64_t>{static_cast<std::int64_t>(4 * c + 3)});
    CHECK_FALSE(chunks[c].embedding);
    CHECK(chunks[c].output == (c == 7));
  }
  CHECK(model_chunks(job, 0)[0].embedding);
  job.model.layers = 30;
  CHECK_THROWS_AS(model_chunks(job, 0), InputError);
}

TEST_CASE("the layout string: Megatron's documented examples", "[parameters]") {
  const auto sizes = [](std::string_view text) {
    std::vector<std::size_t> result;
    for (const ModelChunk& stage : parse_pipeline_layout(text, {})) result.push_back(stage.decoder_layers.size());
    return result;
  };
  // pipeline_parallel_layer_layout.py, parse_str_to_list.
  std::vector<std::size_t> expected(32, 2);
  expected[0] = 3, expected[30] = expected[31] = 0;
  CHECK(sizes("Ettt|(tt|)*29,m|L") == expected);
  CHECK(sizes("Et*3|(tt|)*29m|L") == expected);
  CHECK(sizes("E(t|t)*2,tL") == std::vector<std::size_t>{1, 2, 2});
  CHECK(sizes("Et|*2tL") == std::vector<std::size_t>{1, 0, 1});
  CHECK(sizes("Et*0tL") == std::vector<std::size_t>{1});
  // tests/functional_tests/test_cases/mixtral/deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release.
  CHECK(sizes("Et*2|(tt|)*5t|tmL") == std::vector<std::size_t>{2, 2, 2, 2, 2, 2, 1, 1});
}

TEST_CASE("the layout string: what Megatron refuses is the user's error", "[parameters]") {
  for (const char* text : {"",
                           ",",
                           "t|L",
                           "Et",
                           "ttE|L",
                           "EtEL",
                           "EtLL",
                           "EtL|t",
                           "Emt|L",
                           "Exx|L",
                           "E(tt*2L",
                           "E((tt)*2)*2L",
                           "E()*3tL",
                           "Et*2*3L",
                           "Et*L",
                           "E*tL",
                           "E(t)L",
                           "Et*99999999999999999999L",
                           "E(t*9999)*9999L",
                           "E(tttttttttt)*99999L",
                           "Et\xff|L",
                           "(Et|L)*2"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_pipeline_layout(text, {}), InputError);
  }
  Job job = test::deepseek_v3_2048();
  const auto refuse = [&job](const char* text) {
    job.parallel.pipeline_layout = text;
    CHECK_THROWS_AS(model_chunks(job, 0), InputError);
  };
  refuse("Et*3|(tt|)*28m|L");     // 31 stages
  refuse("Et*3|(tt|)*29|L");      // no prediction layer
  refuse("Et*4|(tt|)*29m|L");     // 62 layers
  refuse("Et*61|mL|(|)*15|*14");  // L is not last
  job.parallel.virtual_pipeline = 4;
  refuse("Et*3|(tt|)*29m|L");  // 32 stages for 64
}

// Llama-3-8B: 32 query heads and 8 groups of 128 rows; the fused projection's 6,144 rows over 16 ranks.
TEST_CASE("with fewer query groups than tensor ranks the fused projection is split by rows") {
  const Job job = test::job(test::llama3_8b(), 16, 16);
  bool found = false;
  for (const Parameter& parameter : chunk_parameters(job, model_chunks(job, 0).front())) {
    if (parameter.name != "decoder.layers.0.self_attention.linear_qkv.weight") continue;
    found = true;
    CHECK(parameter.rows == 384);
    CHECK(parameter.columns == 4096);
  }
  CHECK(found);
}

}  // namespace
}  // namespace ebb
