// StepFrame: what every policy's training step shares. Zero the gradients, gather parameters, forward, backward,
// reduce gradients, norm, clip; the policy adds its own ops in between, in this order:
//
//   StepFrame frame(plan, rank, options);   streams, buffers that always stay, gather of the first-needed bucket
//   [prologue: state leaves]
//   frame.zero_grads();
//   frame.forward_backward();
//   [prefetch: state returns while gradients are finalized]
//   frame.finalize(...);                    reduce the rest, norm, clip; the host waits for it and for the prefetch
//   [the optimizer step]
//   frame.close();                          gather when it is not left to the next forward
//
// In a skipped step finalize() is the end of the frame: it waits for what is in flight and drops what forward made; the
// policy drops its own. In parts without training (init, loads, save) the frame is only what always stays.
//
// Source: Megatron-LM main d98e8a64dd: training.py train_step, schedules.py, finalize_model_grads.py,
// distrib_optimizer.py. Left out as small: all-reduces of layer norms and tied embeddings.
//
// Ranges. Forward, backward and collectives carry ranges in padded elements of the parameter and gradient buffers, in
// gradient order (overlap_pieces.hpp); copies and optimizer kernels in owned elements. The two are not comparable.
#pragma once

#include <optional>
#include <vector>

#include "planner/compute_cuts.hpp"
#include "planner/lower.hpp"
#include "planner/lowerings.hpp"
#include "planner/overlap_pieces.hpp"
#include "planner/plan_builder.hpp"

namespace ebb {

struct FrameOptions {
  /// Bytes of the fp32 gradient copies made before the norm; 0: none.
  Bytes grad_copies{0};
  /// Elements they cover.
  ElementRange copied;
  /// Size of the gradients that norm and clip work on.
  std::int64_t grad_size = 4;
  /// Forward and backward are cut where these rise and fall, and hold a buffer for each. nullptr: uncut, with buffers
  /// for activations and logits. Outlives the frame.
  const ActivationLevels* levels = nullptr;
};
/// Gradients of all owned elements are copied to fp32 where the footprint says so.
FrameOptions standard_frame(const RankModel& rank);
/// cpu-adam works on gradients as they are; only shards that stay get an fp32 copy of them.
FrameOptions hybrid_frame(const RankModel& rank, const Part& stays);

class StepFrame {
 public:
  StepFrame(PlanBuilder& plan, const RankModel& rank, const FrameOptions& options);
  void zero_grads();
  /// `hooks`: with levels only.
  void forward_backward(const TideHooks& hooks = {});
  /// The optimizer step is timed from here: the host waits until the norm is known and `prefetch`, if any, has filled
  /// `prefetched`. (Megatron-LM itself waits for neither on the host; the measured steps were timed so, and the
  /// difference is the host's preparation of the first optimizer call, about a millisecond.)
  void finalize(OpId prefetch = OpId::none(), BufferId prefetched = BufferId::none());
  void close();
  /// Gathers all parameters when what was issued has written them (loads).
  void gather_all(Phase phase);

  BufferId params() const { return params_; }
  /// fp32 copies of a step's gradients; none() where there are none.
  BufferId grad_copies() const { return grad_copies_; }

 private:
  OpId collective(Phase phase, Work work, bool expert, Bytes bytes, std::uint8_t states, ElementRange range,
                  std::initializer_list<OpId> deps);
  OpId gather(Phase phase, const OverlapPiece& piece, std::initializer_list<OpId> deps);
  OpId reduce(Phase phase, const OverlapPiece& piece, std::initializer_list<OpId> deps);
  OpId compute(Phase phase, ElementRange range, Ticks duration, std::initializer_list<OpId> deps);
  OpId grads_kernel(Work work, Bytes bytes, BufferId buffer, std::initializer_list<OpId> deps);
  void quantize_weights(ElementRange range, OpId gathered);
  void make_columns(Phase phase, ElementRange range, OpId gathered);
  void skip(BufferId prefetched);
  void forward();
  void backward();

  PlanBuilder& plan_;
  const RankModel& rank_;
  FrameOptions options_;
  std::vector<OverlapPiece> pieces_;
  std::array<Group, 2> groups_;
  Bytes quantized_{0};     // HBM bytes of making weights ready for products in low precision, once a step
  Bytes column_bytes_{0};  // ... of making column-wise copies of gathered ones
  bool makes_columns_ = false;
  bool eager_columns_ = false;  // made right after the gather and kept, else in forward
  bool lazy_columns_ = false;   // not there between steps
  bool gathers_ahead_ = false;  // overlap_param_gather, and there is something to gather
  Work reduction_ = Work::reduce_scatter;
  bool reduces_ahead_ = false;
  BufferId params_;
  BufferId workspaces_;
  BufferId activations_;
  BufferId logits_;
  std::optional<ComputeCuts> cuts_;  // in place of these two
  BufferId grad_copies_;
  BufferId columns_;
};

}  // namespace ebb
