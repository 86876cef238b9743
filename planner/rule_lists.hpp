// Inside planner/rules*.cpp: the parts of the table, and what several rules word alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/rules.hpp"

namespace ebb::rule_lists {

using Rules = std::vector<Rule>;

Rules size_rules();           // ranges: what keeps all products inside int64
Rules pipeline_rules();       // world size and layers over stages
Rules parallel_rules();       // tensor, experts, batch
Rules optimizer_rules();      // optimizer and its communication
Rules precision_rules();      // dtypes, FP8 and FP4, what the GPU runs
Rules run_rules();            // recomputation, CUDA graphs, checkpoints, budgets
Rules offload_rules();        // what the offload block may say, and which policy goes with what
Rules offload_state_rules();  // ... and with which dtypes and checkpoints

/// "4", "4 or 8": the divisors of `number` nearest to `wanted`, below and above.
std::string nearest_divisors(std::int64_t number, std::int64_t wanted);
/// The multiples of `step` around `wanted`.
std::string nearest_multiples(std::int64_t step, std::int64_t wanted);
/// `size` must divide `number`, which is `what`.
void require_divisor(Findings& out, std::int64_t size, std::int64_t number, const char* what);

/// Elements of one model and saved activations of a micro-batch, roughly and from above: only to tell jobs that exist
/// from numbers that overflow.
double rough_elements(const ModelSpec& model);
double rough_activation_bytes(const Job& job);

// Where rules come from.
inline constexpr std::string_view kLimit = "Ebb: far above any real job, it keeps every product inside 63 bits";
inline constexpr std::string_view kArguments =
    "Megatron-LM main d98e8a64dd, megatron/training/arguments.py, validate_args";
inline constexpr std::string_view kTransformerConfig =
    "Megatron-LM main d98e8a64dd, megatron/core/transformer/transformer_config.py, __post_init__";
inline constexpr std::string_view kOptimizerConfig =
    "Megatron-LM main d98e8a64dd, megatron/core/optimizer/optimizer_config.py, __post_init__";

}  // namespace ebb::rule_lists
