// The caching allocator's calls per second: a training step of `layers` layers, with temporaries, over and over.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "models/memory/caching_allocator.hpp"

using namespace ebb;
using memory::CachingAllocator;

namespace {

std::int64_t step(CachingAllocator& allocator, std::vector<CachingAllocator::Block>& kept, int layers) {
  const std::int64_t sizes[] = {33'554'432, 4096, 12'582'912, 70'000, 4'194'304, 8'388'608};
  const StreamId compute{0};
  const StreamId copy{1};
  std::int64_t calls = 0;
  for (int layer = 0; layer < layers; ++layer) {
    for (const std::int64_t size : sizes) {
      const auto temporary = allocator.allocate({size / 2}, compute);
      kept.push_back(allocator.allocate({size + 1024 * (layer % 7)}, compute));
      allocator.free(temporary);
      calls += 3;
    }
  }
  for (CachingAllocator::Use use = 0; !kept.empty(); use ^= 1) {
    const auto gradient = allocator.allocate({8'388'608}, copy);
    allocator.free(kept.back(), {&use, 1});
    allocator.free(gradient);
    allocator.end(use ^ 1);
    kept.pop_back();
    calls += 4;
  }
  allocator.end(0);
  allocator.end(1);
  return calls + 2;
}

void steps(benchmark::State& state) {
  CachingAllocator allocator({.expandable_segments = state.range(1) != 0});
  std::vector<CachingAllocator::Block> kept;
  std::int64_t calls = 0;
  for (auto _ : state) calls += step(allocator, kept, static_cast<int>(state.range(0)));
  state.SetItemsProcessed(calls);
}

/// As a search does it: every candidate starts from nothing.
void candidates(benchmark::State& state) {
  CachingAllocator allocator;
  std::vector<CachingAllocator::Block> kept;
  std::int64_t calls = 0;
  for (auto _ : state) {
    allocator.reset();
    for (int i = 0; i < 3; ++i) calls += step(allocator, kept, static_cast<int>(state.range(0)));
  }
  state.SetItemsProcessed(calls);
}

}  // namespace

BENCHMARK(steps)->ArgsProduct({{24, 200, 1000}, {0, 1}})->ArgNames({"layers", "expandable"});
BENCHMARK(candidates)->Arg(24)->Arg(200)->ArgName("layers");
