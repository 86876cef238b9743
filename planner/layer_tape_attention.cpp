// Self-attention: the queries, keys and values, the core (fused, or Megatron's local one with its scores as tensors),
// and the projection.
#include "planner/layer_tape_writer.hpp"

namespace ebb {

AttentionTape::Slot AttentionTape::forward() {
  const TermScope scope(tape_, MemoryTerm::attention);
  if (tape_.job.model.mla) {
    compress();
    expand();
  } else if (tape_.is_local()) {
    local_queries();
  } else {
    queries();
  }
  core();
  if (tape_.drops("core_attn")) tape_.release(softmax_, rounded_, dropped_, mask_);
  if (tape_.job.model.mla && tape_.drops("mla_up_proj")) tape_.release(query_.result, key_.result, value_);
  if (sizes_.width == 1) quantized_context_ = tape_.allocate(sizes_.context / sizes_.element);
  return tape_.row_parallel(sizes_.whole, sizes_.split);
}

/// Latent attention's down-projections and their norms.
void AttentionTape::compress() {
  const MlaSpec& mla = *tape_.job.model.mla;
  latent_query_ = mla.q_lora_rank > 0 ? tape_.matmul(sizes_.element * sizes_.rows * mla.q_lora_rank) : kNoSlot;
  normed_latent_query_ = tape_.allocate(sizes_.width * sizes_.rows * mla.q_lora_rank);
  latent_key_ = tape_.matmul(sizes_.element * sizes_.rows * (mla.kv_lora_rank + mla.qk_rope_head_dim));
  normed_latent_key_ = tape_.allocate(sizes_.width * sizes_.rows * mla.kv_lora_rank);
}

/// ... and its up-projections: keys without their rotary part come with the values.
void AttentionTape::expand() {
  const MlaSpec& mla = *tape_.job.model.mla;
  query_.result = tape_.matmul(sizes_.query);
  const Slot both = tape_.matmul(sizes_.element * sizes_.tokens * (mla.qk_head_dim + mla.v_head_dim) * sizes_.heads);
  key_.result = tape_.allocate(sizes_.key);
  value_ = tape_.allocate(sizes_.value);
  tape_.release(both);
}

/// Transformer Engine takes queries, keys and values as they stand in the product, or each on its own: what is rotated,
/// normed or grouped is copied (its dot_product_attention/utils.py, get_qkv_layout).
void AttentionTape::queries() {
  const Slot input = tape_.gathered(sizes_.gathered);
  mixed_ = tape_.matmul(sizes_.query + sizes_.key + sizes_.value);
  tape_.release(input);
  const bool normed = tape_.job.model.qk_norm;
  const bool repeats = tape_.keeps_scores() && grouped();
  if (!normed && !rotary() && !repeats) return;
  if (normed) normed_query_ = tape_.allocate(sizes_.query);
  if (normed) normed_key_ = tape_.allocate(sizes_.key);
  const bool rotates = rotary() && !tape_.job.activations.rope_fusion;
  query_ = rotates ? rotate(sizes_.query) : Rotated{.result = tape_.allocate(sizes_.query)};
  key_ = rotates ? rotate(sizes_.key) : Rotated{.result = tape_.allocate(sizes_.key)};
  value_ = tape_.allocate(sizes_.value);
  tape_.release(mixed_);
  mixed_ = kNoSlot;
  if (!repeats) return;
  for (Slot* few : {&key_.result, &value_}) {
    const Slot each = tape_.allocate(sizes_.query);
    tape_.release(*few);
    *few = each;
  }
}

/// Values stay inside the product, which keeps all of it alive; with query groups, keys and values are repeated for
/// every head, and the product goes.
void AttentionTape::local_queries() {
  const Slot input = tape_.gathered(sizes_.gathered);
  mixed_ = tape_.matmul(sizes_.query + sizes_.key + sizes_.value);
  tape_.release(input);
  const std::int64_t norms = tape_.job.model.qk_norm ? sizes_.query + sizes_.key : 0;
  if (!grouped()) {
    if (norms > 0) normed_query_ = tape_.allocate(sizes_.query);
    if (norms > 0) normed_key_ = tape_.allocate(sizes_.key);
    if (!rotary()) return;
    query_ = rotate(sizes_.query);
    key_ = rotate(sizes_.key);
    return;
  }
  // What the norms keep beyond three full-sized tensors.
  normed_query_ = tape_.allocate(sizes_.key + sizes_.value + norms - 2 * sizes_.query);
  query_ = rotary() ? rotate(sizes_.query) : Rotated{.result = tape_.allocate(sizes_.query)};
  key_ = rotary() ? rotate(sizes_.key) : Rotated{};
  const Slot few = key_.result;
  key_.result = tape_.allocate(sizes_.query);
  tape_.release(few);
  value_ = tape_.allocate(sizes_.query);
  tape_.release(mixed_);
  mixed_ = kNoSlot;
}

/// x cos + rotate_half(x) sin: the tables come from fp32 angles, scaled, then rounded; the last copy appends the part
/// that is not rotated, which is empty.
AttentionTape::Rotated AttentionTape::rotate(std::int64_t bytes) {
  const std::int64_t table = sizes_.element * tape_.job.batch.sequence * tape_.job.model.head_dim;
  Rotated rotated;
  for (Slot* of : {&rotated.cosine, &rotated.sine}) {
    const std::int64_t fp32 = table / sizes_.element * 4;
    const Slot exact = tape_.allocate(fp32);
    const Slot scaled = tape_.allocate(fp32);
    tape_.release(exact);
    *of = tape_.allocate(table);
    tape_.release(scaled);
  }
  const Slot straight = tape_.allocate(bytes);
  const Slot negated = tape_.allocate(bytes / 2);
  const Slot half = tape_.allocate(bytes);
  tape_.release(negated);
  const Slot turned = tape_.allocate(bytes);
  tape_.release(half);
  const Slot sum = tape_.allocate(bytes);
  tape_.release(straight, turned);
  rotated.result = tape_.allocate(bytes);
  tape_.release(sum);
  return rotated;
}

void AttentionTape::core() {
  if (tape_.keeps_scores()) return scores();
  context_ = tape_.allocate(sizes_.context);
  softmax_ = tape_.allocate(4 * sizes_.tokens * sizes_.heads);
}

/// Both implementations have a kernel that scales, masks and normalises in one step. Without it softmax is computed,
/// and kept, in fp32. Sources: Transformer Engine, dot_product_attention/softmax.py, is_kernel_available.
bool AttentionTape::has_fused_softmax() const {
  if (tape_.is_local()) return true;
  const Batch& batch = tape_.job.batch;
  return sizes_.element == 2 && batch.sequence > 16 && batch.sequence < 16384 && batch.sequence % 8 == 0 &&
         batch.micro * sizes_.heads % 4 == 0;
}

/// Softmax is kept for its own backward, what dropout leaves of it for the product with the values.
void AttentionTape::scores() {
  const std::int64_t bytes = sizes_.element * sizes_.scores;
  Slot target = kNoSlot;  // what the product is told to add to, 0 times
  if (tape_.is_local())
    tape_.first_use(FirstUse::shared_buffer, bytes);
  else
    target = tape_.allocate(bytes);
  Slot product = tape_.matmul(bytes);
  tape_.release(target);
  if (has_fused_softmax()) {
    softmax_ = tape_.allocate(bytes);
  } else {
    const Slot masked = tape_.allocate(4 * sizes_.scores);
    softmax_ = tape_.allocate(4 * sizes_.scores);
    tape_.release(masked);
    if (sizes_.element < 4) rounded_ = tape_.allocate(bytes);
  }
  if (tape_.job.activations.attention_dropout > 0) {
    dropped_ = tape_.allocate(bytes);
    mask_ = tape_.allocate(sizes_.scores);
    tape_.release(rounded_);  // dropout needs its mask alone
    rounded_ = kNoSlot;
  }
  const Slot by_head = tape_.matmul(sizes_.context);
  context_ = tape_.allocate(sizes_.context);
  tape_.release(by_head, product);
}

AttentionTape::Slot AttentionTape::backward(Slot input, Slot gradient) {
  const Slot rows = tape_.gathered(sizes_.whole);
  const Slot context = tape_.matmul(sizes_.context);
  tape_.weight_gradient(tape_.job.model.hidden, sizes_.context / (sizes_.element * sizes_.tokens));
  tape_.release(quantized_context_, rows, gradient);
  if (tape_.job.model.mla && tape_.drops("mla_up_proj")) {
    const TermScope scope(tape_, MemoryTerm::attention);
    expand();
  }
  core_backward(context);
  if (tape_.job.model.mla) return latent_backward(input);
  queries_backward();
  return mixed_backward(input);
}

void AttentionTape::core_backward(Slot gradient) {
  if (tape_.drops("core_attn")) {
    const TermScope scope(tape_, MemoryTerm::attention);
    const Slot saved = context_;
    core();
    tape_.release(context_);
    context_ = saved;
  }
  if (tape_.keeps_scores()) return unfused_core_backward(gradient);
  query_gradient_ = tape_.allocate(sizes_.query);
  key_gradient_ = tape_.allocate(sizes_.key);
  value_gradient_ = tape_.allocate(sizes_.value);
  tape_.pass(4 * sizes_.tokens * sizes_.heads);  // sums of gradient times output, fp32
  tape_.release(gradient, context_, softmax_, mixed_, query_.result, key_.result, value_);
}

/// A product of which autograd multiplies the result by the scores' scale.
AttentionTape::Slot AttentionTape::scaled_product(std::int64_t bytes) {
  const Slot product = tape_.matmul(bytes);
  const Slot scaled = tape_.allocate(bytes);
  tape_.release(product);
  return scaled;
}

/// Dropout, softmax and, where they are steps of their own, mask and rounding each make a gradient of the scores' size.
/// Transformer Engine's softmax kernel works in place.
void AttentionTape::unfused_core_backward(Slot gradient) {
  const std::int64_t bytes = sizes_.element * sizes_.scores;
  const bool repeated = grouped() && !tape_.job.model.mla;
  tape_.release(context_);
  Slot softmax_gradient = tape_.matmul(bytes);
  value_gradient_ = tape_.matmul(repeated ? sizes_.query : sizes_.value);
  tape_.release(gradient, dropped_, rounded_);
  if (mask_ != kNoSlot) {
    const Slot kept = tape_.allocate(bytes);
    tape_.release(softmax_gradient, mask_);
    softmax_gradient = kept;
  }
  Slot scores = softmax_gradient;
  if (tape_.is_local()) {
    const Slot masked = tape_.allocate(bytes);
    tape_.release(softmax_gradient, softmax_);
    scores = tape_.allocate(bytes);
    tape_.release(masked);
  } else if (!has_fused_softmax()) {
    const Slot exact = tape_.allocate(4 * sizes_.scores);
    const Slot masked = tape_.allocate(4 * sizes_.scores);
    tape_.release(softmax_gradient, exact, softmax_);
    scores = tape_.allocate(bytes);
    tape_.release(masked);
  } else {
    tape_.release(softmax_);
  }
  query_gradient_ = scaled_product(sizes_.query);
  key_gradient_ = scaled_product(repeated ? sizes_.query : sizes_.key);
  tape_.release(scores, query_.result, key_.result, value_, mixed_);
}

void AttentionTape::queries_backward() {
  if (tape_.keeps_scores() && grouped()) {  // sum over the heads of a group
    for (Slot* gradient : {&value_gradient_, &key_gradient_}) {
      const Slot sum = tape_.allocate(sizes_.key);
      tape_.release(*gradient);
      *gradient = sum;
    }
  }
  if (!rotary()) return;
  key_gradient_ = rotate_backward(key_, key_gradient_, sizes_.key);
  query_gradient_ = rotate_backward(query_, query_gradient_, sizes_.query);
}

/// Unfused: the empty rest that was appended costs a tensor of zeros, which the two real parts are added to.
AttentionTape::Slot AttentionTape::rotate_backward(const Rotated& rotated, Slot gradient, std::int64_t bytes) {
  const Slot sum = tape_.allocate(bytes);
  if (rotated.cosine == kNoSlot) {
    tape_.release(gradient);
    return sum;
  }
  const Slot turned = tape_.allocate(bytes);
  const Slot negated = tape_.allocate(bytes / 2);
  const Slot half = tape_.allocate(bytes);
  tape_.release(turned, negated);
  const Slot straight = tape_.allocate(bytes);
  tape_.release(gradient, rotated.cosine, rotated.sine, half, straight);
  return sum;
}

AttentionTape::Slot AttentionTape::mixed_backward(Slot input) {
  const std::int64_t bytes = sizes_.query + sizes_.key + sizes_.value;
  const Slot mixed = tape_.allocate(bytes);
  tape_.release(query_gradient_, key_gradient_, value_gradient_, normed_query_, normed_key_);
  const Slot rows = tape_.gathered(sizes_.gathered);
  const Slot gradient = tape_.row_parallel(sizes_.whole, sizes_.split);
  tape_.weight_gradient(bytes / (sizes_.element * sizes_.tokens), tape_.job.model.hidden);
  tape_.release(input, mixed, rows);
  return gradient;
}

AttentionTape::Slot AttentionTape::latent_backward(Slot input) {
  const MlaSpec& mla = *tape_.job.model.mla;
  const std::int64_t queries = (mla.qk_head_dim + mla.qk_rope_head_dim) * sizes_.heads;
  const Slot both = tape_.allocate(sizes_.element * sizes_.tokens * (mla.qk_head_dim + mla.v_head_dim) * sizes_.heads);
  tape_.release(key_gradient_, value_gradient_);
  Slot normed = tape_.matmul(sizes_.element * sizes_.rows * mla.kv_lora_rank);
  tape_.weight_gradient((mla.qk_head_dim + mla.v_head_dim) * sizes_.heads, mla.kv_lora_rank);
  tape_.release(both, normed_latent_key_);
  Slot latent = tape_.allocate(sizes_.element * sizes_.rows * (mla.kv_lora_rank + mla.qk_rope_head_dim));
  tape_.release(normed, latent_key_);
  const Slot gradient = tape_.matmul(sizes_.split);
  tape_.weight_gradient(mla.kv_lora_rank + mla.qk_rope_head_dim, tape_.job.model.hidden);
  tape_.release(latent);
  if (mla.q_lora_rank > 0) {
    normed = tape_.matmul(sizes_.element * sizes_.rows * mla.q_lora_rank);
    tape_.weight_gradient(queries, mla.q_lora_rank);
    tape_.release(query_gradient_, normed_latent_query_);
    latent = tape_.allocate(sizes_.element * sizes_.rows * mla.q_lora_rank);
    tape_.release(normed, latent_query_);
  } else {
    latent = query_gradient_;
  }
  const Slot other = tape_.matmul(sizes_.split);
  tape_.weight_gradient(mla.q_lora_rank > 0 ? mla.q_lora_rank : queries, tape_.job.model.hidden);
  tape_.release(latent, input, other);
  return gradient;
}

}  // namespace ebb
