// Shapes of the tensors, for a matrix [M, K]; pad(n) rounds up to a multiple of n.
//   delayed, tensorwise   row M K bytes, column K M bytes; inverse scale, scale and largest value of the matrix. Where
//                         the GPU multiplies FP8 matrices of any layout there is no column-wise copy.
//   blockwise             the same two copies; one fp32 scale for each 128 x 128 block:
//                         row [ceil(M/128), pad4(ceil(K/128))], column [ceil(K/128), pad4(ceil(M/128))]
//   mxfp8                 the same two copies; one byte of scale for 32 elements in a row (a column):
//                         row [pad128(M), pad4(ceil(K/32))], column [pad4(ceil(M/32)), pad128(K)]
//   nvfp4                 two copies of M K / 2 bytes; one byte of scale for 16 elements:
//                         row [pad128(M), pad4(ceil(K/16))], column [pad128(K), pad4(ceil(M/16))]; two largest values
// Who frees the column-wise copy. quantize_master_weights drops it (update_usage(columnwise_usage=False)) for block
// recipes; of a per-tensor one it only marks the transpose as out of date (Float8Tensor._reset_caches), so that its
// storage stays once it exists. MXFP8 through the gradient buffer is quantised both ways at once after the gather
// (param_and_grad_buffer.py), so nothing is dropped.
#include "planner/weight_bytes.hpp"

#include <numeric>

#include "models/errors.hpp"
#include "models/memory/torch_allocator.hpp"
#include "planner/quantization.hpp"

