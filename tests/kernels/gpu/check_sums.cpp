// Norm, clipping, counts, digests and the objective against their references.
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "kernels/digest.hpp"
#include "kernels/norm.hpp"
#include "kernels/objective.hpp"
#include "tests/kernels/gpu/cases.hpp"
#include "tests/kernels/gpu/checks.hpp"
#include "tests/kernels/gpu/device.hpp"

namespace ebb::kernels::gpu {
namespace {

template <class T>
T fetch(const DeviceBytes& from) {
  T value;
  copy(&value, from.get(), sizeof value);
  return value;
}

bool equal(const char* name, const void* got, const void* want, std::size_t bytes) {
  if (std::memcmp(got, want, bytes) == 0) return true;
  std::printf("  %s differs\n", name);
  return false;
}

bool verdict(const char* name, int cases, bool same) {
  std::printf("%-12s %5d cases: %s\n", name, cases, same ? "same bits" : "DIFFERENT");
  return same;
}

// An array of a type and runs in it.
struct Array {
  Twin data;
  std::vector<Run> runs;
};
Array make_array(Type type, const std::vector<std::int64_t>& lengths, Placing placing, int specials,
                 std::mt19937& engine) {
  const auto offsets = place(lengths, placing, engine);
  Array a{.data = Twin(random_array(type, extent(lengths, offsets), {.specials = specials}, engine)), .runs = {}};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    a.runs.push_back(
        {.offset = offsets[i] * bytes_of(type), .index = 1000 * static_cast<std::int64_t>(i), .numel = lengths[i]});
  }
  return a;
}

bool same_norm(Type type, Array& a, float inverse_scale = 1) {
  const DeviceBytes workspace(sum_of_squares_workspace(a.runs)), sum(4), norm(4), coefficient(4), nonfinite(4);
  check(launch_sum_of_squares(type, a.data.device(), a.runs, workspace.get(), sum.as<float>(), nullptr), "norm");
  check(launch_clip_coefficient({.sum = sum.as<float>(),
                                 .norm = norm.as<float>(),
                                 .coefficient = coefficient.as<float>(),
                                 .nonfinite = nonfinite.as<std::uint32_t>()},
                                1.5F, nullptr, inverse_scale),
        "clip");
  finish("norm");
  const float want_sum = sum_of_squares_ref(type, a.data.host(), a.runs);
  float want_norm, want_coefficient;
  std::uint32_t want_nonfinite;
  clip_coefficient_ref(
      {.sum = &want_sum, .norm = &want_norm, .coefficient = &want_coefficient, .nonfinite = &want_nonfinite}, 1.5F,
      inverse_scale);
  const auto got_sum = fetch<float>(sum), got_norm = fetch<float>(norm), got_coefficient = fetch<float>(coefficient);
  const auto got_nonfinite = fetch<std::uint32_t>(nonfinite);
  return equal("sum of squares", &got_sum, &want_sum, 4) & equal("norm", &got_norm, &want_norm, 4) &
         equal("coefficient", &got_coefficient, &want_coefficient, 4) &
         equal("nonfinite", &got_nonfinite, &want_nonfinite, 4);
}

bool same_digest(Type type, Array& a) {
  const DeviceBytes digest(8), count(8);
  const std::uint64_t begin = 5;
  copy(digest.get(), &begin, 8), copy(count.get(), &begin, 8);
  check(launch_digest(type, a.data.device(), a.runs, 3, digest.as<std::uint64_t>(), nullptr), "digest");
  check(launch_count_nonfinite(type, a.data.device(), a.runs, count.as<std::uint64_t>(), nullptr), "count");
  finish("digest");
  const std::uint64_t want_digest = begin + digest_ref(type, a.data.host(), a.runs, 3);
  const std::uint64_t want_count = begin + count_nonfinite_ref(type, a.data.host(), a.runs);
  const auto got_digest = fetch<std::uint64_t>(digest), got_count = fetch<std::uint64_t>(count);
  return equal("digest", &got_digest, &want_digest, 8) & equal("count", &got_count, &want_count, 8);
}

// Parameters and gradients that begin `shift` and `grad_shift` elements into their arrays.
struct ObjectiveCase {
  Type type, grad_type;
  std::int64_t begin, numel, shift, grad_shift;
  int specials;
};

bool same_objective(const ObjectiveCase& c, std::mt19937& engine) {
  const ObjectiveKey key{.seed = 0xfeedULL << 32 | 5, .step = 9, .micro = 3, .rank = 2};
  Twin p(random_array(c.type, c.numel + 16, {.specials = c.specials}, engine));
  Twin g(random_array(c.grad_type, c.numel + 16, {.specials = c.specials}, engine));
  const auto params = [&](char* base) {
    return ObjectiveParams{
        .data = base + c.shift * bytes_of(c.type), .type = c.type, .begin = c.begin, .numel = c.numel};
  };
  const DeviceBytes workspace(objective_workspace(c.begin, c.numel)), loss(8);
  bool same = true;
  for (const bool accumulate : {true, false}) {
    const auto grads = [&](char* base) {
      return ObjectiveGrads{.data = base + c.grad_shift * bytes_of(c.grad_type),
                            .type = c.grad_type,
                            .scale = 0.7F,
                            .accumulate = accumulate};
    };
    objective_gradient_ref(params(p.host()), key, grads(g.host()));
    check(launch_objective_gradient(params(p.device()), key, grads(g.device()), nullptr), "gradient");
    same &= g.same("gradient");
  }
  check(launch_objective_loss(params(p.device()), key, workspace.get(), loss.as<double>(), nullptr), "loss");
  finish("loss");
  const double want = objective_loss_ref(params(p.host()), key), got = fetch<double>(loss);
  same &= equal("loss", &got, &want, 8) & p.same("parameters");
  if (!same) {
    std::printf("DIFFERENT: objective types %d %d, begin %lld, numel %lld, shifts %lld %lld\n",
                static_cast<int>(c.type), static_cast<int>(c.grad_type), static_cast<long long>(c.begin),
                static_cast<long long>(c.numel), static_cast<long long>(c.shift), static_cast<long long>(c.grad_shift));
  }
  return same;
}

}  // namespace

