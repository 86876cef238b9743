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

class ProgramCompiler {
 public:
  /// Precondition: check_tables() passed.
  ProgramCompiler(const Plan& plan, const std::string& file);
  Program run();

 private:
  // What op `at_` is. program_ops.cpp and program_collectives.cpp.
  Action action();
  Action copy();
  Action kernel();
  Action device_adam();
  Action host_adam();
  Action cast();
  Action cast_masters();
  Action cast_staged();
  Action copy_gradients();
  Action stand();
  Action collective();
  Action parameters_or_gradients();
  ElementRange own_part(ElementRange bucket) const;
  std::vector<GradRun> grad_runs(BufferId grads) const;
  void add_transfers(Copy& copy, StateBits what, const std::vector<Piece>& pieces) const;
  Bytes device_at(StateBits what, const Piece& piece) const;

  // program_places.cpp
  void find_host_state();
  void find_places();
  void place_on_host(StateBits state, ElementRange range);

  // Buffers. program_compiler.cpp
  [[noreturn]] void reject(const std::string& problem, const std::string& cure = "") const;
  [[noreturn]] void reject_plan(const std::string& problem, const std::string& cure = "") const;
  BufferId only(Role role, Dtype type) const;
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
  Bytes parameter_at(const Piece& piece) const { return {piece.at * size_of(plan_.precision.params)}; }
  bool masters_apart() const { return plan_.precision.master_bytes() > 0; }

  const Op& op() const { return plan_.ops[at_]; }

  const Plan& plan_;
  const std::string& file_;
  OwnedElements owned_;
  HostLayout host_;
  Program program_;
  std::uint32_t at_ = 0;  // the op in hand
  std::vector<bool> alive_;
  std::vector<std::optional<StateLayout>> layouts_;  // by buffer with `holds`, made when first asked for
  StateLayout slot_;                                 // of the op's range, in a buffer without
  std::array<std::uint32_t, 2> directions_{};        // forward and backward ops so far
};

}  // namespace ebb::replay
