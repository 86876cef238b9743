// Issuer: does what one op of a plan says, on a stream or on the host. No waiting, no events, no time: step_walk.hpp.
// Of a life each plan has an issuer of its own, all over the same memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/checkpoint_end.hpp"
#include "replay/device_memory.hpp"
#include "replay/execute.hpp"
#include "replay/groups.hpp"
#include "replay/host_adam.hpp"
#include "replay/host_store.hpp"
#include "replay/injected_value.hpp"
#include "replay/instruments.hpp"
#include "replay/ready.hpp"
#include "replay/stand_in.hpp"

namespace ebb::replay {

/// What the training loop (training.hpp) knows in one step.
struct StepContext {
  std::uint32_t step = 1;
  std::uint64_t seed = 1;
  kernels::AdamwStep adam{};
  float loss_scale = 1;
  std::optional<float> inject = std::nullopt;  // into one gradient element (training.hpp)
};

/// What a issuer works with; all of it outlives it.
struct IssuerParts {
  const Program& program;
  const ExecuteOptions& options;
  const std::vector<Ready>& actions;
  DeviceMemory& memory;
  const HostStore& store;
  Instruments& instruments;
  const StandIns& stand_ins;
  const RankComms& comms;
  HostPool& pool;
  std::size_t program_index = 0;        // to `comms`
  CheckpointEnd* checkpoint = nullptr;  // of plans that store or fetch
};

class Issuer {
 public:
  explicit Issuer(const IssuerParts& parts);

  void begin_step(const StepContext& context);
  /// Enqueues the work of a device op (nothing for allocate and release), or does that of a host op now.
  void issue(std::uint32_t op, void* stream);
  /// Buffers lie where `addresses` (by buffer) says, alive or not: for captures. Null: in device memory again.
  void lay_at(const std::vector<void*>* addresses) { addresses_ = addresses; }
  /// Digest of the state that host Adam left in this step.
  std::uint64_t host_digest() const { return host_digest_; }

 private:
  struct Issue;

  IssuerParts parts_;
  StepContext context_;
  std::vector<std::uint32_t> forward_of_op_;  // the how manieth forward op
  const std::vector<void*>* addresses_ = nullptr;
  std::uint64_t host_digest_ = 0;
  bool has_clip_ = false;
  InjectedValue injected_;  // where options have injections
};

}  // namespace ebb::replay
