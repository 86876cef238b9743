// Ranks with hand-made Programs that share four quantised matrices in two buckets, two plain parameters between them,
// and masters in two calls. For the tests of the FP8 actions on the CPU and on a GPU.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/quantize.hpp"
#include "replay/program.hpp"
#include "replay/quantized_tables.hpp"

namespace ebb::test {

enum : std::uint32_t { kParamsBuffer, kScalesBuffer, kColumnsBuffer, kMastersBuffer, kLargestBuffer, kStagingBuffer };
inline constexpr std::uint32_t kBuffers = 6;

struct QuantizedCall {
  replay::FindLargest find;
  replay::Quantize quantize;
  Numel largest{0};
};

struct QuantizedRank {
  std::unique_ptr<Plan> plan = std::make_unique<Plan>();
  replay::Program program;
  std::vector<QuantizedCall> calls;
  replay::Dequantize own;       // all owned elements into the staging buffer
  replay::MakeColumns columns;  // of all matrices
  std::vector<std::vector<std::byte>> memory = std::vector<std::vector<std::byte>>(kBuffers);

  std::byte* at(BufferId buffer) { return memory[buffer.index].data(); }
};

/// The master of an element of a parameter (wherever that lies; its part of the padding follows it); a few are infinite
/// or NaN where `special`.
inline float master_of(std::uint32_t parameter, std::int64_t element, bool special) {
  element += std::int64_t{parameter} * 100'003;
  std::mt19937 engine(static_cast<unsigned>(element) * 7919U + 13U);
  engine.discard(3);
  const auto x = static_cast<float>(static_cast<double>(engine()) / 4294967296.0 * 2 - 1);
  if (special && element % 977 == 5) return std::bit_cast<float>(element % 2 == 0 ? 0x7fc00001U : 0xff800000U);
  return std::ldexp(x, static_cast<int>(element % 5) - 6);
}

namespace quantized_cases {

inline std::int64_t up(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

inline void add_parameter(Plan& plan, std::vector<std::int64_t> shape, std::int64_t& at) {
  at = up(at, 64);
  const char letter = static_cast<char>('a' + plan.parameters.size());
  PlanParameter p{.name = std::string(1, letter), .shape = std::move(shape), .at = {at}};
  p.quantized = p.shape.size() == 2;
  at += p.numel().value;
  plan.parameters.push_back(p);
}

/// A plain parameter, two matrices and a row, a plain parameter, a matrix; each in a bucket of its own kind.
inline void add_layout(Plan& plan, std::int64_t ranks) {
  std::int64_t at = 0;
  const auto bucket = [&](const std::vector<std::vector<std::int64_t>>& shapes, bool quantized) {
    const std::int64_t begin = at;
    for (const auto& shape : shapes) add_parameter(plan, shape, at);
    at = begin + up(at - begin, 128 * ranks);
    plan.buckets.push_back({.begin = {begin}, .end = {at}, .quantized = quantized});
  };
  bucket({{200}}, false);
  bucket({{37, 70}, {130, 140}, {1, 33}}, true);
  bucket({{64}}, false);
  bucket({{64, 64}}, true);
}

inline replay::Quantized quantized_of(const Plan& plan, Fp8Recipe recipe, kernels::Scaling scaling, bool columns) {
  replay::Quantized q{.recipe = recipe,
                      .scales = {kScalesBuffer},
                      .columns = columns ? BufferId{kColumnsBuffer} : BufferId::none(),
                      .parameters = {}};
  std::int64_t bytes = 0, scales = 0, copies = 0;  // of the parameter buffer before the bucket; ends of the others
  for (const PlanBucket& bucket : plan.buckets) {
    for (std::uint32_t i = 0; i < plan.parameters.size(); ++i) {
      const PlanParameter& p = plan.parameters[i];
      if (!p.quantized || p.at < bucket.begin || !(p.at < bucket.end)) continue;
      replay::QuantizedParameter entry{.parameter = i, .rows = p.shape[0], .columns = p.shape[1]};
      const auto place = [](std::int64_t& end, std::int64_t size) {
        const std::int64_t begin = up(end, 256);
        end = begin + size;
        return Bytes{begin};
      };
      entry.row = Bytes{bytes + p.at.value - bucket.begin.value};
      entry.row_scales = place(scales, kernels::row_scale_bytes(scaling, entry.rows, entry.columns));
      entry.column = place(copies, p.numel().value);
      std::int64_t& where = recipe == Fp8Recipe::mxfp8 ? scales : copies;
      entry.column_scales = place(where, kernels::column_scale_bytes(scaling, entry.rows, entry.columns));
      entry.largest = kernels::largest_count(scaling, entry.rows, entry.columns);
      q.parameters.push_back(entry);
    }
    bytes += bucket.numel().value * (bucket.quantized ? 1 : 2);
  }
  return q;
}

/// The rank's part of each bucket, in both calls' actions.
inline void add_runs(QuantizedRank& r, std::int64_t rank, std::int64_t ranks) {
  const replay::Quantized& q = *r.program.quantized;
  r.calls.resize(2);
  std::int64_t owned = 0;
  for (std::uint32_t i = 0; i < q.parameters.size(); ++i) {
    const PlanParameter& p = r.plan->parameters[q.parameters[i].parameter];
    QuantizedCall& call = r.calls[i / 2];
    replay::QuantizedRun run{.quantized = i, .largest = bytes_of(call.largest, 4)};
    call.quantize.scales.push_back(run);
    call.largest.value += q.parameters[i].largest;
    r.columns.quantized.push_back(i);
    for (const PlanBucket& bucket : r.plan->buckets) {
      const std::int64_t part = bucket.numel().value / ranks, begin = bucket.begin.value + rank * part;
      const std::int64_t from = std::max(p.at.value, begin);
      const std::int64_t to = std::min(p.at.value + p.numel().value, begin + part);
      if (from >= to) continue;
      run.first = from - p.at.value, run.numel = {to - from}, run.master = Bytes{4 * owned};
      call.find.runs.push_back(run);
      call.quantize.runs.push_back(run);
      run.master = Bytes{2 * owned};
      r.own.runs.push_back(run);
      owned += to - from;
    }
  }
  for (QuantizedCall& call : r.calls) {
    call.find.masters = call.quantize.masters = {kMastersBuffer};
    call.find.largest = call.quantize.largest = {kLargestBuffer};
  }
  r.own.to = {kStagingBuffer};
}

inline void put(std::vector<std::byte>& bytes, std::int64_t at, const void* from, std::size_t count) {
  std::memcpy(bytes.data() + at, from, count);
}

/// Poison everywhere; then plain parameters and masters.
inline void fill(QuantizedRank& r, bool special) {
  const replay::Quantized& q = *r.program.quantized;
  const std::int64_t padded = r.plan->buckets.back().end.value;
  std::int64_t largest = 0;
  for (const QuantizedCall& call : r.calls) largest = std::max(largest, call.largest.value);
  const std::int64_t sizes[kBuffers] = {2 * padded, 1 << 16, 1 << 16, 4 * padded, 4 * largest, 2 * padded};
  for (std::uint32_t i = 0; i < kBuffers; ++i) {
    r.memory[i].assign(static_cast<std::size_t>(sizes[i]), std::byte{0x5a});
  }
  std::int64_t bytes = 0;
  for (const PlanBucket& bucket : r.plan->buckets) {
    for (std::uint32_t i = 0; i < r.plan->parameters.size() && !bucket.quantized; ++i) {
      const std::int64_t at = r.plan->parameters[i].at.value;  // a plain bucket has one parameter, at its begin
      if (at != bucket.begin.value) continue;
      for (std::int64_t e = 0; e < bucket.numel().value; ++e) {
        const std::uint16_t value = kernels::bf16_from_fp32(master_of(i, e, false));
        put(r.memory[kParamsBuffer], bytes + 2 * e, &value, 2);
      }
    }
    bytes += bucket.numel().value * (bucket.quantized ? 1 : 2);
  }
  for (const QuantizedCall& call : r.calls) {
    for (const replay::QuantizedRun& run : call.find.runs) {
      for (std::int64_t i = 0; i < run.numel.value; ++i) {
        const float value = master_of(q.parameters[run.quantized].parameter, run.first + i, special);
        put(r.memory[kMastersBuffer], run.master.value + 4 * i, &value, 4);
      }
    }
  }
}

}  // namespace quantized_cases

inline QuantizedRank quantized_rank(Fp8Recipe recipe, std::int64_t rank, std::int64_t ranks, bool columns = true,
                                    bool special = false) {
  QuantizedRank r;
  quantized_cases::add_layout(*r.plan, ranks);
  r.program.plan = r.plan.get();
  r.program.params = {kParamsBuffer};
  r.program.quantized = replay::Quantized{.recipe = recipe, .scales = {}, .columns = {}, .parameters = {}};
  const kernels::Scaling scaling = replay::scaling_of(r.program);
  r.program.quantized = quantized_cases::quantized_of(*r.plan, recipe, scaling, columns);
  quantized_cases::add_runs(r, rank, ranks);
  quantized_cases::fill(r, special);
  return r;
}

}  // namespace ebb::test
