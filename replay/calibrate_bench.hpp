// The bench of a calibration: for each GPU its streams, a block of device memory with random numbers, pinned memory
// beside it, and one gate for all. Internal to calibrate_*.cpp; CUDA-free.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/calibrate_measure.hpp"
#include "replay/cuda.hpp"
#include "replay/gate.hpp"
#include "replay/host_store.hpp"

namespace ebb::replay {

/// Commands that certainly fit in a stream's queue while a gate holds it (it takes about a thousand).
inline constexpr int kAhead = 200;

struct BenchGpu {
  int device = 0;
  std::optional<int> node;  // NUMA
  Stream in;                // host to device
  Stream out;
  Stream compute;
  std::optional<HostStore> host;
  DeviceBytes block;
  Bytes block_bytes{0};

  std::byte* at(Bytes offset) const { return static_cast<std::byte*>(block.get()) + offset.value; }
  /// Fp32 elements in an eighth of the block: the arrays of kernels.
  std::int64_t numel() const { return block_bytes.value / 32; }
  float* array(int index) const { return reinterpret_cast<float*>(at({index * numel() * 4})); }
};

class Bench {
 public:
  /// Makes contexts (whose size goes to setting.context), streams and memory.
  Bench(const MeasureOptions& options, Setting& setting);

  std::size_t gpus() const { return gpus_.size(); }
  const BenchGpu& gpu(std::size_t i) const { return gpus_[i]; }
  /// Repeats of a measurement that takes some milliseconds.
  int repeats() const { return repeats_; }
  /// How many times as long as by default.
  double longer() const { return longer_; }
  void say(const std::string& what) const { progress_(what); }

  StartGate& gate() { return *gate_; }
  int next_step() { return ++step_; }

  /// Seconds that `calls` times `enqueue(i)`, i = 1, 2, ..., take on the stream of the current device; i = 0 runs
  /// before and is not counted. Precondition: all commands together fit ahead of a gate.
  double burst(void* stream, int calls, const std::function<void(int)>& enqueue);
  /// The median of repeats() bursts, per call. Enqueues one before without a gate: CUDA loads a kernel when it is
  /// launched for the first time, and may wait for the device to do so.
  Timed timed_burst(void* stream, int calls, const std::function<void(int)>& enqueue);

 private:
  void make_gpu(BenchGpu& gpu, Bytes pinned);

  std::vector<BenchGpu> gpus_;
  std::optional<StartGate> gate_;  // made when the contexts are there
  int step_ = 0;
  int repeats_ = 5;
  double longer_ = 1;
  std::function<void(const std::string&)> progress_;
};

/// Memory of the current device, whose context this makes.
struct DeviceRoom {
  Bytes total{0};
  Bytes free{0};
};
DeviceRoom device_room();

void record(const Event& event, void* stream);
void synchronize(void* stream);

/// Steady copies of one direction on one GPU, and when they were where.
class CopyFlow {
 public:
  CopyFlow(const BenchGpu& gpu, bool to_device, Bytes bytes, std::int64_t count);

  /// Behind the gate, which must be held on stream() first: the time from which marks count.
  void begin();
  /// Enqueues copies up to the `until`-th.
  void enqueue(std::int64_t until);
  std::int64_t count() const { return count_; }
  void* stream() const;
  /// Seconds from begin() at which 1, 2, ... times step() bytes had been copied. After the stream has ended.
  std::vector<double> marks() const;
  double step() const { return static_cast<double>(bytes_.value) * static_cast<double>(every_); }
  /// Seconds from begin() to an event of this device.
  double since_begin(const Event& event) const;

 private:
  const BenchGpu& gpu_;
  bool to_device_;
  Bytes bytes_;
  std::int64_t count_;
  std::int64_t every_;  // copies between two marks
  std::int64_t done_ = 0;
  Event begin_;
  std::vector<Event> marks_;
};

// Parts of measure(), each adding its tables to `data`.
/// `round`: what is measured once is so in round 0.
void measure_copies(Bench& bench, int round, CalibrationData& data);  // alone, together, all GPUs, pageable
void measure_pinning(Bench& bench, CalibrationData& data);            // before the host is full of other pins
void measure_kernels(Bench& bench, CalibrationData& data);
void measure_calls(Bench& bench, CalibrationData& data);        // and Adam on the host
void measure_collectives(Bench& bench, CalibrationData& data);  // nothing with one GPU

}  // namespace ebb::replay
