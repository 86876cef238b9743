// Proves on a real GPU that the FP8 actions of a Program give the reference's bytes: hand-made ranks that share
// matrices, every recipe, every buffer compared whole after every action.
//
//   quantized_gpu_check     exit 0: all the same; 1: a difference; 3: no GPU or a CUDA error
//
// Not a ctest: it needs a GPU.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <functional>
#include <string>

#include "replay/cuda.hpp"
#include "replay/quantized_gpu.hpp"
#include "replay/quantized_reference.hpp"
#include "tests/replay/quantized_cases.hpp"

namespace ebb::replay {
namespace {

using test::kBuffers;
using test::QuantizedRank;

/// A rank's buffers on the host and on the device, with the same bytes.
class Mirrored {
 public:
  explicit Mirrored(QuantizedRank rank) : rank_(std::move(rank)) {
    for (const auto& bytes : rank_.memory) {
      device_.push_back(make_device_bytes(Bytes{static_cast<std::int64_t>(bytes.size())}));
      check(cudaMemcpy(device_.back().get(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    }
  }

  QuantizedRank& rank() { return rank_; }
  BufferAt host() {
    return [this](BufferId buffer) { return rank_.at(buffer); };
  }
  DeviceAt device() {
    return [this](BufferId buffer) { return device_[buffer.index].get(); };
  }
  void zero(std::uint32_t buffer) {
    std::fill(rank_.memory[buffer].begin(), rank_.memory[buffer].end(), std::byte{0});
    check(cudaMemset(device_[buffer].get(), 0, rank_.memory[buffer].size()), "cudaMemset");
  }

  bool same(const std::string& what) {
    check(cudaDeviceSynchronize(), what.c_str());
    bool all = true;
    for (std::uint32_t i = 0; i < kBuffers; ++i) {
      std::vector<std::byte> got(rank_.memory[i].size());
      check(cudaMemcpy(got.data(), device_[i].get(), got.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
      if (got == rank_.memory[i]) continue;
      std::printf("  %s: buffer %u differs\n", what.c_str(), i);
      all = false;
    }
    return all;
  }

 private:
  QuantizedRank rank_;
  std::vector<DeviceBytes> device_;
};

bool same_values(Mirrored& m, ElementRange range, bool from_columns) {
  const auto numel = static_cast<std::size_t>(range.numel().value);
  std::vector<float> want(numel + 4, -7), got(want);
  const DeviceBytes out = make_device_bytes(Bytes{static_cast<std::int64_t>(4 * want.size())});
  check(cudaMemcpy(out.get(), got.data(), 4 * got.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  dequantized_values_ref(m.rank().program, range, from_columns, m.host(), want.data());
  issue_dequantized_values(m.rank().program, range, from_columns, m.device(), static_cast<float*>(out.get()), nullptr);
  check(cudaMemcpy(got.data(), out.get(), 4 * got.size(), cudaMemcpyDeviceToHost), "values");
  if (std::memcmp(got.data(), want.data(), 4 * got.size()) == 0) return true;
  std::printf("  values %s differ\n", from_columns ? "of columns" : "of rows");
  return false;
}

/// All actions of one rank, one after another.
bool same_rank(QuantizedRank rank, Fp8Recipe recipe) {
  Mirrored m(std::move(rank));
  const Program& program = m.rank().program;
  bool same = true;
  for (const test::QuantizedCall& call : m.rank().calls) {
    m.zero(test::kLargestBuffer);
    find_largest_ref(program, call.find, m.host());
    issue_find_largest(program, call.find, m.device(), nullptr);
    same &= m.same("find_largest");
    quantize_ref(program, call.quantize, m.host());
    issue_quantize(program, call.quantize, m.device(), nullptr);
    same &= m.same("quantize");
  }
  if (recipe != Fp8Recipe::mxfp8) {
    make_columns_ref(program, m.rank().columns, m.host());
    issue_make_columns(program, m.rank().columns, m.device(), nullptr);
    same &= m.same("make_columns");
  }
  dequantize_ref(program, m.rank().own, m.host());
  issue_dequantize(program, m.rank().own, m.device(), nullptr);
  same &= m.same("dequantize");
  const std::int64_t all = m.rank().plan->buckets.back().end.value;
  for (const ElementRange range : {ElementRange{0, all}, {1, all - 3}, {300, 2'001}, {257, 258}, {7, 7}}) {
    same &= same_values(m, range, false) & same_values(m, range, true);
  }
  return same;
}

int run() {
  bool same = true;
  int count = 0;
  for (const Fp8Recipe recipe : {Fp8Recipe::tensorwise, Fp8Recipe::blockwise, Fp8Recipe::mxfp8}) {
    for (const std::int64_t ranks : {1, 2, 3}) {
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        same &= same_rank(test::quantized_rank(recipe, rank, ranks, true, rank % 2 == 1), recipe);
        ++count;
      }
    }
  }
  std::printf("quantised actions %d ranks: %s\n", count, same ? "same bytes" : "DIFFERENT");
  return same ? 0 : 1;
}

}  // namespace
}  // namespace ebb::replay

int main() {
  try {
    return ebb::replay::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
