// What a calibration measured: tables of times, as plain data, and the file they are kept in (JSON lines).
//
// Why apart from the fit: the tables can be fitted again without a GPU, by other formulas too, and tests run on real
// ones. A line's `k` names its table. All times are medians of repeats; `least` and `most` tell how far they spread.
// Not here: how to measure (calibrate_measure.hpp) and what follows from it (calibrate_fit.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/plan.hpp"
#include "models/units.hpp"

namespace ebb::replay {

/// Median, least and most of the repeats of one measurement, seconds.
struct Timed {
  double median = 0;
  double least = 0;
  double most = 0;
  std::int64_t repeats = 1;

  bool operator==(const Timed&) const = default;
};
/// Precondition: not empty.
Timed timed(std::vector<double> seconds);

/// Which machine it was. `k`: setting, one line.
struct Setting {
  std::string gpu;  // name
  std::int64_t gpus = 1;
  std::string driver;
  std::string cuda;
  std::string nccl;  // empty: not used
  std::string date;
  std::string command;
  Bytes memory{0};  // of one GPU
  Bytes context{0};
  Bytes host_memory{0};
  std::int64_t host_threads = 1;
  bool peers = false;  // the GPUs reach each other's memory

  bool operator==(const Setting&) const = default;
};

/// Copies of `bytes` each, back to back on one stream of one GPU while nothing else runs. `mixed`: that is their mean,
/// and sizes go from 16 KiB to 24 MiB, as tensors' do. `k`: copy.
struct CopyTime {
  bool to_device = true;
  bool pinned = true;
  bool mixed = false;
  std::int64_t gpu = 0;
  Bytes bytes{0};
  std::int64_t calls = 1;
  Timed all;  // of all calls together

  bool operator==(const CopyTime&) const = default;
};

/// Steady copies of `bytes` each on `gpus` GPUs at once: what one of them moved each way in a window in which all ran.
/// `k`: flow.
struct FlowTime {
  std::int64_t gpu = 0;
  std::int64_t gpus = 1;
  Bytes bytes{0};
  double window = 0;  // seconds
  double h2d = 0;     // bytes
  double d2h = 0;

  bool operator==(const FlowTime&) const = default;
};

/// `calls` allocations of pinned memory of `bytes` each (what: alloc), or registrations of touched memory (register).
/// `k`: pin.
struct PinTime {
  std::string what;
  Bytes bytes{0};
  std::int64_t calls = 1;
  double seconds = 0;  // of all calls together

  bool operator==(const PinTime&) const = default;
};

/// Host time of one call: launch, launch_runs (a kernel over 300 runs), copy, event, synchronize (with the launch
/// before it), allocate, collective. And chain: device time of a copy of 1 MiB in, a tiny kernel and a copy out that
/// wait for each other. `k`: call.
struct CallTime {
  std::string what;
  Timed each;

  bool operator==(const CallTime&) const = default;
};

/// One kernel: adam, adam_bf16 (parameters written in the same pass), adam_runs (hundreds of runs), adam_beside (copies
/// both ways run), adam_foreach, copy, norm, scale, cast, zero. `bytes` as plans count them (Op::bytes). `k`: kernel.
struct KernelTime {
  std::string what;
  Bytes bytes{0};
  Timed each;

  bool operator==(const KernelTime&) const = default;
};

/// Adam on the host with `threads` threads. `k`: host_adam.
struct HostAdamTime {
  Numel numel{0};
  std::int64_t threads = 1;
  Timed each;

  bool operator==(const HostAdamTime&) const = default;
};

/// One collective of all GPUs. `bytes` is NCCL's total S. `link_use`: part of the host links' one-way rate that copies
/// beside it took, of the busier direction (0: nothing ran). `k`: collective.
struct CollectiveRun {
  Work work = Work::all_gather;
  std::int64_t members = 2;
  Bytes bytes{0};
  double link_use = 0;
  Timed each;

  bool operator==(const CollectiveRun&) const = default;
};

struct CalibrationData {
  Setting setting;
  std::vector<CopyTime> copies;
  std::vector<FlowTime> flows;
  std::vector<PinTime> pins;
  std::vector<CallTime> calls;
  std::vector<KernelTime> kernels;
  std::vector<HostAdamTime> host_adam;
  std::vector<CollectiveRun> collectives;

  bool operator==(const CalibrationData&) const = default;
};

std::string calibration_lines(const CalibrationData& data);
/// InputError with the line for what calibration_lines does not write.
CalibrationData read_calibration(std::string_view text, const std::string& file);

}  // namespace ebb::replay
