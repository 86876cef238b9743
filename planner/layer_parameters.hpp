// The parameters of one transformer layer, in the order in which Megatron's modules register them.
// What surrounds the layers (embeddings, final norm, output, prediction heads) is in parameters.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/parameters.hpp"

namespace ebb {

/// Whether each tensor-parallel rank holds a part of a parameter or a copy of it.
enum class Held : bool { split, copied };

/// Collects parameters in definition order. Shapes are those of one rank; names get the current prefix.
class ParameterList {
 public:
  explicit ParameterList(const Job& job);

  /// Prefix of the names that follow, with its final dot.
  void enter(std::string prefix) { prefix_ = std::move(prefix); }
  /// Whether the linear weights that follow may be multiplied in FP8 or FP4: not those of layers kept in bf16.
  void allow_low_precision(bool allowed) { layer_allows_ = allowed; }
  /// The weight of a Transformer Engine linear layer: what FP8 and FP4 recipes multiply, and store with their gather.
  void linear(std::string_view name, std::int64_t rows, std::int64_t columns, Held held);
  /// Any other matrix: embeddings, router, gates.
  void matrix(std::string_view name, std::int64_t rows, std::int64_t columns, Held held);
  void vector(std::string_view name, std::int64_t size, Held held);
  /// A norm of its own: `name`.weight, and .bias for LayerNorm.
  void norm(std::string_view name, std::int64_t size);
  /// A norm fused into the linear layer `name`: its parameters come before the layer's weight.
  void fused_norm(std::string_view name, std::int64_t size);
  /// Weight or bias of local routed expert `index` in grouped layer `name`.
  void expert_linear(std::string_view name, std::int64_t index, std::int64_t rows, std::int64_t columns);
  void expert_bias(std::string_view name, std::int64_t index, std::int64_t size);

  Parameter& last() { return parameters_.back(); }
  std::vector<Parameter> take() { return std::move(parameters_); }

 private:
  Parameter& add(std::string_view name, std::int64_t rows, std::int64_t columns);

  std::string prefix_;
  std::vector<Parameter> parameters_;
  bool low_precision_;
  bool layer_allows_ = true;
  bool gather_;
  bool separate_experts_;
  bool norm_bias_;
};

/// Appends one layer under the list's prefix.
void append_layer(ParameterList& list, const Job& job, bool moe);

/// value / parts. A remainder is a bug here: the job's constraints were checked before.
std::int64_t divide(std::int64_t value, std::int64_t parts);

}  // namespace ebb