bool check_norm() {
  std::mt19937 engine(3);
  bool same = true;
  int cases = 0;
  for (const int specials : {0, 2000}) {
    for (const auto& lengths : run_lengths(engine)) {
      for (const Placing placing : kPlacings) {
        for (const Type type : {Type::fp32, Type::bf16}) {
          Array a = make_array(type, lengths, placing, specials, engine);
          for (const float inverse_scale : {1.0F, 0x1p-16F, 1.0F / 3}) same &= same_norm(type, a, inverse_scale);
          cases += 3;
        }
      }
    }
  }
  Array large = make_array(Type::fp32, {20'000'003, 17}, Placing::aligned, 0, engine);  // many tiles for the last stage
  same &= same_norm(Type::fp32, large);
  return verdict("norm", cases + 1, same);
}

bool check_digest() {
  std::mt19937 engine(4);
  bool same = true;
  int cases = 0;
  for (const auto& lengths : run_lengths(engine)) {
    for (const Placing placing : kPlacings) {
      for (const Type type : {Type::fp32, Type::bf16, Type::fp16, Type::fp8_e4m3}) {
        Array a = make_array(type, lengths, placing, 50, engine);
        same &= same_digest(type, a);
        ++cases;
      }
    }
  }
  return verdict("digest", cases, same);
}

bool check_objective() {
  std::mt19937 engine(5);
  bool same = true;
  int cases = 0;
  for (const Type type : {Type::fp32, Type::bf16, Type::fp16}) {
    for (const Type grad_type : {Type::fp32, Type::bf16}) {
      for (const std::int64_t numel : {0, 1, 3, 4, 5, 127, 2048, 2051, 8192, 40'001}) {
        for (const std::int64_t begin :
             {std::int64_t{0}, std::int64_t{1}, std::int64_t{6}, std::int64_t{8191}, (std::int64_t{1} << 34) - 7}) {
          // Vectors possible (addresses follow the index), and not.
          same &= same_objective({type, grad_type, begin, numel, begin % 4, begin % 4, 0}, engine);
          same &= same_objective({type, grad_type, begin, numel, begin % 4, (begin + 1) % 4, 500}, engine);
          cases += 2;
        }
      }
    }
  }
  same &= same_objective({Type::bf16, Type::fp32, 12, 10'000'001, 0, 0, 0}, engine);
  return verdict("objective", cases + 1, same);
}

}  // namespace ebb::kernels::gpu
