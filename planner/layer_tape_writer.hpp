// LayerTapeWriter: what the parts of a layer write with (layer_tape*.cpp). Internal to them.
//
// A block (attention core, feed-forward, ...) has a forward that leaves tensors for its backward. Where it is
// recomputed, forward frees them again, and backward runs the forward once more first.
#pragma once

#include "planner/layer_activations.hpp"
#include "planner/layer_tape.hpp"

namespace ebb {

class LayerTapeWriter {
 public:
  using Slot = LayerTape::Slot;
  /// No tensor: allocating 0 bytes gives it, and releasing it does nothing.
  static constexpr Slot kNoSlot = 0xffffffffU;

  LayerTapeWriter(const Job& of, LayerTape& tape) : job(of), tape_(tape), ops_(&tape.forward) {}

  /// From here on it is backward, whose tensors are gradients unless term() says otherwise.
  void turn() {
    ops_ = &tape_.backward;
    matmul_ = FirstUse::backward_matmul;
    term_ = MemoryTerm::backward;
  }

  /// What tensors from here on are for, until the next call. See TermScope.
  void term(MemoryTerm term) { term_ = term; }
  MemoryTerm current_term() const { return term_; }

  Slot allocate(std::int64_t bytes) {
    if (bytes <= 0) return kNoSlot;
    const Slot made = slot();
    fill(made, bytes);
    return made;
  }
  /// A place for a tensor that comes later.
  Slot slot() { return tape_.slots++; }
  /// A tensor with a given place: the output, or one that is recomputed.
  void fill(Slot slot, std::int64_t bytes) {
    ops_->push_back({LayerTape::Kind::allocate, slot, Bytes{bytes}, term_, 0});
  }
  template <class... Slots>
  void release(Slots... slots) {
    (release_one(slots), ...);
  }
  void pass(std::int64_t bytes) { release(allocate(bytes)); }
  void first_use(FirstUse what, std::int64_t bytes) {
    ops_->push_back({LayerTape::Kind::first_use, static_cast<Slot>(what), Bytes{bytes}, {}, 0});
  }
  /// The result of a matrix product; the library takes its workspace on first use.
  Slot matmul(std::int64_t bytes) {
    const Slot slot = allocate(bytes);
    first_use(matmul_, kMatmulWorkspace);
    return slot;
  }
  /// The gradients of `weights` weights of rows x columns. Fused, the matrix product adds them to the gradient buffer,
  /// and Transformer Engine hands autograd one stand-in for all weights of a shape, which it keeps (its module/base.py,
  /// get_dummy_wgrad). Recorded: 27.7 MiB for a 512-wide model with 25,216 rows of output. Otherwise they are tensors
  /// of the parameter's type until autograd's hook has added them.
  void weight_gradient(std::int64_t rows, std::int64_t columns, std::int64_t weights = 1) {
    const std::int64_t bytes = element() * rows * columns;
    if (!job.activations.gradient_fusion) return release(matmul(weights * bytes));
    if (is_local() || bytes <= 0) return;
    ops_->push_back({LayerTape::Kind::first_use,
                     static_cast<Slot>(FirstUse::gradient_stand_in),
                     Bytes{bytes},
                     {},
                     static_cast<std::uint32_t>(rows)});
  }

  /// Rows that sequence parallelism splits are gathered for a matrix product, and results scattered. Megatron-LM's own
  /// layers gather into its shared buffer.
  Slot gathered(std::int64_t bytes) {
    if (!job.parallel.sequence) return kNoSlot;
    if (!is_local()) return allocate(bytes);
    first_use(FirstUse::shared_buffer, bytes);
    return kNoSlot;
  }
  /// The result of a row-parallel product of `whole` bytes, as `split` bytes where rows are split.
  Slot row_parallel(std::int64_t whole, std::int64_t split) {
    const Slot product = matmul(whole);
    if (!job.parallel.sequence) return product;
    const Slot scattered = allocate(split);
    release(product);
    return scattered;
  }

