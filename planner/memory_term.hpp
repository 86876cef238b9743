// MemoryTerm: what a tensor on the device is there for. Every tensor of an AllocationTrace has one, so that the terms
// of any moment add up to what is live.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ebb {

enum class MemoryTerm : std::uint8_t {
  parameters,
  weight_copies,  // of FP8 and FP4 recipes
  gradients,
  gradient_copies,  // in the optimizer's type
  masters,
  moments,
  workspaces,
  hidden_states,  // inputs of stages and layers: the residual stream
  attention,
  feed_forward,
  experts,
  loss,        // logits and what cross entropy keeps
  prediction,  // multi-token prediction
  data,        // tokens, masks, rotary tables
  backward,    // gradients of activations
  optimizer_scratch,
  checkpoint,
  remainder,  // of a run of the job beyond all of these (ebb learn)
  other,
};
inline constexpr std::size_t kMemoryTerms = static_cast<std::size_t>(MemoryTerm::other) + 1;

constexpr std::string_view name_of(MemoryTerm term) {
  constexpr std::array<std::string_view, kMemoryTerms> kNames = {"parameters",
                                                                 "weight copies",
                                                                 "gradients",
                                                                 "gradient copies",
                                                                 "master weights",
                                                                 "moments",
                                                                 "workspaces",
                                                                 "hidden states",
                                                                 "attention",
                                                                 "feed-forward",
                                                                 "experts",
                                                                 "logits and loss",
                                                                 "prediction layers",
                                                                 "data and tables",
                                                                 "activation gradients",
                                                                 "optimizer scratch",
                                                                 "checkpoint",
                                                                 "measured remainder",
                                                                 "other"};
  return kNames[static_cast<std::size_t>(term)];
}

}  // namespace ebb
