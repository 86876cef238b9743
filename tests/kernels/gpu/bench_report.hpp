// One line a measurement, on the terminal and as JSON lines in a file.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

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
  /// Rates are compared with this one, in bytes per second read and written.
  void baseline(double bytes_per_second) { baseline_ = bytes_per_second; }
  void add(const Measurement& m);

 private:
  double baseline_ = 0;
  std::FILE* file_ = nullptr;
};

}  // namespace ebb::kernels::gpu
