// NCCL, loaded when it is needed: one executable runs with whichever libnccl.so.2 a machine has, and without one where
// no collective is. Every result is checked.
//
// NVLink SHARP (NVLS) stays off unless the user sets NCCL_NVLS_ENABLE: replay exercises the ring and tree algorithms
// that the simulator predicts, and multicast objects need a fabric manager that not every machine has.
// Not here: who belongs to which group (the engine), how an id gets to other processes (processes.hpp).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string>

#include "models/dtype.hpp"
#include "models/units.hpp"

namespace ebb::replay {

/// What the members of a communicator have in common before it exists. Plain bytes: may be sent anywhere.
struct NcclId {
  std::array<char, 128> bytes{};
  bool operator==(const NcclId&) const = default;
};

/// Loads the library if it is not loaded. NcclError with what to install when there is none. Thread-safe; call it first
/// from the main thread, since it may set NCCL_NVLS_ENABLE.
void load_nccl();
/// "2.28.9". Precondition of this and all below: load_nccl() was called.
std::string nccl_version();
NcclId new_nccl_id();

/// One rank of one communicator, on the device that is current in its thread. All calls but abort() from that
/// thread.
class NcclComm {
 public:
  /// Blocks until all `size` ranks have come.
  NcclComm(const NcclId& id, int rank, int size);
  /// Destroys after success; aborts when a call failed or an exception is under way.
  ~NcclComm();
  NcclComm(NcclComm&& other) noexcept;
  NcclComm& operator=(NcclComm&& other) noexcept;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// In place over `data`, which holds size() equal parts of `part` elements, on a cudaStream_t: every rank's part to
  /// all; sums, of which each rank keeps its own part; sums of `numel` elements for all. fp32, bf16, fp16.
  void all_gather(void* data, Numel part, Dtype type, void* stream);
  void reduce_scatter(void* data, Numel part, Dtype type, void* stream);
  void all_reduce(void* data, Numel numel, Dtype type, void* stream);
  /// Every rank's part of size() * `part` bytes to all, whatever they mean.
  void all_gather_bytes(void* data, Bytes part, void* stream);
  /// The largest of `numel` fp32 numbers for all. None of them is negative; nan counts as the largest.
  void all_reduce_max(void* data, Numel numel, void* stream);

  /// An error that came up later, on the device; NcclError if there is one.
  void check();
  /// Ends what is enqueued or hangs without waiting for the other ranks; calls fail afterwards. From any thread.
  void abort() noexcept;

 private:
  void enqueued(int result, const char* call);

  std::atomic<void*> comm_{nullptr};  // taken by whoever ends it
  int rank_ = 0;
  int size_ = 1;
  bool failed_ = false;
  int exceptions_ = 0;  // under way when it was made
};

/// Calls between construction and end() go to the device as one launch. end() reports errors; leaving the scope without
/// it closes the group as well.
class NcclGroup {
 public:
  NcclGroup();
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  void end();

 private:
  bool open_ = false;
};

}  // namespace ebb::replay
