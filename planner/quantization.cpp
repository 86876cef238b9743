#include "planner/quantization.hpp"

#include "models/errors.hpp"
#include "planner/weight_bytes.hpp"

namespace ebb {

namespace {

std::int64_t blocks(const Parameter& parameter) {
  return ceil_div(parameter.rows, 128) * round_up(ceil_div(parameter.columns, 128), 4);
}

std::int64_t tiles(const Parameter& parameter) {
  return ceil_div(parameter.rows, 16) * ceil_div(parameter.columns, 16);
}

}  // namespace

bool requantizes(const Precision& precision) {
  if (precision.optimizer_holds_masters()) return false;
  if (precision.fp4_param_gather) return true;
  const bool through_gradients = precision.fp8 == Fp8Recipe::mxfp8 && precision.reuses_grad_buffer();
  return precision.fp8_param_gather && !through_gradients;
}

bool quantizes_explicitly(const Precision& precision) {
  if (!requantizes(precision) || !precision.fp8_param_gather) return false;
  return precision.fp8 == Fp8Recipe::tensorwise || precision.fp8 == Fp8Recipe::blockwise ||
         precision.fp8 == Fp8Recipe::mxfp8;
}

Bytes largest_bytes(const Precision& precision, const Parameter& parameter) {
  if (precision.fp4 == Fp4Recipe::nvfp4) return {4 * (tiles(parameter) + 1)};
  if (precision.fp8 == Fp8Recipe::blockwise) return {4 * blocks(parameter)};
  if (precision.fp8 == Fp8Recipe::mxfp8) {
    const std::int64_t rows = parameter.rows * ceil_div(parameter.columns, 32);
    return {4 * (rows + ceil_div(parameter.rows, 32) * parameter.columns)};
  }
  return {4};
}

std::vector<Bytes> quantize_temporaries(const Precision& precision, const StageLayout& stage,
                                        std::span<const std::uint32_t> parameters) {
  const bool packs_scales = precision.fp8 == Fp8Recipe::delayed || precision.fp4 == Fp4Recipe::nvfp4;
  Bytes packed{0};
  std::vector<Bytes> tensors(1);
  for (const std::uint32_t index : parameters) {
    const Bytes largest = largest_bytes(precision, stage.parameters[index]);
    packed += largest;
    if (!packs_scales) tensors.push_back(largest);
  }
  tensors[0] = packed;
  if (packs_scales) tensors.push_back(packed);
  return tensors;
}

QuantizeBytes quantize_bytes(const Precision& precision) {
  constexpr std::int64_t kToModelType = 4 + 2;
  constexpr std::int64_t kReadForLargest = 2;
  constexpr std::int64_t kReadForCast = 2;
  if (precision.fp8 == Fp8Recipe::delayed) return {.measure = kToModelType, .cast = kReadForCast + 1};
  // NVFP4 writes half a byte, counted as one.
  return {.measure = kToModelType + kReadForLargest, .cast = kReadForCast + 1};
}

Bytes forward_quantize_bytes(const Job& job, const StageLayout& stage) {
  const bool rows_and_columns = job.precision.fp8 == Fp8Recipe::mxfp8;  // quantised together
  const std::int64_t read = job.precision.fp8 == Fp8Recipe::tensorwise ? 2 + 2 : 2;
  Bytes sum{0};
  for (const Parameter& parameter : stage.parameters) {
    const WeightBytes bytes = weight_bytes(job, parameter);
    if (bytes.row_in_buffer)
      sum += bytes.column * (rows_and_columns ? 0 : 2);
    else if (parameter.low_precision)
      sum += bytes_of(parameter.numel(), read) + bytes.row + bytes.column;
  }
  return sum;
}

Bytes made_columns_bytes(const Job& job, const StageLayout& stage) {
  Bytes sum{0};
  if (!quantizes_explicitly(job.precision) || job.precision.fp8 == Fp8Recipe::mxfp8) return sum;
  for (const Parameter& parameter : stage.parameters)
    if (const WeightBytes bytes = weight_bytes(job, parameter); bytes.row_in_buffer) sum += bytes.column * 2;
  return sum;
}

}  // namespace ebb
