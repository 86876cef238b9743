// Scaling, casts, fills and the conversions themselves against their references.
#include <cstdio>
#include <random>
#include <vector>

#include "kernels/elementwise.hpp"
#include "tests/kernels/gpu/cases.hpp"
#include "tests/kernels/gpu/checks.hpp"
#include "tests/kernels/gpu/device.hpp"

namespace ebb::kernels::gpu {
namespace {

std::vector<Run> runs_of(Type type, const std::vector<std::int64_t>& lengths, const std::vector<std::int64_t>& offsets,
                         std::int64_t index) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    runs.push_back({.offset = offsets[i] * bytes_of(type), .index = index, .numel = lengths[i]});
    index += lengths[i] + 1;
  }
  return runs;
}

bool scaled(Type type, const std::vector<std::int64_t>& lengths, Placing placing, std::mt19937& engine) {
  const auto offsets = place(lengths, placing, engine);
  Twin x(random_array(type, extent(lengths, offsets), {}, engine));
  const auto runs = runs_of(type, lengths, offsets, 0);
  const float coefficient = 0.3711F;
  const DeviceBytes on_device(4);
  copy(on_device.get(), &coefficient, 4);
  scale_ref(type, x.host(), runs, coefficient);
  check(launch_scale(type, x.device(), runs, on_device.as<float>(), nullptr), "scale");
  return x.same("scale");
}

bool filled(Type type, const std::vector<std::int64_t>& lengths, Placing placing, std::mt19937& engine) {
  const auto offsets = place(lengths, placing, engine);
  Twin x(random_array(type, extent(lengths, offsets), {}, engine));
  const auto runs = runs_of(type, lengths, offsets, (std::int64_t{1} << 34) - 100 + engine() % 4);
  fill_random_ref(type, x.host(), runs, 7, 0.02F);
  check(launch_fill_random(type, x.device(), runs, 7, 0.02F, nullptr), "fill");
  bool same = x.same("random fill");
  check(launch_fill_bytes(type, x.device(), runs, kPoison, nullptr), "fill");
  for (const Run& run : runs) {
    std::memset(x.host() + run.offset, kPoison, static_cast<std::size_t>(run.numel * bytes_of(type)));
  }
  return same & x.same("poison");
}

bool cast(Type from, Type to, const std::vector<std::int64_t>& lengths, Placing placing, std::mt19937& engine) {
  const auto sources = place(lengths, placing, engine);
  const auto destinations = place(lengths, placing, engine);
  Twin x(random_array(from, extent(lengths, sources), {}, engine));
  Twin z(random_array(to, extent(lengths, destinations), {}, engine));
  std::vector<CastRun> runs;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    runs.push_back(
        {.source = sources[i] * bytes_of(from), .destination = destinations[i] * bytes_of(to), .numel = lengths[i]});
  }
  const CastArrays types{.source_type = from, .destination_type = to, .scale = 12};
  CastArrays host = types, device = types;
  host.source = x.host(), host.destination = z.host();
  device.source = x.device(), device.destination = z.device();
  cast_ref(host, runs);
  check(launch_cast(device, runs, nullptr), "cast");
  return z.same("cast");
}

bool verdict(const char* name, int cases, bool same) {
  std::printf("%-12s %5d cases: %s\n", name, cases, same ? "same bits" : "DIFFERENT");
  return same;
}

}  // namespace

bool check_elementwise() {
  std::mt19937 engine(2);
  bool same = true;
  int cases = 0;
  for (const auto& lengths : run_lengths(engine)) {
    for (const Placing placing : kPlacings) {
      for (const Type type : {Type::fp32, Type::bf16}) {
        same &= scaled(type, lengths, placing, engine) & filled(type, lengths, placing, engine);
        cases += 2;
      }
      for (const Type to : {Type::bf16, Type::fp16, Type::fp8_e4m3}) {
        same &= cast(Type::fp32, to, lengths, placing, engine);
        ++cases;
      }
      same &= cast(Type::bf16, Type::fp32, lengths, placing, engine) &
              cast(Type::fp16, Type::fp32, lengths, placing, engine);
      cases += 2;
    }
  }
  return verdict("elementwise", cases, same);
}

// Every 257th fp32 of all 2^32: every exponent, mantissas of all kinds.
bool check_conversions() {
  constexpr std::int64_t kNumel = (std::int64_t{1} << 32) / 257;
  std::vector<char> all(static_cast<std::size_t>(4 * kNumel));
  for (std::int64_t i = 0; i < kNumel; ++i) {
    const auto bits = static_cast<std::uint32_t>(257 * i);
    std::memcpy(all.data() + 4 * i, &bits, 4);
  }
  Twin x(std::move(all));
  bool same = true;
  for (const Type to : {Type::bf16, Type::fp16, Type::fp8_e4m3}) {
    Twin z(std::vector<char>(static_cast<std::size_t>(kNumel * bytes_of(to)), '\x5a'));
    const CastRun run{.numel = kNumel};
    cast_ref({.source = x.host(), .destination = z.host(), .destination_type = to}, {&run, 1});
    check(launch_cast({.source = x.device(), .destination = z.device(), .destination_type = to}, {&run, 1}, nullptr),
          "cast");
    same &= z.same("conversion");
  }
  std::vector<char> halves(2 << 16);  // every fp16
  for (std::uint32_t bits = 0; bits < 1 << 16; ++bits) std::memcpy(halves.data() + 2 * bits, &bits, 2);
  Twin half(std::move(halves)), wide(std::vector<char>(4 << 16, '\x5a'));
  const CastRun run{.numel = 1 << 16};
  const CastArrays types{.source_type = Type::fp16, .destination_type = Type::fp32};
  CastArrays host = types, device = types;
  host.source = half.host(), host.destination = wide.host();
  device.source = half.device(), device.destination = wide.device();
  cast_ref(host, {&run, 1});
  check(launch_cast(device, {&run, 1}, nullptr), "cast");
  same &= wide.same("fp16 to fp32");
  return verdict("conversions", 4, same);
}

}  // namespace ebb::kernels::gpu
