// What each op computes: the kernels' references over the bytes that its action names.
#include <cstring>

#include "kernels/elementwise.hpp"
#include "kernels/norm.hpp"
#include "kernels/objective.hpp"
#include "replay/kernel_runs.hpp"
#include "replay/reference_rank.hpp"

namespace ebb::replay {

void ReferenceRank::operate(const Copy& copy) {
  for (const Transfer& transfer : copy.transfers) {
    std::byte* const device = data(transfer.device.buffer) + transfer.device.at.value;
    std::byte* const host = pinned_.data() + transfer.host_at.value;
    std::memcpy(copy.to_device ? device : host, copy.to_device ? host : device,
                static_cast<std::size_t>(transfer.bytes.value));
  }
}

void ReferenceRank::operate(const DeviceAdam& adam) {
  const Precision& precision = plan().precision;
  const kernels::AdamwArrays arrays{.grad = data(adam.grads),
                                    .exp_avg = data(adam.moments),
                                    .exp_avg_sq = data(adam.moments),
                                    .master = data(adam.masters),
                                    .param = adam.params.valid() ? data(adam.params) : nullptr,
                                    .grad_type = kernel_type(adam.grad_type),
                                    .exp_avg_type = kernel_type(precision.exp_avg),
                                    .exp_avg_sq_type = kernel_type(precision.exp_avg_sq),
                                    .param_type = kernel_type(precision.params)};
  const std::int64_t step = place_.adam_steps + 1;
  kernels::adamw_ref(arrays, adamw_runs(adam.runs), kernels::adamw_step(options_.adam, step));
  if (!options_.digests) return;
  for (const StateRun& run : adam.runs) {
    const Numel numel = run.elements.numel();
    digest(precision.exp_avg, data(adam.moments), kExpAvg, run.elements.begin, run.exp_avg, numel);
    digest(precision.exp_avg_sq, data(adam.moments), kExpAvgSq, run.elements.begin, run.exp_avg_sq, numel);
    digest(Dtype::fp32, data(adam.masters), kMaster, run.elements.begin, run.master, numel);
  }
}

void ReferenceRank::operate(const HostAdam& adam) {
  const kernels::AdamwArrays arrays{
      .grad = pinned_.data(), .exp_avg = pageable_.data(), .exp_avg_sq = pageable_.data(), .master = pinned_.data()};
  const std::int64_t step = place_.adam_steps + 1;
  kernels::adamw_ref(arrays, adamw_runs(adam.runs), kernels::adamw_step(options_.adam, step));
  if (!options_.digests) return;
  for (const StateRun& run : adam.runs) {
    const Numel numel = run.elements.numel();
    digest(Dtype::fp32, pageable_.data(), kExpAvg, run.elements.begin, run.exp_avg, numel);
    digest(Dtype::fp32, pageable_.data(), kExpAvgSq, run.elements.begin, run.exp_avg_sq, numel);
    digest(Dtype::fp32, pinned_.data(), kMaster, run.elements.begin, run.master, numel);
  }
}

void ReferenceRank::operate(const Cast& cast) {
  std::vector<kernels::CastRun> runs;
  runs.reserve(cast.runs.size());
  for (const CastRun& run : cast.runs) runs.push_back({run.from.value, run.to.value, run.numel.value});
  kernels::cast_ref({.source = data(cast.from),
                     .destination = data(cast.to),
                     .source_type = kernel_type(cast.from_type),
                     .destination_type = kernel_type(cast.to_type)},
                    runs);
}

void ReferenceRank::operate(const Norm& norm) {
  const float sum = kernels::sum_of_squares_ref(kernel_type(norm.type), data(norm.grads), grad_runs(norm.runs));
  std::memcpy(data(norm.norm) + NormWords::kSumOfSquares, &sum, sizeof sum);
}

void ReferenceRank::operate(const Clip& clip) {
  std::byte* const words = data(clip.norm);
  float sum = 0;
  float coefficient = 0;
  std::uint32_t nonfinite = 0;
  std::memcpy(&sum, words + NormWords::kSumOfSquares, sizeof sum);
  kernels::clip_coefficient_ref({.sum = &sum, .coefficient = &coefficient, .nonfinite = &nonfinite}, options_.max_norm,
                                1 / place_.loss_scale);
  std::memcpy(words + NormWords::kCoefficient, &coefficient, sizeof coefficient);
  std::memcpy(words + NormWords::kNonFinite, &nonfinite, sizeof nonfinite);
  kernels::scale_ref(kernel_type(clip.type), data(clip.grads), grad_runs(clip.runs), coefficient);
  now_.sum_of_squares = sum;
}

void ReferenceRank::operate(const Zero& zero) {
  for (const Zero::Part& part : zero.parts)
    std::memset(data(zero.buffer) + part.at.value, 0, static_cast<std::size_t>(part.bytes.value));
}

/// fp32 of what the model's type holds of the initial values.
void ReferenceRank::operate(const HostMasters& masters) {
  const kernels::Type type = kernel_type(plan().precision.params);
  for (const HostMasters::Run& run : masters.runs) {
    std::vector<std::byte> values(static_cast<std::size_t>(bytes_of(run.numel, kernels::bytes_of(type)).value));
    const kernels::Run all{.offset = 0, .index = run.at.value, .numel = run.numel.value};
    kernels::fill_random_ref(type, values.data(), std::span(&all, 1), options_.seed, 1);
    const kernels::CastRun cast{0, run.host_at.value, run.numel.value};
    kernels::cast_ref({.source = values.data(),
                       .destination = pinned_.data(),
                       .source_type = type,
                       .destination_type = kernels::Type::fp32},
                      std::span(&cast, 1));
  }
}

void ReferenceRank::operate(const Store& store) {
  for (const CheckpointPiece& piece : store.pieces)
    checkpoint.store(piece, (piece.host == Memory::pinned ? pinned_ : pageable_).data() + piece.host_at.value);
}

void ReferenceRank::operate(const Fetch& fetch) {
  for (const CheckpointPiece& piece : fetch.pieces)
    checkpoint.fetch(piece, (piece.host == Memory::pinned ? pinned_ : pageable_).data() + piece.host_at.value);
}

void ReferenceRank::operate(const ZeroGrads& zero) {
  std::memset(data(zero.grads), 0, static_cast<std::size_t>(program_->padded.value * size_of(plan().precision.grads)));
}

void ReferenceRank::operate(const Stand& stand) {
  if (stand.fills()) return;  // activations have no bytes here
  const std::int64_t begin = stand.range.begin;
  const Precision& precision = plan().precision;
  kernels::ObjectiveParams params{.data = data(program_->params) + begin * size_of(precision.params),
                                  .type = kernel_type(precision.params),
                                  .begin = begin,
                                  .numel = stand.range.numel().value};
  std::vector<float> values;
  if (program_->quantized) {
    values = values_of(stand);
    params.data = values.data();
    params.type = kernels::Type::fp32;
  }
  const kernels::ObjectiveKey key{.seed = place_.seed,
                                  .step = static_cast<std::uint32_t>(place_.steps + 1),
                                  .micro = stand.micro,
                                  .rank = static_cast<std::uint32_t>(plan().rank)};
  if (stand.backward) {
    kernels::objective_gradient_ref(params, key,
                                    {.data = data(program_->grads) + begin * size_of(precision.grads),
                                     .type = kernel_type(precision.grads),
                                     .scale = program_->gradient_scale * place_.loss_scale,
                                     .accumulate = true});
    return;
  }
  if (losses_.size() <= stand.micro) losses_.resize(stand.micro + 1);
  losses_[stand.micro] = kernels::objective_loss_ref(params, key);
}

}  // namespace ebb::replay
