// LayerTape: the tensors of one transformer layer in one micro-batch, in the order in which forward and backward
// allocate and free them. The gradient of the residual stream is the caller's: each half of a layer adds to it in
// place. Sizes are those of layer_activations.hpp; this adds the order and the temporaries. One tape serves all layers
// of its kind.
#pragma once

#include <cstdint>
#include <vector>

#include "models/job.hpp"
#include "models/units.hpp"
#include "planner/memory_term.hpp"

namespace ebb {

/// What a process allocates when it is first needed and then keeps.
enum class FirstUse : std::uint8_t {
  forward_matmul,     // matrix-library workspace of the thread that runs forward
  backward_matmul,    // ... and of autograd's thread
  grouped_matmul,     // workspaces of grouped matrix products
  shared_buffer,      // Megatron-LM's: scores of local attention and gathered rows are written to it
  gradient_stand_in,  // what autograd gets for a weight whose gradient was added in the product: one for each shape
};
inline constexpr std::size_t kFirstUses = 5;

struct LayerTape {
  using Slot = std::uint32_t;
  static constexpr Slot kInput = 0;   // allocated by the layer before; backward frees it
  static constexpr Slot kOutput = 1;  // allocated in forward; the next layer's input

  enum class Kind : std::uint8_t { allocate, release, first_use };
  struct Op {
    Kind kind = Kind::allocate;
    Slot slot = 0;  // first_use: a FirstUse
    Bytes bytes{0};
    MemoryTerm term = MemoryTerm::other;  // allocate only
    std::uint32_t rows = 0;               // gradient_stand_in: with the bytes, its shape
  };
  std::vector<Op> forward;   // leaves what backward needs
  std::vector<Op> backward;  // frees that
  Slot slots = kOutput + 1;
};

/// `moe`: an MoE layer rather than a dense one. Selective recomputation is in it, full is not. Sources: Megatron-LM
/// main d98e8a64dd (core/transformer/transformer_layer.py, attention.py, dot_product_attention.py, mlp.py,
/// core/models/common/embeddings/rope_utils.py, core/tensor_parallel/layers.py) and torch 2.11's derivatives.yaml.
LayerTape layer_tape(const Job& job, bool moe);

/// By slot: the allocation that is alive once `ops` have run; 0 bytes where none is.
std::vector<LayerTape::Op> live_after(const std::vector<LayerTape::Op>& ops, LayerTape::Slot slots);

}  // namespace ebb