  bool is_local() const { return job.compute.attention == Attention::local; }
  bool keeps_scores() const { return job.compute.attention != Attention::flash; }
  /// Bytes of an activation's element.
  std::int64_t element() const { return size_of(job.precision.params); }
  /// The mask that dropout of `elements` hidden elements keeps for backward: a byte each.
  Slot dropout_mask(std::int64_t elements) { return job.activations.hidden_dropout > 0 ? allocate(elements) : kNoSlot; }
  bool drops(std::string_view module) const { return recomputes(job.recompute, module); }

  const Job& job;

 private:
  static constexpr std::int64_t kMatmulWorkspace = std::int64_t{32} << 20;

  void release_one(Slot slot) {
    if (slot != kNoSlot) ops_->push_back({LayerTape::Kind::release, slot, {}, {}, 0});
  }

  LayerTape& tape_;
  std::vector<LayerTape::Op>* ops_;
  MemoryTerm term_ = MemoryTerm::other;
  FirstUse matmul_ = FirstUse::forward_matmul;
};

/// Tensors from here to the end of the scope are for `term`; then again what they are for in this direction.
class TermScope {
 public:
  TermScope(LayerTapeWriter& tape, MemoryTerm term) : tape_(tape), before_(tape.current_term()) { tape.term(term); }
  ~TermScope() { tape_.term(before_); }
  TermScope(const TermScope&) = delete;
  TermScope& operator=(const TermScope&) = delete;

 private:
  LayerTapeWriter& tape_;
  MemoryTerm before_;
};

/// Bytes of a layer's tensors on one rank; of the parameters' type unless said otherwise.
struct LayerSizes {
  explicit LayerSizes(const Job& job);
  std::int64_t element = 2;   // bytes of an activation's element
  std::int64_t width = 2;     // bytes an element of a saved matrix-product input
  std::int64_t rows = 0;      // tokens that sequence parallelism splits
  std::int64_t tokens = 0;    // all tokens of the rank
  std::int64_t heads = 0;     // of the rank
  std::int64_t split = 0;     // hidden states of the split rows
  std::int64_t whole = 0;     // ... of all rows
  std::int64_t gathered = 0;  // ... of all rows, as a matrix-product input
  std::int64_t query = 0;
  std::int64_t key = 0;
  std::int64_t value = 0;
  std::int64_t context = 0;
  std::int64_t scores = 0;  // elements, where attention is unfused
};

/// Self-attention between the first norm's output and the residual.
class AttentionTape {
 public:
  using Slot = LayerTapeWriter::Slot;
  AttentionTape(LayerTapeWriter& tape, const LayerSizes& sizes) : tape_(tape), sizes_(sizes) {}
  /// The output of the projection.
  Slot forward();
  /// The gradient of `input`, the norm's output, which is freed when its last reader has run; so is `gradient`.
  Slot backward(Slot input, Slot gradient);

 private:
  static constexpr Slot kNoSlot = LayerTapeWriter::kNoSlot;
  /// Unfused rotary embedding: the tables that backward needs, and the result.
  struct Rotated {
    Slot cosine = kNoSlot;
    Slot sine = kNoSlot;
    Slot result = kNoSlot;
  };
  bool grouped() const { return tape_.job.model.heads != tape_.job.model.kv_heads; }
  bool rotary() const { return tape_.job.model.positions == Positions::rope; }

  void compress();
  void expand();
  void queries();
  void local_queries();
  Rotated rotate(std::int64_t bytes);
  Slot rotate_backward(const Rotated& rotated, Slot gradient, std::int64_t bytes);
  void core();
  void scores();
  bool has_fused_softmax() const;
  void core_backward(Slot gradient);
  void unfused_core_backward(Slot gradient);
  Slot scaled_product(std::int64_t bytes);
  void queries_backward();
  Slot latent_backward(Slot input);
  Slot mixed_backward(Slot input);

