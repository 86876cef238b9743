// State and traffic of the optimizer for every recipe of types: against the tables of Megatron-LM's documentation, the
// kernels' argument lists, and a public report.
#include "planner/optimizer_traffic.hpp"

#include <vector>

#include "tests/catch.hpp"

using namespace ebb;

namespace {

constexpr Dtype kMomentTypes[] = {Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp8};

Precision moments(Dtype type) {
  Precision p;
  p.exp_avg = p.exp_avg_sq = type;
  return p;
}

Precision whole_masters(Precision p) {
  p.remainders = false;
  return p;
}

}  // namespace

// docs/user-guide/features/dist_optimizer.md: 18 or 6 + 12 / d in bf16, 20 or 4 + 16 / d in fp16, 16 or 8 + 8 / d in
// fp32 (parameters, gradients / d of the rest).
TEST_CASE("the documentation's table of bytes a parameter") {
  const auto kept = [](const Precision& p) { return size_of(p.params) + size_of(p.grads); };
  const auto sharded = [](const Precision& p) { return p.state_bytes() + (copies_gradients(p) ? 4 : 0); };
  Precision p;
  CHECK(kept(p) == 6);
  CHECK(sharded(p) == 12);
  p.params = p.grads = Dtype::fp16;
  CHECK(kept(p) == 4);
  CHECK(sharded(p) == 16);
  p.params = p.grads = Dtype::fp32;
  CHECK(kept(p) == 8);
  CHECK(sharded(p) == 8);
}

// radixark/Megatron-LM pull request 63: 46.1 GB of state a rank in fp32, 30.8 with bf16 moments, 23.1 with fp8; the
// first step reads 15.4 and writes 46.1.
TEST_CASE("field report 15: state bytes by type of the moments, masters alone in the first step") {
  const double elements = 46.1 / 12;  // 1e9
  const auto gigabytes = [&](const Precision& p, std::uint8_t states) {
    return elements * static_cast<double>(state_bytes_per_element(p, states));
  };
  CHECK(gigabytes({}, kAllState) == Approx(46.1));
  CHECK(gigabytes(whole_masters(moments(Dtype::bf16)), kAllState) == Approx(30.8).epsilon(0.005));
  CHECK(gigabytes(whole_masters(moments(Dtype::fp8)), kAllState) == Approx(23.1).epsilon(0.005));
  CHECK(gigabytes({}, kMaster) == Approx(15.4).epsilon(0.005));
}

TEST_CASE("every pair of moment types with every kind of master: bytes of state") {
  for (const Dtype m : kMomentTypes) {
    for (const Dtype v : kMomentTypes) {
      Precision p;
      p.exp_avg = m, p.exp_avg_sq = v;
      p.precision_aware = true;
      const std::int64_t both = size_of(m) + size_of(v);
      CHECK(state_bytes_per_element(p, kAllState) == both + 2);  // int16 remainders
      CHECK(state_bytes_per_element(whole_masters(p), kAllState) == both + 4);
      p.master = Dtype::fp16;
      CHECK(state_bytes_per_element(p, kAllState) == both + 2);
      p.params = Dtype::fp32;
      CHECK(state_bytes_per_element(p, kAllState) == both);
      CHECK(held_states(p) == kMoments);
      p.params = Dtype::bf16, p.master = Dtype::fp32, p.fp8 = Fp8Recipe::blockwise;  // Megatron's masters
      CHECK(state_bytes_per_element(p, kAllState) == both + 4);
    }
  }
}

