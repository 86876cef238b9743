// Equivalence: does a policy train exactly as resident does, with less memory? One seed, all ranks, every step: equal
// loss, equal sum of squares, equal digest of the state; in the end equal state and parameters; and a strictly lower
// peak, so that an offload that silently does nothing fails.
//
// On the CPU the policy runs in program order and with each stream held back (reference.hpp says why); on GPUs in
// whatever order the hardware takes, and again with each stream slowed down.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/execute.hpp"
#include "replay/program.hpp"
#include "replay/reference.hpp"

namespace ebb::replay {

/// One way of running the policy.
struct OrderResult {
  std::string order;
  std::string difference;  // the first one, in words; empty: equal to the last bit
};

/// Highest bytes of one kind, of the rank where the policy saves least.
struct PeakResult {
  std::string what;
  Bytes resident{0};
  Bytes policy{0};
  bool lower() const { return policy < resident; }
};

struct Equivalence {
  std::string policy;
  bool on_gpu = false;
  std::vector<RankNumbers> resident;
  std::vector<OrderResult> orders;
  std::vector<PeakResult> peaks;
  bool equal() const;
  bool lower() const;
  bool holds() const { return equal() && lower(); }
};

/// InputError when the plans are not of one job: other ranks, shards, buckets or types.
void check_comparable(std::span<const Program> resident, std::span<const Program> policy);

Equivalence compare_on_cpu(std::span<const Program> resident, std::span<const Program> policy,
                           const TrainingOptions& training, int steps);
/// With poison at every allocation. CudaError and the others of execute().
Equivalence compare_on_gpu(std::span<const Program> resident, std::span<const Program> policy,
                           const TrainingOptions& training, int steps, const std::vector<int>& devices);

/// The first difference in words, "" for none.
std::string difference(std::span<const RankNumbers> resident, std::span<const RankNumbers> policy,
                       std::span<const Program> programs);

std::string to_text(const Equivalence& equivalence);
std::string to_json(const Equivalence& equivalence);

}  // namespace ebb::replay