  LayerTapeWriter& tape_;
  const LayerSizes& sizes_;
  Slot mixed_ = kNoSlot;  // the product that holds queries, keys and values side by side
  Slot normed_query_ = kNoSlot, normed_key_ = kNoSlot;
  Rotated query_, key_;
  Slot value_ = kNoSlot;
  Slot latent_query_ = kNoSlot, normed_latent_query_ = kNoSlot;
  Slot latent_key_ = kNoSlot, normed_latent_key_ = kNoSlot;
  Slot softmax_ = kNoSlot;  // or, of fused attention, the log-sum-exp
  Slot rounded_ = kNoSlot;  // softmax as the product with the values reads it, where it was computed in fp32
  Slot dropped_ = kNoSlot, mask_ = kNoSlot;  // of attention dropout
  Slot context_ = kNoSlot, quantized_context_ = kNoSlot;
  Slot query_gradient_ = kNoSlot, key_gradient_ = kNoSlot, value_gradient_ = kNoSlot;
};

/// One feed-forward: dense, shared experts, or the routed experts together.
class FeedForwardTape {
 public:
  using Slot = LayerTapeWriter::Slot;
  struct Shape {
    std::int64_t rows = 0;
    std::int64_t columns = 0;    // of the rank, without the gate
    std::int64_t width = 0;      // of input and output
    bool experts = false;        // routed: their rows are not split
    bool grouped = false;        // ... and are in one product
    std::int64_t weights = 1;    // whose gradients come at once
    bool weighs = false;         // multiplies the activation by the router's weight in a step of its own
    bool drops_all = false;      // recomputed as a whole
    bool drops_product = false;  // only the activation's output is
  };
  FeedForwardTape(LayerTapeWriter& tape, const LayerSizes& sizes, const Shape& shape)
      : tape_(tape), sizes_(sizes), shape_(shape), column_bytes_(sizes.element * shape.rows * shape.columns) {}
  Slot forward();
  /// The gradient of `input`; frees it, and `gradient`, after their last use.
  Slot backward(Slot input, Slot gradient);

 private:
  static constexpr Slot kNoSlot = LayerTapeWriter::kNoSlot;
  std::int64_t gates() const { return tape_.job.model.gated ? 2 : 1; }
  bool unfused_gate() const { return tape_.job.model.gated && !tape_.job.activations.bias_fusion; }
  MemoryTerm term() const { return shape_.experts ? MemoryTerm::experts : MemoryTerm::feed_forward; }
  Slot run();
  Slot activate();
  Slot result();
  Slot activation_backward(Slot gradient);

  LayerTapeWriter& tape_;
  const LayerSizes& sizes_;
  Shape shape_;
  std::int64_t column_bytes_;
  Slot up_ = kNoSlot;      // fc1's output
  Slot gate_ = kNoSlot;    // unfused and gated: the activated half ...
  Slot linear_ = kNoSlot;  // ... and the linear one
  Slot plain_ = kNoSlot;   // the activation before the router's weight
  Slot active_ = kNoSlot;  // fc2's input
};

/// Rows that the router sends from a rank and to its experts.
struct RoutedRows {
  RoutedRows(const Job& job, std::int64_t tokens);
  std::int64_t sent = 0;
  std::int64_t received = 0;
};

/// Router, dispatch, routed and shared experts.
class ExpertsTape {
 public:
  using Slot = LayerTapeWriter::Slot;
  ExpertsTape(LayerTapeWriter& tape, const LayerSizes& sizes);
  Slot forward();
  /// The gradient of `input`; frees it, and `gradient`, after their last use.
  Slot backward(Slot input, Slot gradient);

 private:
  static constexpr Slot kNoSlot = LayerTapeWriter::kNoSlot;
  void route();
  void dispatch();
  Slot combine(Slot output);
  Slot combine_backward();
  Slot dispatch_backward(Slot permuted);

  LayerTapeWriter& tape_;
  const LayerSizes& sizes_;
  const MoeSpec& spec_;
  std::int64_t width_;  // what routed experts work on: hidden or latent
  RoutedRows routed_;
  FeedForwardTape experts_, shared_;
  Slot logits_ = kNoSlot, probabilities_ = kNoSlot, map_ = kNoSlot, order_ = kNoSlot, weights_ = kNoSlot;
  Slot permuted_ = kNoSlot;
  Slot latent_ = kNoSlot;  // input of the projection back to hidden
};

}  // namespace ebb
