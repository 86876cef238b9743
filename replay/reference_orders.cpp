// All orders that a proof needs, and many runs at once.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <thread>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "replay/reference.hpp"

namespace ebb::replay {

namespace {

/// What the copies of all runs together may take.
constexpr Bytes kMostBytes = 4_GiB;
/// What one run may take: beyond it an element's arithmetic takes minutes, too.
constexpr Bytes kMostOfOne = 16_GiB;

}  // namespace

Bytes bytes_of_run(std::span<const Program> programs) {
  Bytes bytes{1};
  for (const Program& program : programs) {
    bytes += program.pinned + program.pageable;
    for (const Buffer& buffer : program.plan->buffers)
      if (buffer.role != Role::other) bytes += buffer.bytes;
  }
  return bytes;
}

void check_reference_size(std::span<const Program> programs) {
  const Bytes needed = bytes_of_run(programs);
  if (needed <= kMostOfOne) return;
  throw InputError({},
                   fmt::format("the CPU reference would take {} for this plan, and takes {} at most",
                               format_bytes(needed), format_bytes(kMostOfOne)),
                   "run it on GPUs (--device gpu), or a job with fewer layers");
}

std::vector<ReferenceOptions> all_orders(std::size_t ranks, const TrainingOptions& training, int steps) {
  std::vector<ReferenceOptions> orders = {{.training = training, .steps = steps}};
  for (const StreamKind kind :
       {StreamKind::host, StreamKind::compute, StreamKind::h2d, StreamKind::d2h, StreamKind::comm}) {
    for (std::size_t rank = 0; rank < ranks; ++rank)
      orders.push_back({.training = training, .steps = steps, .held_back = kind, .most_on = rank});
  }
  return orders;
}

std::vector<std::vector<RankNumbers>> references(std::span<const Program> programs,
                                                 std::span<const ReferenceOptions> orders) {
  const std::int64_t fit = std::max<std::int64_t>(1, kMostBytes.value / bytes_of_run(programs).value);
  const std::size_t threads = std::min({static_cast<std::size_t>(std::max(1U, std::thread::hardware_concurrency())),
                                        static_cast<std::size_t>(fit), orders.size()});
  std::vector<std::vector<RankNumbers>> numbers(orders.size());
  std::vector<std::future<void>> workers;
  for (std::size_t first = 0; first < threads; ++first) {
    workers.push_back(std::async(std::launch::async, [&, first] {
      for (std::size_t i = first; i < orders.size(); i += threads) numbers[i] = reference(programs, orders[i]);
    }));
  }
  for (std::future<void>& worker : workers) worker.wait();
  for (std::future<void>& worker : workers) worker.get();  // throws what it threw, when none runs any more
  return numbers;
}

}  // namespace ebb::replay
