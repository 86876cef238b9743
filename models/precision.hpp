// Precision: storage types of parameters, gradients and optimizer state, and what the FP8 and FP4 recipes keep beside
// them, as Megatron-LM's arguments say it. Plain data with the questions that its dtypes answer by themselves.
#pragma once

#include <cstdint>
#include <optional>

#include "models/dtype.hpp"

namespace ebb {

enum class Fp8Recipe : std::uint8_t { none, delayed, tensorwise, blockwise, mxfp8 };
enum class Fp4Recipe : std::uint8_t { none, nvfp4 };

/// When the column-wise (transposed) copies of gathered FP8 weights come to life after a step: at once, or in the next
/// forward (`preserve_fp8_columnwise`: eager under CUDA graphs, lazy otherwise).
enum class Columnwise : std::uint8_t { automatic, eager, lazy };

struct Precision {
  Dtype params = Dtype::bf16;
  Dtype grads = Dtype::fp32;
  Dtype exp_avg = Dtype::fp32;
  Dtype exp_avg_sq = Dtype::fp32;
  Dtype master = Dtype::fp32;
  std::optional<bool> precision_aware;  // --use-precision-aware-optimizer; unset: where a dtype asks for it
  std::optional<bool> remainders;       // store_param_remainders; unset: as Megatron (true where it applies)
  Fp8Recipe fp8 = Fp8Recipe::none;
  bool fp8_param_gather = false;
  Columnwise fp8_columnwise = Columnwise::automatic;
  std::optional<bool> fp8_reuse_grad_buffer;  // --reuse-grad-buf-for-mxfp8-param-ag; unset: mxfp8 with the gather
  std::int64_t first_bf16_layers = 0;         // --first-last-layers-bf16
  std::int64_t last_bf16_layers = 0;
  Fp4Recipe fp4 = Fp4Recipe::none;
  bool fp4_param_gather = false;

  /// Transformer Engine's optimizer reads gradients and keeps moments in the types asked for.
  bool is_precision_aware() const {
    return precision_aware.value_or(exp_avg != Dtype::fp32 || exp_avg_sq != Dtype::fp32 || master != Dtype::fp32);
  }
  /// Transformer Engine's optimizer keeps the master weights, in its own state; otherwise Megatron does.
  /// Source: Megatron-LM core/optimizer/optimizer_config.py, use_precision_aware_optimizer_no_fp8_or_ds_fp8.
  bool optimizer_holds_masters() const {
    const bool plain = fp8 == Fp8Recipe::none || fp8 == Fp8Recipe::delayed;
    return is_precision_aware() && (plain || master != Dtype::fp32);
  }
  /// A master is the bf16 parameter and 16 more bits (int16). Same source: default true, no command-line flag. An FP8
  /// parameter has no upper half of a master, so gathered FP8 weights come with whole masters.
  bool keeps_remainders() const {
    return optimizer_holds_masters() && master == Dtype::fp32 && params == Dtype::bf16 && !fp8_param_gather &&
           remainders.value_or(true);
  }
  bool reuses_grad_buffer() const {
    return fp8_reuse_grad_buffer.value_or(fp8 == Fp8Recipe::mxfp8 && fp8_param_gather);
  }

  /// Bytes of optimizer state per owned element (megatron.md 2.2). An fp32 parameter is its own master.
  std::int64_t moment_bytes() const { return size_of(exp_avg) + size_of(exp_avg_sq); }
  std::int64_t master_bytes() const {
    if (params == Dtype::fp32) return 0;
    return keeps_remainders() ? 2 : size_of(master);
  }
  std::int64_t state_bytes() const { return moment_bytes() + master_bytes(); }
  bool operator==(const Precision&) const = default;
};

}  // namespace ebb
