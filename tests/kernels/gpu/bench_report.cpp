#include "tests/kernels/gpu/bench_report.hpp"

#include <cstdlib>

namespace ebb::kernels::gpu {

Report::Report(const char* path) {
  if (path == nullptr) return;
  file_ = std::fopen(path, "w");
  if (file_ != nullptr) return;
  std::perror(path);
  std::exit(3);
}

Report::~Report() {
  for (const Measurement& m : waiting_) write(m, 0);
  if (file_ != nullptr && std::fclose(file_) != 0) std::perror("kernels_bench");
}

void Report::device(const std::string& name, int driver, int runtime) {
  std::printf("%s, driver's CUDA %d, runtime %d\n", name.c_str(), driver, runtime);
  std::printf("%-36s %12s %6s %10s %9s %8s %10s\n", "kernel", "elements", "runs", "us", "TB/s", "of copy",
              "elements/s");
  if (file_ == nullptr) return;
  std::fprintf(file_, "{\"device\": \"%s\", \"driver_cuda\": %d, \"runtime_cuda\": %d}\n", name.c_str(), driver,
               runtime);
}

void Report::add_copy(const Measurement& copy) {
  const double rate = static_cast<double>(copy.bytes) / copy.seconds;
  for (const Measurement& m : waiting_) write(m, (last_copy_ + rate) / 2);
  waiting_.clear();
  last_copy_ = rate;
  if (first_copy_ == 0) first_copy_ = rate;
  write(copy, first_copy_);
}

void Report::write(const Measurement& m, double baseline) {
  const double rate = static_cast<double>(m.bytes) / m.seconds;
  const double of_copy = baseline > 0 ? rate / baseline : 0;
  const double elements_per_second = static_cast<double>(m.elements) / m.seconds;
  std::printf("%-36s %12lld %6lld %10.2f ", m.name.c_str(), static_cast<long long>(m.elements),
              static_cast<long long>(m.runs), m.seconds * 1e6);
  if (m.flops > 0) {
    std::printf("%9.1f TFLOP/s\n", m.flops / m.seconds / 1e12);
  } else {
    std::printf("%9.4f %8.4f %10.4g\n", rate / 1e12, of_copy, elements_per_second);
  }
  std::fflush(stdout);
  if (file_ == nullptr) return;
  std::fprintf(file_,
               "{\"name\": \"%s\", \"elements\": %lld, \"runs\": %lld, \"bytes\": %lld, \"flops\": %.0f, "
               "\"seconds\": %.9f, \"bytes_per_second\": %.6g, \"of_copy\": %.5f}\n",
               m.name.c_str(), static_cast<long long>(m.elements), static_cast<long long>(m.runs),
               static_cast<long long>(m.bytes), m.flops, m.seconds, rate, of_copy);
}

}  // namespace ebb::kernels::gpu
