// TrainingLog: what a Megatron-LM run printed about its iterations and its memory, line by line, as it stands there.
// Prefixes of launchers ("[default0]:", "0: ", "[node7:3]: "), colours, and lines of other programs are no obstacle.
// Not here: which of the figures to believe (learn.hpp).
//
// Formats. Source: Megatron-LM main, megatron/training/training.py (training_log), megatron/training/utils.py
// (report_memory), megatron/core/timers.py, megatron/training/theoretical_memory_usage.py; older versions differ in a
// date in front, in digits, and in "cached" for "reserved".
//
//    [2025-03-31 05:54:07] iteration       50/  242204 | consumed samples: 50400 | elapsed time per iteration (ms):
//    1552.8 | learning rate: 8.000000E-06 | global batch size: 1008 | ... | number of skipped iterations:   0 | number
//    of nan iterations:   0 |
//   [Rank 0] (after 50 iterations) memory (MB) | allocated: 9909.07 | max allocated: 50277.16 | reserved: 53386.0 | ...
//       optimizer ......................................: (19.31, 20.05)
//     seq_length ...................................... 4096
//
// An iteration line averages over all iterations since the one before. Validation and saves are not in it: the timer
// stops for them. MB are MiB.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/units.hpp"

namespace ebb {

struct LoggedIterations {
  std::int64_t last = 0;   // number of the last one that the line covers
  std::int64_t count = 1;  // that it covers, as far as the log tells
  Seconds each{0};
  std::optional<std::int64_t> global_batch;
  std::int64_t skipped = 0;
  std::int64_t nan = 0;
  bool first_of_run = false;  // holds a process' first iteration, as far as the log tells
  bool after_pause = false;   // a save or a validation came before it
  int line = 0;

  bool operator==(const LoggedIterations&) const = default;
};

struct LoggedMemory {
  std::int64_t rank = 0;
  std::int64_t iterations = 0;  // "after 2 iterations"
  bool after_save = false;      // a checkpoint was saved before, so the maxima may be the save's
  Bytes allocated{0};
  Bytes max_allocated{0};
  Bytes reserved{0};
  Bytes max_reserved{0};

  bool operator==(const LoggedMemory&) const = default;
};

struct TrainingLog {
  std::vector<LoggedIterations> iterations;
  std::vector<LoggedMemory> memory;
  std::int64_t memory_skipped = 0;                     // lines with a figure that is none: nan, cut off, above 1 PiB
  std::map<std::string, std::vector<Seconds>> timers;  // by name: the slowest rank's, each time they were printed
  std::map<std::string, std::string> arguments;        // as the run printed them: "seq_length"
  std::optional<Bytes> theoretical_state;              // weights, gradients and optimizer, by Megatron's own formula
  std::optional<Bytes> theoretical_total;
  std::int64_t lines = 0;
};

/// Lines may end in \n, \r\n or \r. What cannot be read is passed over.
TrainingLog read_training_log(const std::string& text);

}  // namespace ebb
