// Adam on the host by several threads and in vectors has the bits of kernels/adamw_ref, element by element.
#include "replay/host_adam.hpp"

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/digest.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

struct Arrays {
  std::vector<float> grad, exp_avg, exp_avg_sq, master;
  bool operator==(const Arrays& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    return same(grad, other.grad) && same(exp_avg, other.exp_avg) && same(exp_avg_sq, other.exp_avg_sq) &&
           same(master, other.master);
  }
};

Arrays random_arrays(std::size_t numel) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Arrays arrays;
  for (std::size_t i = 0; i < numel; ++i) {
    arrays.grad.push_back(uniform(random));
    arrays.exp_avg.push_back(uniform(random));
    arrays.exp_avg_sq.push_back(uniform(random) * uniform(random));  // some negative: square roots become NaN
    arrays.master.push_back(uniform(random));
  }
  arrays.grad[3] = std::numeric_limits<float>::infinity();
  arrays.grad[5] = -std::numeric_limits<float>::quiet_NaN();
  arrays.grad[6] = 1e-42F;  // subnormal
  arrays.grad[7] = 3e38F;   // its square overflows
  return arrays;
}

std::byte* bytes(std::vector<float>& values) { return reinterpret_cast<std::byte*>(values.data()); }

/// Runs that begin anywhere, one longer than a thread's piece.
std::vector<kernels::AdamwRun> some_runs() {
  const auto run = [](std::int64_t grad, std::int64_t state, std::int64_t numel) {
    return kernels::AdamwRun{4 * grad, 4 * state, 4 * state, 4 * state, 0, numel};
  };
  return {run(0, 1, 13), run(20, 20, 1), run(31, 33, 200'001), run(210'000, 210'000, 70'000)};
}

}  // namespace

TEST_CASE("host Adam has the reference's bits") {
  for (const std::size_t threads : {std::size_t{1}, std::size_t{3}}) {
    HostPool pool(std::vector<int>(threads, 0));
    CHECK(pool.threads() == threads);
    Arrays ours = random_arrays(300'000);
    Arrays reference = ours;
    for (const std::int64_t step : {1, 2, 1000}) {
      const kernels::AdamwStep constants = kernels::adamw_step({}, step);
      host_adam(pool, {bytes(ours.grad), bytes(ours.exp_avg), bytes(ours.exp_avg_sq), bytes(ours.master)}, some_runs(),
                constants);
      kernels::AdamwArrays arrays;
      arrays.grad = reference.grad.data();
      arrays.exp_avg = reference.exp_avg.data();
      arrays.exp_avg_sq = reference.exp_avg_sq.data();
      arrays.master = reference.master.data();
      kernels::adamw_ref(arrays, some_runs(), constants);
      CHECK(ours == reference);
    }
  }
}

TEST_CASE("the host's digest is the reference's, however it is cut") {
  HostPool pool({0, 0, 0});
  Arrays arrays = random_arrays(300'000);
  const std::vector<kernels::Run> runs{{4, 100, 13}, {400, 5000, 250'000}};
  CHECK(host_digest(pool, bytes(arrays.master), runs, 9) ==
        kernels::digest_ref(kernels::Type::fp32, arrays.master.data(), runs, 9));
}

TEST_CASE("shares of the CPUs are disjoint and cover what there is") {
  const std::vector<int> all = share_of_cpus(-1, 0, 1);
  REQUIRE_FALSE(all.empty());
  std::vector<int> together;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<int> part = share_of_cpus(-1, i, 3);
    together.insert(together.end(), part.begin(), part.end());
  }
  CHECK(together == all);
}
