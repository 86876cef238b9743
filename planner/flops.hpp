// Floating-point operations of a transformer, by Megatron-LM's own formula, piece by piece so that a pipeline stage can
// be added up from its layers. A multiply-add counts as two, causal attention as half, backward as twice forward.
// Not counted, as there: norms, activations, the router, the optimizer.
#pragma once

#include "models/model_spec.hpp"
#include "models/units.hpp"

namespace ebb {

/// Forward of one layer's attention matrices (query, key, value, output) for one sequence, without the core.
Flops attention_matrix_flops(const ModelSpec& model, std::int64_t sequence);

/// Forward of one layer's MLP, or of its routed and shared experts.
Flops feed_forward_flops(const ModelSpec& model, bool moe, std::int64_t sequence);

/// Forward of one layer's attention core: queries x keys and scores x values, the causal half.
Flops attention_core_flops(const ModelSpec& model, std::int64_t sequence);

/// Forward of the output layer, on the vocabulary padded as on one tensor-parallel rank.
Flops output_flops(const ModelSpec& model, std::int64_t sequence);

/// Forward of what one multi-token-prediction layer has beyond its transformer layer and output layer.
Flops mtp_flops(const ModelSpec& model, std::int64_t sequence);

/// Forward and backward of the whole model for one sequence.
/// Source: Megatron-LM megatron/training/training.py:802-1385 (num_floating_point_operations) at d98e8a64dd.
Flops model_flops_per_sequence(const ModelSpec& model, std::int64_t sequence);

}  // namespace ebb
