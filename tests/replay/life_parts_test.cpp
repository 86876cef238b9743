// Parts of a life on GPUs that need none: which parts a script runs, masters that the host makes, numbers that travel.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "kernels/elementwise.hpp"
#include "models/errors.hpp"
#include "replay/host_masters.hpp"
#include "replay/life_exchange.hpp"
#include "replay/life_sequence.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

using Kind = LifeEvent::Kind;

LifePrograms programs_with(std::initializer_list<LifePart> parts) {
  LifePrograms programs;
  for (const LifePart part : parts) programs[static_cast<std::size_t>(part)].emplace();
  return programs;
}

const auto kAll =
    programs_with({LifePart::init, LifePart::load, LifePart::load_params, LifePart::reload, LifePart::first_step,
                   LifePart::first_skip, LifePart::step, LifePart::skip, LifePart::save});

std::string error_of(const LifeScript& script, const LifePrograms& programs) {
  try {
    parts_of(script, programs);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// To the nearest, even ones first, by arithmetic: 7 or 10 bits behind the first; fp16 has none below 2^-24.
float rounded(float x, Dtype type) {
  if (x == 0 || type == Dtype::fp32) return x;
  const int bits = type == Dtype::bf16 ? 7 : 10;
  const int exponent = type == Dtype::fp16 ? std::max(std::ilogb(x), -14) : std::ilogb(x);
  return static_cast<float>(
      std::ldexp(std::rint(std::ldexp(static_cast<double>(x), bits - exponent)), exponent - bits));
}

LifeEvent of(Kind kind) {
  LifeEvent event;
  event.kind = kind;
  return event;
}
LifeEvent steps(int count) {
  LifeEvent event = of(Kind::steps);
  event.steps = count;
  return event;
}
LifeScript script(std::vector<LifeEvent> events) {
  LifeScript told;
  told.events = std::move(events);
  return told;
}

}  // namespace

TEST_CASE("a life's parts: first what makes state, then what has it, each kind of step with its skip") {
  using enum LifePart;
  const LifeScript whole =
      script({of(Kind::init), of(Kind::load_params), steps(20), of(Kind::save), of(Kind::load), steps(1)});
  CHECK(parts_of(whole, kAll) ==
        std::vector{init, load_params, first_skip, first_step, step, skip, save, reload, step, skip});
  const LifeScript resumed = script({of(Kind::init), of(Kind::load), steps(1)});
  CHECK(parts_of(resumed, programs_with({init, load, step})) == std::vector{init, load, step});
}

TEST_CASE("a life's parts: what cannot come where it stands is refused before anything is allocated") {
  CHECK(error_of(script({steps(1)}), kAll).find("begins with init") != std::string::npos);
  CHECK(error_of(script({of(Kind::init), of(Kind::init)}), kAll).find("init comes once") != std::string::npos);
  CHECK(error_of(script({of(Kind::init), of(Kind::save)}), kAll).find("no state to save") != std::string::npos);
  CHECK(error_of(script({of(Kind::init), steps(1), of(Kind::load_params)}), kAll).find("before the first step") !=
        std::string::npos);
  CHECK(error_of(script({of(Kind::init), steps(1), of(Kind::load)}),
                 programs_with({LifePart::init, LifePart::first_step}))
            .find("no plan of part reload") != std::string::npos);
}

TEST_CASE("host masters: fp32 of the rounded initial values, by padded element, wherever they lie") {
  constexpr std::int64_t kNumel = 150'000;  // several threads' parts
  constexpr std::int64_t kFirst = 1'001;    // odd: in the midst of a draw of four
  for (const Dtype type : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
    std::vector<std::byte> pinned(64 + 4 * kNumel + 32, std::byte{0x55});
    const HostMasters masters{{{{kFirst}, {kNumel - 10}, {64}}, {{kFirst + kNumel - 10}, {10}, {64 + 4 * kNumel - 8}}}};
    HostPool pool({0, 0, 0});
    make_host_masters(pool, masters, type, 7, pinned.data());
    std::vector<float> drawn(static_cast<std::size_t>(kNumel));
    const kernels::Run run{0, kFirst, kNumel};
    kernels::fill_random_ref(kernels::Type::fp32, drawn.data(), {&run, 1}, 7, 1.0F);
    bool right = true;
    for (std::int64_t i = 0; i < kNumel; ++i) {
      float made = 0;
      const std::int64_t at = i < kNumel - 10 ? 64 + 4 * i : 64 + 4 * kNumel - 8 + 4 * (i - kNumel + 10);
      std::memcpy(&made, pinned.data() + at, 4);
      const float x = drawn[static_cast<std::size_t>(i)];
      right = right && made == rounded(x, type);
    }
    CHECK(right);
    CHECK(pinned[63] == std::byte{0x55});
    CHECK(pinned[64 + 4 * (kNumel - 10)] == std::byte{0x55});  // between the runs
  }
}

TEST_CASE("a life's numbers travel between processes bit for bit, nan included") {
  LifeNumbers numbers;
  numbers.steps = {{.loss = 0.1, .sum_of_squares = 3.25F, .digest = 0xfedcba9876543210ULL},
                   {.loss = -0.0,
                    .sum_of_squares = std::numeric_limits<float>::quiet_NaN(),
                    .digest = 0,
                    .skipped = true,
                    .loss_scale = 65536.0F}};
  numbers.place = {
      .steps = 2, .adam_steps = 1, .seed = 0xffffffffffffffffULL, .loss_scale = 0.5F, .good_steps = 3, .hysteresis = 1};
  numbers.final_state = 0x8000000000000001ULL;
  numbers.parameters = 17;
  numbers.strays = 2;
  numbers.peaks = {{LifePart::save, {5}, {6}}};
  numbers.checkpoints = {{true, "/a \"b\"/step-00000002", {1LL << 50}, 0.25, 1.0 / 3}};
  numbers.memory.live_peak = {9};
  numbers.memory.live_by_phase = {{Phase::save, {8}}};
  numbers.memory.driver_peak = Bytes{11};
  const auto [rank, there] = life_from_text(to_text(3, numbers));
  CHECK(rank == 3);
  REQUIRE(there.steps.size() == 2);
  CHECK(there.steps[0] == numbers.steps[0]);
  CHECK(std::signbit(there.steps[1].loss));
  CHECK(std::isnan(there.steps[1].sum_of_squares));
  CHECK(there.steps[1].skipped);
  CHECK(there.steps[1].loss_scale == 65536.0F);
  CHECK(there.place == numbers.place);
  CHECK(there.final_state == numbers.final_state);
  CHECK(there.parameters == 17);
  CHECK(there.strays == 2);
  REQUIRE(there.peaks.size() == 1);
  CHECK(there.peaks[0].part == LifePart::save);
  CHECK(there.peaks[0].live == Bytes{5});
  CHECK(there.peaks[0].planned == Bytes{6});
  REQUIRE(there.checkpoints.size() == 1);
  CHECK(there.checkpoints[0].directory == numbers.checkpoints[0].directory);
  CHECK(there.checkpoints[0].bytes == numbers.checkpoints[0].bytes);
  CHECK(there.checkpoints[0].storage_seconds == 1.0 / 3);
  CHECK(there.memory == numbers.memory);
}