// TransformerEngine common/multi_tensor/adam.cu, lists of tensors: g, p, m, v [, master [, scales]].
TEST_CASE("HBM bytes of fused Adam, by the kernel's lists") {
  CHECK(adam_bytes_per_element({}, false) == 28);
  CHECK(cast_bytes_per_element({}) == 6);
  Precision aware;
  aware.precision_aware = true;
  CHECK(adam_bytes_per_element(whole_masters(aware), false) == 30);
  CHECK(adam_bytes_per_element(whole_masters(moments(Dtype::bf16)), false) == 22);
  CHECK(adam_bytes_per_element(aware, false) == 28);                 // remainders
  CHECK(adam_bytes_per_element(moments(Dtype::bf16), false) == 20);  // and bf16 moments
  Precision blockwise = moments(Dtype::bf16);
  blockwise.fp8 = Fp8Recipe::blockwise;
  blockwise.fp8_param_gather = true;
  CHECK(adam_bytes_per_element(blockwise, false) == 20);
  CHECK_FALSE(adam_writes_params(blockwise));
  Precision delayed;
  delayed.precision_aware = true;
  delayed.fp8 = Fp8Recipe::delayed;
  delayed.fp8_param_gather = true;
  CHECK(adam_bytes_per_element(delayed, false) == 29);
  CHECK(adam_writes_params(delayed));
  Precision fp32;
  fp32.params = Dtype::fp32;
  CHECK(adam_bytes_per_element(fp32, false) == 28);
  CHECK(adam_writes_params(fp32));
  CHECK(adam_bytes_per_element({}, true) == 30);
}

TEST_CASE("bf16 gradients are copied to fp32 where Megatron holds the masters, and read as they are otherwise") {
  Precision p;
  CHECK_FALSE(copies_gradients(p));
  p.grads = Dtype::bf16;
  CHECK(copies_gradients(p));
  CHECK(grad_bytes_per_element(p) == 4);
  p.exp_avg = p.exp_avg_sq = Dtype::bf16;
  CHECK_FALSE(copies_gradients(p));
  CHECK(grad_bytes_per_element(p) == 2);
  p.fp8 = Fp8Recipe::tensorwise;  // the masters are Megatron's again
  CHECK(copies_gradients(p));
}

TEST_CASE("states that are unscaled in a step have fp32 copies, and each state that is not fp32 has its scale") {
  std::vector<Shard> shards(2);
  shards[0].numel = {1000};
  shards[1].numel = {128};
  const std::int64_t once = 4096 + 512;
  const auto scratch = [&](Dtype m, Dtype v, Dtype master = Dtype::fp32) {
    Precision p;
    p.exp_avg = m, p.exp_avg_sq = v, p.master = master;
    return adam_temporaries(p, AdamKernel::fused, shards).value;
  };
  CHECK(scratch(Dtype::fp32, Dtype::fp32) == 0);
  CHECK(scratch(Dtype::bf16, Dtype::bf16) == 0);
  CHECK(scratch(Dtype::fp32, Dtype::bf16) == once);
  CHECK(scratch(Dtype::fp16, Dtype::fp16) == 2 * once);
  CHECK(scratch(Dtype::fp8, Dtype::fp8) == 2 * once);
  CHECK(scratch(Dtype::fp8, Dtype::fp32) == once);
  CHECK(scratch(Dtype::bf16, Dtype::fp16) == 2 * once);
  CHECK(scratch(Dtype::fp16, Dtype::fp16, Dtype::fp16) == 3 * once);
  CHECK(scale_tensors(Precision{}) == 0);
  CHECK(allocated_scales(Precision{}, shards) == Bytes{0});
  CHECK(allocated_scales(moments(Dtype::bf16), shards) == Bytes{2 * 2 * 512});
  CHECK(scale_tensors(moments(Dtype::bf16)) == 2);
  CHECK(scale_tensors(moments(Dtype::fp8)) == 8);
  Precision p = moments(Dtype::fp16);
  p.master = Dtype::fp16;
  CHECK(scale_tensors(p) == 3);
}

TEST_CASE("Adam on the host keeps fp32 state whatever the job says") {
  Job job;
  job.precision = moments(Dtype::bf16);
  CHECK(precision_of(job, Policy::cpu_adam).state_bytes() == 12);
  CHECK(precision_of(job, Policy::resident).state_bytes() == 6);
}
