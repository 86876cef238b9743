// The reference: a plan's numerics on the CPU, bit for bit what the kernels do, in the worst order that the plan
// allows.
//
// Why the worst. A replay on a GPU runs ops in one of many orders, usually a harmless one. Here every run holds one
// stream back: its ops run only when no other stream can go on. Theorem: let a, on stream A, and b be ops without an
// order between them. With A held back b runs before a: until a runs, some op on the way to b is always runnable unless
// an earlier op of A is needed, and b does not need a. So holding back each stream in turn shows every pair of
// unordered ops in both orders, and a plan whose result depends on such a pair gives different numbers or reads poison.
// Ranks that meet in collectives can hold each other up on that way: so the stream is held back on all of them, on one
// rank most, and each rank has to be that one in turn.
//
// Device memory is fresh poison at every allocation and after every release. Not here: time.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/program.hpp"
#include "replay/training.hpp"

namespace ebb::replay {

struct ReferenceOptions {
  TrainingOptions training = {};
  int steps = 3;
  std::optional<StreamKind> held_back = std::nullopt;  // unset: program order
  std::size_t most_on = 0;                             // the rank (by index) where that stream waits longest
};
/// Program order, and each stream held back with each of `ranks` ranks as most_on: all that it takes to show every pair
/// of unordered ops in both orders.
std::vector<ReferenceOptions> all_orders(std::size_t ranks, const TrainingOptions& training, int steps);

struct RankNumbers {
  std::vector<StepNumbers> steps;
  std::uint64_t final_state = 0;  // digest of every state element where the plan left it, and of the parameters
  Bytes peak_live{0};             // of the plan's device buffers, in the order that was run
  std::int64_t strays = 0;        // reference only: accesses to storage before its allocation or after its hand-back
};

/// Host memory that one run takes.
Bytes bytes_of_run(std::span<const Program> programs);
/// InputError where that is more than a CPU should be asked for.
void check_reference_size(std::span<const Program> programs);

/// One entry a plan, which are the ranks of all groups that their collectives name: InputError otherwise, and where the
/// plans are too large.
std::vector<RankNumbers> reference(std::span<const Program> programs, const ReferenceOptions& options);
/// The same for each of `orders`, on as many threads as the machine's CPUs and a few GiB of its memory allow.
std::vector<std::vector<RankNumbers>> references(std::span<const Program> programs,
                                                 std::span<const ReferenceOptions> orders);

}  // namespace ebb::replay
