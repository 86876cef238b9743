// ProgramCompiler: walks a plan's ops in program order and finds the bytes of each (program.hpp states the rules). A
// plan file comes from outside: whatever does not fit is an InputError that names the op. Internal to compile().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/host_layout.hpp"
#include "replay/placement.hpp"
#include "replay/program.hpp"
#include "replay/training.hpp"

namespace ebb::replay {

/// InputErrors for what can be wrong with the plan's tables: shards outside of the padded elements or over each other,
/// more than one stream of a kind, types that no kernel has. What follows relies on it.
void check_tables(const Plan& plan, const std::string& file);

/// 1 / data-parallel size: what backward scales its gradients by.
float gradient_scale_of(const Plan& plan);

/// What a part of a life takes from the others (compile_life).
struct LifeSetting {
  const HostLayout* host = nullptr;  // of the steady step; null: the plan's own copies decide
  bool early_masters = true;         // the init part makes them; otherwise the first step does
};

class ProgramCompiler {
 public:
  /// Precondition: check_tables() passed.
  ProgramCompiler(const Plan& plan, const std::string& file, std::optional<LifeSetting> life = std::nullopt);
  Program run();
  const HostLayout& host() const { return host_; }

 private:
  // What op `at_` is. program_ops.cpp says where.
  Action action();
  Action copy();
  Action kernel();
  Action device_adam();
  Action host_adam();
  Action cast();
  Action cast_masters();
  Action cast_staged();
  Action copy_gradients();
  Action zero_state();
  Action masters_of_params();
  Action masters_on_host();
  Action store_or_fetch();
  Action copy_staged();
  Action stand();
  Action collective();
  Action find_largest();
  Action quantize();
  Action dequantize();
  Action make_columns();
  Action parameters_or_gradients();
  Bytes add_bytes(BucketCollective& all, const PlanBucket& bucket) const;
  ElementRange own_part(ElementRange bucket) const;
  std::vector<GradRun> grad_runs(BufferId grads) const;
  void add_transfers(Copy& copy, StateBits what, const std::vector<Piece>& pieces) const;
  void add_packed(Copy& copy, std::uint8_t states, const StateLayout& layout) const;
  Bytes device_at(StateBits what, const Piece& piece) const;

  // State and parameters in host memory, program_life.cpp.
  /// Bytes of one element in a checkpoint and in buffers of role checkpoint.
  Dtype type_of(StateBits state) const;
  /// Where the op's host buffer (role checkpoint) keeps `state` of its range from; the op's states there, packed.
  Bytes staged_at(StateBits state, std::int64_t element) const;
  std::vector<CheckpointPiece> host_pieces() const;
  void check_host_buffer() const;
  void check_stores() const;

  // Quantised parameters, program_quantized.cpp.
  void find_quantized();
  std::vector<QuantizedRun> quantized_runs(ElementRange range, BufferId masters, BufferId largest);
  Bytes largest_at(BufferId largest, std::uint32_t parameter) const;
  BufferId live_largest(ElementRange range) const;
  Bytes master_at(BufferId masters, const Piece& piece);

  // program_places.cpp
  void find_host_state();
  void place_staged();
  void check_host_bytes() const;
  std::uint8_t existing(bool before) const;
  std::vector<StatePlace> places(const std::vector<bool>& alive, std::uint8_t states);
  void place_on_host(std::vector<StatePlace>& places, StateBits state, ElementRange range) const;

  // Buffers. program_compiler.cpp
  [[noreturn]] void reject(const std::string& problem, const std::string& cure = "") const;
  [[noreturn]] void reject_plan(const std::string& problem, const std::string& cure = "") const;
  BufferId only(Role role, Bytes needed) const;
  const Buffer& buffer_of(BufferId id) const { return plan_.buffers[id.index]; }
  void live(BufferId buffer, const char* as) const;
  void room(BufferId buffer, Bytes needed) const;
  void owned_range(ElementRange range) const;
  void begin_or_end_life();
  /// The layout of a state buffer for the op's range.
  const StateLayout& layout_of(BufferId buffer, ElementRange range);
  BufferId holder_of(StateBits state, ElementRange range) const;
  BufferId gradients_for(ElementRange range) const;
  BufferId scratch_for(Bytes bytes) const;
  Dtype type_of_gradients(BufferId grads) const;
  Bytes gradient_at(BufferId grads, const Piece& piece) const;
  Bytes parameter_at(const Piece& piece) const { return parameters_.at(piece.at); }
  bool quantized(const Piece& piece) const { return parameters_.quantized(piece.at); }
  bool masters_apart() const { return plan_.precision.master_bytes() > 0; }

  const Op& op() const { return plan_.ops[at_]; }

  const Plan& plan_;
  const std::string& file_;
  std::optional<LifeSetting> life_;
  OwnedElements owned_;
  ParameterBytes parameters_;
  HostLayout host_;
  std::vector<Bytes> staged_;  // by buffer of role checkpoint: where it lies in pinned memory
  Program program_;
  std::uint32_t at_ = 0;  // the op in hand
  std::vector<bool> alive_;
  std::vector<std::optional<StateLayout>> layouts_;  // by buffer with `holds`, made when first asked for
  StateLayout slot_;                                 // of the op's range, in a buffer without
  /// By buffer without: what came into it last, and by which op.
  struct Filled {
    ElementRange range;
    std::uint32_t op = 0;
  };
  std::vector<std::optional<Filled>> filled_;
  std::array<std::uint32_t, 2> directions_{};  // forward and backward ops so far
};

}  // namespace ebb::replay
