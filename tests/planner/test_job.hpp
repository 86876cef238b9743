// A small valid job made in memory, for tests that change one thing at a time.
#pragma once

#include "models/job.hpp"

namespace ebb::test {

inline Job small_job() {
  Job job;
  job.name = "small";
  job.file = "small.yaml";
  job.model.name = "tiny";
  job.model.layers = 8;
  job.model.hidden = 1024;
  job.model.ffn = 4096;
  job.model.heads = 16;
  job.model.kv_heads = 8;
  job.model.head_dim = 64;
  job.model.vocab = 32000;
  job.cluster.name = "test";
  job.cluster.gpu.memory.value = 80_GiB;
  job.cluster.gpu.context.value = 1_GiB;
  job.cluster.host.memory.value = 1024_GiB;
  job.parallel.gpus = 8;
  job.parallel.expert_tensor = 1;
  job.batch = {.micro = 1, .global = 16, .sequence = 2048};
  return job;
}

}  // namespace ebb::test
