// What the ops of quantised parameters compute, and what forward and backward see of them.
#include "kernels/objective.hpp"
#include "replay/quantized_reference.hpp"
#include "replay/reference_rank.hpp"

namespace ebb::replay {

/// The bytes of buffers as the plan names them, of the op that runs.
std::function<std::byte*(BufferId)> ReferenceRank::buffers() {
  const Bound& bound = actions_[running_];
  return [this, &bound](BufferId id) {
    for (const auto& [buffer, storage] : bound.named)
      if (buffer == id.index) return storages_[storage].data.data();
    assertion_failed("an op names the buffers of quantised parameters that it uses", __FILE__, __LINE__);
  };
}

void ReferenceRank::operate(const FindLargest& find) { find_largest_ref(*program_, find, buffers()); }
void ReferenceRank::operate(const Quantize& quantize) { quantize_ref(*program_, quantize, buffers()); }
void ReferenceRank::operate(const Dequantize& dequantize) { dequantize_ref(*program_, dequantize, buffers()); }
void ReferenceRank::operate(const MakeColumns& make) { make_columns_ref(*program_, make, buffers()); }

/// Forward multiplies by rows; backward by the column-wise copies, where there are any.
std::vector<float> ReferenceRank::values_of(const Stand& stand) {
  std::vector<float> values(static_cast<std::size_t>(stand.range.numel().value));
  dequantized_values_ref(*program_, stand.range, stand.backward && actions_[running_].columns_live, buffers(),
                         values.data());
  return values;
}

}  // namespace ebb::replay