namespace ebb {

namespace {

constexpr Bytes kScalar{4};

/// Only data-centre Blackwell multiplies fp8 matrices of any layout; other GPUs keep a transposed copy of each weight
/// (Transformer Engine, is_non_tn_fp8_gemm_supported).
bool needs_transposed_weights(const Job& job) {
  const std::string& gpu = job.cluster.gpu.name;
  return gpu.find("B200") == std::string::npos && gpu.find("B300") == std::string::npos;
}

Bytes area(std::int64_t rows, std::int64_t columns) { return {rows * columns}; }

void per_tensor(WeightBytes& bytes, const Job& job) {
  if (!needs_transposed_weights(job)) bytes.column = Bytes{0};
  bytes.scalars = 3;
}

void blockwise(WeightBytes& bytes, const Parameter& p) {
  const std::int64_t m = ceil_div(p.rows, 128);
  const std::int64_t k = ceil_div(p.columns, 128);
  bytes.row_scales = area(m, round_up(k, 4)) * 4;
  bytes.column_scales = area(k, round_up(m, 4)) * 4;
  bytes.column_freed = true;
}

void mxfp8(WeightBytes& bytes, const Parameter& p) {
  bytes.row_scales = area(round_up(p.rows, 128), round_up(ceil_div(p.columns, 32), 4));
  bytes.column_scales = area(round_up(ceil_div(p.rows, 32), 4), round_up(p.columns, 128));
}

void nvfp4(WeightBytes& bytes, const Parameter& p) {
  bytes.row = bytes.column = {ceil_div(p.numel().value, 2)};
  bytes.row_scales = area(round_up(p.rows, 128), round_up(ceil_div(p.columns, 16), 4));
  bytes.column_scales = area(round_up(p.columns, 128), round_up(ceil_div(p.rows, 16), 4));
  bytes.scalars = 2;
  bytes.column_freed = true;
}

/// Whether the buffer's parameters lie in the gradient buffer while they are gathered.
bool through_gradients(const Job& job, const BufferLayout& buffer) {
  return buffer.quantized && job.precision.fp8 == Fp8Recipe::mxfp8 && job.precision.reuses_grad_buffer();
}

/// NVFP4's parameter buffer has an index of its own: the parameters and buckets of the gradient buffer, with the same
/// alignments in packed bytes instead of elements (param_and_grad_buffer.py:1437-1523).
Bytes packed_buffer_bytes(const Job& job, const BufferLayout& buffer) {
  std::int64_t alignment = std::lcm(buffer.shards, std::int64_t{128});
  if (job.parallel.pad_buckets) alignment = std::lcm(alignment, std::int64_t{1} << 16);
  std::int64_t end = 0;
  std::uint32_t bucket = 0;
  for (const ParameterRange& range : buffer.ranges) {
    if (range.bucket != bucket) end = round_up(end, alignment);
    bucket = range.bucket;
    end = round_up(end, 64) + ceil_div((range.end - range.start).value, 2);
  }
  return {round_up(end, alignment)};
}

Bytes counted(const std::vector<Bytes>& tensors) {
  Bytes sum{0};
  for (const Bytes tensor : tensors) sum += memory::allocated_bytes(tensor);
  return sum;
}

void append(std::vector<Bytes>& tensors, Bytes data, Bytes scales) {
  if (data.value > 0) tensors.push_back(data);
  if (data.value > 0 && scales.value > 0) tensors.push_back(scales);
}

}  // namespace

WeightBytes weight_bytes(const Job& job, const Parameter& parameter) {
  WeightBytes bytes;
  const Precision& precision = job.precision;
  if (!parameter.low_precision) return bytes;
  EBB_ASSERT(parameter.columns > 0);
  bytes.row = bytes.column = bytes_of(parameter.numel(), 1);
  bytes.row_in_buffer = parameter.quantized;
  if (precision.fp4 == Fp4Recipe::nvfp4) {
    nvfp4(bytes, parameter);
    return bytes;
  }
  switch (precision.fp8) {
    case Fp8Recipe::none:
      return {};
    case Fp8Recipe::delayed:
    case Fp8Recipe::tensorwise:
      per_tensor(bytes, job);
      break;
    case Fp8Recipe::blockwise:
      blockwise(bytes, parameter);
      break;
    case Fp8Recipe::mxfp8:
      mxfp8(bytes, parameter);
      bytes.row_in_buffer = parameter.quantized && !precision.reuses_grad_buffer();
      break;
  }
  return bytes;
}

Bytes parameter_buffer_bytes(const Job& job, const BufferLayout& buffer) {
  if (!buffer.quantized) return bytes_of(buffer.numel, size_of(job.precision.params));
  if (job.precision.fp4 == Fp4Recipe::nvfp4) return packed_buffer_bytes(job, buffer);
  return through_gradients(job, buffer) ? Bytes{0} : bytes_of(buffer.numel, 1);
}

Bytes gathered_bytes(const Job& job, const BufferLayout& buffer, Numel numel) {
  if (!buffer.quantized || through_gradients(job, buffer)) return bytes_of(numel, size_of(job.precision.params));
  if (job.precision.fp4 == Fp4Recipe::nvfp4) return {ceil_div(numel.value, 2)};
  const bool columns_too = job.precision.fp8 == Fp8Recipe::mxfp8;  // quantised where the masters are, both ways
  return bytes_of(numel, columns_too ? 2 : 1);
}

bool eager_columnwise(const Job& job) {
  switch (job.precision.fp8_columnwise) {
    case Columnwise::automatic:
      return job.megatron.cuda_graphs != CudaGraphs::none;
    case Columnwise::eager:
      return true;
    case Columnwise::lazy:
      return false;
  }
  return true;
}

Bytes WeightCopies::always_bytes() const { return counted(always); }
Bytes WeightCopies::columns_bytes() const { return counted(columns); }

namespace {

/// The same tensors by what a replay keeps in them.
void add_explicit(const WeightBytes& bytes, Fp8Recipe recipe, WeightCopies& copies) {
  const auto room = [](Bytes tensor) { return tensor.value > 0 ? memory::allocated_bytes(tensor) : Bytes{0}; };
  copies.scales += room(bytes.row_scales) + room(kScalar) * bytes.scalars;
  if (bytes.column_freed) return;
  copies.kept_columns += room(bytes.column);
  (recipe == Fp8Recipe::mxfp8 ? copies.scales : copies.kept_columns) += room(bytes.column_scales);
}

}  // namespace

WeightCopies weight_copies(const Job& job, const StageLayout& stage) {
  WeightCopies copies;
  const bool explicitly = quantizes_explicitly(job.precision);
  for (const Parameter& parameter : stage.parameters) {
    const WeightBytes bytes = weight_bytes(job, parameter);
    if (explicitly && parameter.quantized) add_explicit(bytes, job.precision.fp8, copies);
    if (!bytes.row_in_buffer) append(copies.always, bytes.row, Bytes{0});
    if (bytes.row_scales.value > 0) copies.always.push_back(bytes.row_scales);
    copies.always.insert(copies.always.end(), static_cast<std::size_t>(bytes.scalars), kScalar);
    // Without the gather the copies are Transformer Engine's cache of a bf16 weight, which no quantisation drops.
    const bool dropped = bytes.column_freed && parameter.quantized;
    append(dropped ? copies.columns : copies.always, bytes.column, bytes.column_scales);
  }
  return copies;
}

Bytes weight_copies_between_steps(const Job& job, const StageLayout& stage) {
  const WeightCopies copies = weight_copies(job, stage);
  return copies.always_bytes() + (eager_columnwise(job) ? copies.columns_bytes() : Bytes{0});
}

}  // namespace ebb
