// StageTrace: forward and backward of one pipeline rank in an AllocationTrace: its virtual stages, micro-batches in the
// order of the pipeline schedule, embedding, layers, recomputation, prediction layers, and the loss. Internal to
// allocation_trace.cpp.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "planner/layer_activations.hpp"
#include "planner/layer_tape.hpp"
#include "planner/lower.hpp"
#include "planner/trace_builder.hpp"

namespace ebb {

/// One micro-batch in one virtual stage, from `event` of the trace's part on.
struct StageVisit {
  Phase phase = Phase::forward;  // or backward
  const ModelChunk* chunk = nullptr;
  std::size_t event = 0;
};

class StageTrace {
 public:
  StageTrace(TraceBuilder& trace, const RankModel& rank) : StageTrace(trace, *rank.job, *rank.stage, rank.compute) {}
  /// `job` and `stage` outlive the trace.
  StageTrace(TraceBuilder& trace, const Job& job, const StageLayout& stage, const ComputeTime& compute);
  /// What is allocated on first use and kept is there already: only what each step allocates shows.
  void begin_warm();
  /// How long one layer takes, in place of the compute time's shares.
  void set_layer_times(Seconds forward, Seconds backward);
  /// All forwards and backwards of one step.
  void run();
  /// In the order of the schedule.
  const std::vector<StageVisit>& visits() const { return visits_; }
  /// Where each forward of a micro-batch through the layers of a virtual stage ended, before prediction and loss, in
  /// events of the trace's part.
  const std::vector<std::size_t>& forward_ends() const { return forward_ends_; }
  /// Of Megatron-LM's one buffer for what is gathered or multiplied into: as much as this step needs.
  Bytes shared_buffer() const { return shared_bytes_; }
  /// Of what Transformer Engine hands autograd in the place of fused weight gradients.
  Bytes gradient_stand_ins() const;

 private:
  /// One layer in one micro-batch: tensors by slot of its tape.
  struct Layer {
    const LayerTape* tape = nullptr;
    std::vector<TraceTensor> tensors;
  };
  /// A prediction layer: the embedding and the hidden state before and after their norms, their concatenation.
  struct Prediction {
    std::array<TraceTensor, 5> inputs;
    Layer layer;
    TraceTensor output;
    TraceTensor softmax;
  };
  /// What one micro-batch leaves behind in one virtual stage.
  struct MicroBatch {
    std::array<TraceTensor, 4> data;  // tokens, labels, positions, loss mask
    TraceTensor mask;                 // the loader's
    TraceTensor dropped;              // mask of the embedding's dropout
    std::vector<TraceTensor> inputs;  // of recomputed blocks
    std::vector<Layer> layers;        // that keep everything
    std::vector<Prediction> predictions;
    TraceTensor last;    // the final norm's input ...
    TraceTensor normed;  // ... and output
    TraceTensor statistics;
    TraceTensor softmax;
  };
  struct VirtualStage {
    const ModelChunk* chunk = nullptr;
    std::vector<const LayerTape*> layers;
    std::size_t whole_from = 0;     // layers from here on keep everything
    std::size_t recomputed_by = 1;  // the layers before are recomputed in blocks of so many
    std::deque<MicroBatch> alive;   // oldest first
  };

  void forward(VirtualStage& stage);
  void backward(VirtualStage& stage);
  void load_data(const VirtualStage& stage, MicroBatch& batch);
  TraceTensor first_input(const VirtualStage& stage, MicroBatch& batch);
  TraceTensor layer_forward(const LayerTape& tape, TraceTensor input, Layer& layer);
  void layer_backward(Layer& layer);
  TraceTensor block_forward(const VirtualStage& stage, std::size_t first, MicroBatch& batch, TraceTensor input);
  void block_backward(const VirtualStage& stage, std::size_t first, TraceTensor input);
  void forget(Layer& layer, bool input);
  void predict(const VirtualStage& stage, MicroBatch& batch);
  void predict_backward(Prediction& prediction);
  void loss_forward(MicroBatch& batch);
  TraceTensor loss_backward(MicroBatch& batch);
  TraceTensor cross_entropy();
  bool copies_logits() const;
  void gather_rows();
  TraceTensor logits_backward(TraceTensor softmax, TraceTensor input);
  Bytes weight_bytes() const;
  void play(const std::vector<LayerTape::Op>& ops, std::vector<TraceTensor>& tensors);
  void first_use(FirstUse what, Bytes bytes);
  void grow_shared_buffer(Bytes bytes);
  void gradient_stand_in(std::uint32_t rows, Bytes bytes);

  Bytes hidden() const { return hidden_state_bytes(job_); }
  std::int64_t element() const { return size_of(job_.precision.params); }

  TraceBuilder& trace_;
  const Job& job_;
  std::int64_t pipeline_rank_;
  LayerTape dense_;
  std::optional<LayerTape> moe_;
  std::vector<VirtualStage> stages_;
  std::array<bool, kFirstUses> in_use_{};
  bool is_warm_ = false;
  std::vector<std::pair<std::uint32_t, Bytes>> stand_ins_;
  TraceTensor shared_buffer_;
  Bytes shared_bytes_{0};
  bool has_angles_ = false;  // of rotary embedding
  std::vector<StageVisit> visits_;
  std::vector<std::size_t> forward_ends_;
  Bytes whole_{0};   // hidden states of all tokens, before sequence parallelism splits them
  Bytes logits_{0};  // in the parameters' type
  Seconds layer_forward_{0};
  Seconds layer_backward_{0};
  /// How far the host, which allocates, is ahead of the device, where copies end. It waits for the device where it
  /// reads a loss or hands hidden states on.
  Seconds lead_{0};
};

}  // namespace ebb
