// One line a measurement, on the terminal and as JSON lines in a file. Rates are given in parts of a copy's, which is
// measured again and again: a measurement counts against the mean of the copies before and after it, so that a device
// that warms up or slows down in between does so for both.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ebb::kernels::gpu {

/// One kernel's time, and what it did in it. Zero where it does not apply.
struct Measurement {
  std::string name;
  std::int64_t elements = 0;
  std::int64_t runs = 1;
  std::int64_t bytes = 0;  // that must be read and written
  double flops = 0;
  double seconds = 0;  // median
};

class Report {
 public:
  /// `path` null: no file. Exits with 3 where it cannot be written.
  explicit Report(const char* path);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void device(const std::string& name, int driver, int runtime);
  /// A copy: writes what was added since the last one, then itself in parts of the first.
  void add_copy(const Measurement& copy);
  /// Is written with the next copy, or at the end without a comparison.
  void add(const Measurement& m) { waiting_.push_back(m); }

 private:
  // `baseline`: of the copy, bytes per second read and written; 0: no comparison.
  void write(const Measurement& m, double baseline);

  std::vector<Measurement> waiting_;
  double first_copy_ = 0, last_copy_ = 0;
  std::FILE* file_ = nullptr;
};

}  // namespace ebb::kernels::gpu
