// Proves how layers are spread without a layout string: numbers of layers as Megatron-LM counts them
// (get_num_layers_to_build) and first layers as it numbers them (get_transformer_layer_offset).
#include "models/errors.hpp"
#include "planner/parameters.hpp"
#include "tests/catch.hpp"
#include "tests/planner/layout_jobs.hpp"

namespace ebb {
namespace {

Job job_of(std::int64_t layers, std::int64_t pipeline, std::int64_t virtual_pipeline) {
  ModelSpec model = test::gpt3_small();
  model.layers = layers;
  Job job = test::job(model, pipeline, 1, pipeline);
  job.parallel.virtual_pipeline = virtual_pipeline;
  return job;
}

using Layers = std::vector<std::vector<std::int64_t>>;  // by chunk

Layers layers_of(const Job& job, std::int64_t rank) {
  Layers layers;
  for (const ModelChunk& chunk : model_chunks(job, rank)) layers.push_back(chunk.decoder_layers);
  return layers;
}

/// Layers 0, 1, ... in pipeline order: virtual stage by virtual stage, rank by rank.
void check_in_order(const Job& job) {
  std::int64_t next = 0;
  for (std::int64_t c = 0; c < job.parallel.virtual_pipeline; ++c)
    for (std::int64_t rank = 0; rank < job.parallel.pipeline; ++rank) {
      const Layers layers = layers_of(job, rank);
      for (const std::int64_t layer : layers[static_cast<std::size_t>(c)]) CHECK(layer == next++);
    }
  CHECK(next == job.model.layers);
}

}  // namespace

TEST_CASE("first and last stage with numbers of layers of their own") {
  Job job = job_of(12, 4, 1);
  job.parallel.first_stage_layers = job.parallel.last_stage_layers = 2;
  CHECK(layers_of(job, 0) == Layers{{0, 1}});
  CHECK(layers_of(job, 1) == Layers{{2, 3, 4, 5}});
  CHECK(layers_of(job, 3) == Layers{{10, 11}});
  check_in_order(job);
  job.parallel.last_stage_layers.reset();
  job.parallel.first_stage_layers = 3;
  CHECK(layers_of(job, 3) == Layers{{9, 10, 11}});
  check_in_order(job);
  job = job_of(16, 4, 2);
  job.parallel.last_stage_layers = 4;
  CHECK(layers_of(job, 3) == Layers{{6, 7}, {14, 15}});
  check_in_order(job);
}

TEST_CASE("embedding and loss in the place of a layer each") {
  Job job = job_of(6, 4, 2);
  job.parallel.account_for_embedding = job.parallel.account_for_loss = true;
  CHECK(layers_of(job, 0) == Layers{{}, {3}});
  CHECK(layers_of(job, 1) == Layers{{0}, {4}});
  CHECK(layers_of(job, 3) == Layers{{2}, {}});
  check_in_order(job);
  job = job_of(7, 4, 1);
  job.parallel.account_for_loss = true;
  CHECK(layers_of(job, 3) == Layers{{6}});
  check_in_order(job);
  CHECK(model_chunks(job, 3)[0].output);
}

TEST_CASE("uneven stages that do not add up are the user's error") {
  Job job = job_of(12, 4, 1);
  job.parallel.first_stage_layers = 3;
  job.parallel.last_stage_layers = 2;
  CHECK_THROWS_AS(model_chunks(job, 0), InputError);  // 7 layers on 2 ranks
  job.parallel.last_stage_layers = 9;
  CHECK_THROWS_AS(model_chunks(job, 0), InputError);  // nothing is left
  job.parallel.last_stage_layers = 3;
  job.parallel.virtual_pipeline = 2;
  CHECK_THROWS_AS(model_chunks(job, 0), InputError);  // 3 layers in two virtual stages
  job.parallel.virtual_pipeline = 1;
  job.parallel.account_for_loss = true;
  CHECK_THROWS_AS(model_chunks(job, 0), InputError);
  Job both = job_of(12, 2, 1);
  both.parallel.first_stage_layers = 5;
  both.parallel.last_stage_layers = 6;
  CHECK_THROWS_AS(model_chunks(both, 0), InputError);
  both.parallel.last_stage_layers = 7;
  check_in_order(both);
}

}  // namespace ebb
