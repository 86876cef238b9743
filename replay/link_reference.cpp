#include "replay/link_reference.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>

#include "replay/cuda.hpp"
#include "replay/host_store_pieces.hpp"

namespace ebb::replay {

namespace {

constexpr std::int64_t kWindows = 4;  // two a direction
constexpr std::int64_t kBehind = 2;   // places that the way out follows
constexpr std::int64_t kMostCopies = 500;

Bytes slot_bytes(const Program& program) {
  Bytes largest{0};
  for (const Op& op : program.plan->ops) {
    if (op.kind != OpKind::copy_h2d || !op.buffer.valid()) continue;
    if (program.plan->buffers[op.buffer.index].packed) largest = std::max(largest, op.bytes);
  }
  return largest;
}

class Passes {
 public:
  Passes(const HostStore& store, Bytes slot)
      : store_(store),
        slot_(slot),
        places_(store.pinned_bytes().value / slot.value),
        windows_(make_device_bytes(kWindows * slot)) {
    check(cudaMemset(windows_.get(), 0, static_cast<std::size_t>((kWindows * slot).value)), "cudaMemset");
  }

  std::int64_t copies() const { return std::min(std::max(places_, std::int64_t{100}), kMostCopies); }

  /// Seconds of one pass.
  double run() {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaEventRecord(event(begin_), stream(in_)), "cudaEventRecord");
    check(cudaStreamWaitEvent(stream(out_), event(begin_), 0), "cudaStreamWaitEvent");
    for (std::int64_t i = 0; i < copies(); ++i) {
      copy(i, i % 2, true);
      copy(i + places_ - kBehind, 2 + i % 2, false);
    }
    check(cudaEventRecord(event(out_done_), stream(out_)), "cudaEventRecord");
    check(cudaStreamWaitEvent(stream(in_), event(out_done_), 0), "cudaStreamWaitEvent");
    check(cudaEventRecord(event(end_), stream(in_)), "cudaEventRecord");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return static_cast<double>(elapsed_ms(begin_, end_)) * 1e-3;
  }

 private:
  static cudaStream_t stream(const Stream& handle) { return static_cast<cudaStream_t>(handle.get()); }
  static cudaEvent_t event(const Event& handle) { return static_cast<cudaEvent_t>(handle.get()); }

  void copy(std::int64_t place, std::int64_t window, bool to_device) {
    std::byte* const device = static_cast<std::byte*>(windows_.get()) + window * slot_.value;
    const Bytes first = place % places_ * slot_;
    for_each_piece(first, slot_, [&](Bytes at, Bytes bytes) {
      std::byte* const here = device + (at - first).value;
      std::byte* const host = store_.pinned() + at.value;
      const auto size = static_cast<std::size_t>(bytes.value);
      check(to_device ? cudaMemcpyAsync(here, host, size, cudaMemcpyHostToDevice, stream(in_))
                      : cudaMemcpyAsync(host, here, size, cudaMemcpyDeviceToHost, stream(out_)),
            "cudaMemcpyAsync");
    });
  }

  const HostStore& store_;
  Bytes slot_;
  std::int64_t places_;
  DeviceBytes windows_;
  Stream in_ = make_stream();
  Stream out_ = make_stream();
  Event begin_ = make_event(true);
  Event end_ = make_event(true);
  Event out_done_ = make_event(false);
};

bool has_room(Bytes bytes) {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<std::int64_t>(free) > 2 * bytes.value;
}

}  // namespace

std::optional<LinkReference> measure_link(const Program& program, const HostStore& store) {
  const Bytes slot = slot_bytes(program);
  if (slot.value == 0 || store.pinned_bytes().value / slot.value <= kBehind || !has_room(kWindows * slot)) return {};
  Passes passes(store, slot);
  passes.run();  // warm-up
  std::array<double, 3> seconds{};
  for (double& s : seconds) s = passes.run();
  std::sort(seconds.begin(), seconds.end());
  const double bytes = 2.0 * static_cast<double>(passes.copies()) * static_cast<double>(slot.value);
  return LinkReference{slot, {bytes / seconds[1]}};
}

}  // namespace ebb::replay
