// compile() of a life's parts on plans written by hand: where state goes on its way to a checkpoint, where quantised
// parameters and their scales lie, what is there at a part's beginning and end, and what is refused.
#include "models/errors.hpp"
#include "replay/host_layout.hpp"
#include "replay/program.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

/// A plain parameter of 64 elements, then a quantised one of [48, 32] in a bucket of its own with a gap of 8 before it.
/// The rank owns the second half of the first and all of the second.
Plan two_buckets(LifePart part) {
  Plan plan;
  plan.part = part;
  plan.precision.fp8 = Fp8Recipe::blockwise;
  plan.precision.fp8_param_gather = true;
  plan.buckets = {{{0}, {64}}, {{64}, {1608}, false, true}};
  plan.parameters = {{.name = "norm", .shape = {64}, .at = {0}},
                     {.name = "weight", .shape = {48, 32}, .at = {72}, .quantized = true}};
  plan.shards = {{.name = "norm", .numel = {32}, .at = {32}, .parameter = 0, .offset = {32}},
                 {.name = "weight", .numel = {1536}, .at = {72}, .parameter = 1, .offset = {0}}};
  plan.streams = {
      {"host", StreamKind::host}, {"compute", StreamKind::compute}, {"h2d", StreamKind::h2d}, {"d2h", StreamKind::d2h}};
  plan.buffers = {{.name = "parameters", .bytes = {2 * 64 + 1544}, .initial = true, .role = Role::params},
                  {.name = "gradients", .bytes = {4 * 1608}, .initial = true, .role = Role::grads},
                  {.name = "scales", .bytes = {16}, .initial = true, .role = Role::scales},
                  {.name = "columns", .bytes = {1536 + 16}, .role = Role::columns},
                  {.name = "largest", .bytes = {16}, .role = Role::largest, .parameters = {1}}};
  return plan;
}

constexpr std::int64_t kOwned = 32 + 1536;

/// On the host's stream where the op names none.
std::uint32_t add(Plan& plan, Op op) {
  if (op.stream == StreamId{}) op.stream = {0};
  plan.ops.push_back(op);
  return static_cast<std::uint32_t>(plan.ops.size() - 1);
}

/// The words of the error that compile() throws.
template <class Change>
std::string refusal(Plan plan, Change change) {
  change(plan);
  try {
    compile(plan, "plan.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("A save: device state through pinned staging behind the host store, packed state by state") {
  Plan plan = two_buckets(LifePart::save);
  plan.buffers.push_back({.name = "state",
                          .bytes = {3 * (256 + 6144)},
                          .initial = true,
                          .role = Role::state,
                          .states = kAllState,
                          .holds = {0, kOwned}});
  plan.buffers.push_back(
      {.name = "stage", .memory = Memory::pinned, .bytes = {8 * 100}, .initial = true, .role = Role::checkpoint});
  plan.buffers.push_back({.name = "window", .bytes = {2 * 100}, .initial = false, .role = Role::staging});
  const BufferId state{5}, stage{6}, window{7};
  // Elements [20, 120): twelve of the first shard, eighty-eight of the second.
  const ElementRange range{20, 120};
  const std::uint32_t out = add(plan, {.kind = OpKind::copy_d2h,
                                       .states = kExpAvgSq | kMaster,
                                       .stream = {3},
                                       .buffer = state,
                                       .host_buffer = stage,
                                       .bytes = {800},
                                       .range = range});
  const std::uint32_t store = add(plan, {.kind = OpKind::host_work,
                                         .work = Work::store,
                                         .states = kExpAvgSq | kMaster,
                                         .host_buffer = stage,
                                         .bytes = {800},
                                         .range = range});
  add(plan, {.kind = OpKind::allocate, .buffer = window});
  const ElementRange weights{32, 132};
  const std::uint32_t dequantize =
      add(plan, {.kind = OpKind::kernel, .work = Work::dequantize, .stream = {1}, .buffer = window, .range = weights});
  const std::uint32_t params = add(plan, {.kind = OpKind::copy_d2h,
                                          .states = kParams,
                                          .stream = {3},
                                          .buffer = window,
                                          .host_buffer = stage,
                                          .bytes = {200},
                                          .range = weights});
  add(plan, {.kind = OpKind::release, .buffer = window});
  const Program program = compile(plan, "plan.json");

  CHECK(program.pinned.value == 1024);  // nothing of the host's own, and 800 bytes rounded up
  CHECK(program.staged == program.pinned);
  const auto& copy = std::get<Copy>(program.actions[out]);
  REQUIRE(copy.transfers.size() == 4);
  // exp_avg_sq begins behind exp_avg (256 + 6144 with its alignment); the second tensor 256 further.
  CHECK(copy.transfers[0].device.at.value == 6400 + 4 * 20);
  CHECK(copy.transfers[1].device.at.value == 6400 + 256);
  CHECK(copy.transfers[2].device.at.value == 12800 + 4 * 20);
  CHECK(copy.transfers[3].device.at.value == 12800 + 256);
  CHECK(copy.transfers[0].host_at.value == 0);
  CHECK(copy.transfers[1].host_at.value == 4 * 12);
  CHECK(copy.transfers[2].host_at.value == 400);
  CHECK(copy.transfers[3].bytes.value == 4 * 88);

  const auto& pieces = std::get<Store>(program.actions[store]).pieces;
  REQUIRE(pieces.size() == 4);
  CHECK(pieces[0].state == kExpAvgSq);
  CHECK(pieces[0].shard == 0);
  CHECK(pieces[0].first.value == 20);
  CHECK(pieces[1].shard == 1);
  CHECK(pieces[1].first.value == 0);
  CHECK(pieces[3].state == kMaster);
  CHECK(pieces[3].host_at.value == 400 + 48);
  CHECK(pieces[3].numel.value == 88);

  const auto& values = std::get<Dequantize>(program.actions[dequantize]);
  REQUIRE(values.runs.size() == 1);
  CHECK(values.runs[0].first == 0);
  CHECK(values.runs[0].numel.value == 100);
  CHECK(std::get<Copy>(program.actions[params]).transfers[0].bytes.value == 200);
  CHECK(program.before.size() == 6);
  CHECK(every_place_is_inside(program));

  CHECK(refusal(plan, [&](Plan& bad) { bad.ops[store].host_buffer = state; }).find("none of role checkpoint") !=
        std::string::npos);
  CHECK(refusal(plan, [&](Plan& bad) { bad.buffers[6].bytes = {799}; }).find("\"stage\" has 799 bytes") !=
        std::string::npos);
  CHECK(refusal(plan, [&](Plan& bad) { bad.ops[out].states = kParams; }).find("not of the kind") != std::string::npos);
  CHECK(refusal(plan, [&](Plan& bad) {
          bad.ops[dequantize].range = {0, 100};
        }).find("parameters that are not quantised") != std::string::npos);
}

TEST_CASE("Reading released storage in a save is refused with the op and the buffer's name") {
  Plan plan = two_buckets(LifePart::save);
  plan.buffers.push_back(
      {.name = "master weights", .bytes = {256 + 6144}, .role = Role::state, .states = kMaster, .holds = {0, kOwned}});
  plan.buffers.push_back(
      {.name = "stage", .memory = Memory::pinned, .bytes = {400}, .initial = true, .role = Role::checkpoint});
  // What a state-dict pass does that asks the tensors instead of the host copies: they are away.
  add(plan, {.kind = OpKind::copy_d2h,
             .states = kMaster,
             .stream = {3},
             .buffer = {5},
             .host_buffer = {6},
             .bytes = {400},
             .range = {0, 100}});
  const std::string words = refusal(plan, [](Plan&) {});
  CHECK(words.find("op 0 (copy-d2h)") != std::string::npos);
  CHECK(words.find("\"master weights\" is not alive") != std::string::npos);
}

TEST_CASE("Quantised parameters: bytes behind plain ones, tiles of scales, largest values of a call") {
  Plan plan = two_buckets(LifePart::init);
  plan.buffers.push_back(
      {.name = "masters", .bytes = {256 + 6144}, .role = Role::state, .states = kMaster, .holds = {0, kOwned}});
  const BufferId largest{4}, masters{5};
  add(plan, {.kind = OpKind::allocate, .buffer = masters});
  const std::uint32_t make = add(
      plan, {.kind = OpKind::kernel, .work = Work::make_masters, .stream = {1}, .buffer = masters, .range = {0, 32}});
  add(plan, {.kind = OpKind::allocate, .buffer = largest});
  const std::uint32_t zero =
      add(plan, {.kind = OpKind::kernel, .work = Work::zero_state, .stream = {1}, .buffer = largest});
  const std::uint32_t find =
      add(plan,
          {.kind = OpKind::kernel, .work = Work::find_largest, .stream = {1}, .buffer = largest, .range = {132, 232}});
  for (const ElementRange rest : {ElementRange{32, 132}, ElementRange{232, kOwned}})
    add(plan, {.kind = OpKind::kernel, .work = Work::find_largest, .stream = {1}, .buffer = largest, .range = rest});
  const std::uint32_t reduce = add(
      plan, {.kind = OpKind::collective, .work = Work::all_reduce, .stream = {1}, .buffer = largest, .bytes = {16}});
  const std::uint32_t quantize = add(
      plan, {.kind = OpKind::kernel, .work = Work::quantize, .stream = {1}, .buffer = largest, .range = {132, 232}});
  add(plan, {.kind = OpKind::release, .buffer = largest});
  add(plan, {.kind = OpKind::allocate, .buffer = {3}});
  const std::uint32_t columns =
      add(plan, {.kind = OpKind::kernel, .work = Work::make_columns, .stream = {1}, .buffer = {3}});
  const std::uint32_t gather = add(
      plan,
      {.kind = OpKind::collective, .work = Work::all_gather, .states = kParams, .stream = {1}, .bytes = {128 + 1544}});
  const Program program = compile(plan, "plan.json");

  REQUIRE(program.quantized);
  const QuantizedParameter& q = program.quantized->parameters.at(0);
  CHECK(q.rows == 48);
  CHECK(q.columns == 32);
  CHECK(q.row.value == 128 + 8);  // 64 of two bytes, then the gap
  CHECK(q.largest == 4);          // one tile, padded to four
  CHECK(q.column_scales.value == 1536);
  CHECK(std::get<Cast>(program.actions[make]).runs.at(0).from.value == 64);
  CHECK(std::get<Zero>(program.actions[zero]).parts.at(0).bytes.value == 16);
  const auto& found = std::get<FindLargest>(program.actions[find]);
  CHECK(found.masters == masters);
  CHECK(found.runs.at(0).first == 100);
  CHECK(found.runs.at(0).master.value == 256 + 400);
  CHECK(std::get<LargestCollective>(program.actions[reduce]).numel.value == 4);
  CHECK(std::get<Quantize>(program.actions[quantize]).scales.size() == 1);
  CHECK(std::get<MakeColumns>(program.actions[columns]).quantized.size() == 1);
  const auto& parts = std::get<BucketCollective>(program.actions[gather]).bytes;
  REQUIRE(parts.size() == 2);
  CHECK(parts[1].at.value == 128);
  CHECK(parts[1].bytes.value == 1544);
  // Nothing of the state is there before; masters are afterwards, on the device.
  CHECK(program.before.empty());
  REQUIRE(program.after.size() == 2);
  CHECK(program.after[1].device.at.value == 256);

  CHECK(refusal(plan, [&](Plan& bad) {
          bad.ops[make].range = {0, 40};
        }).find("from quantised parameters") != std::string::npos);
  CHECK(refusal(plan, [&](Plan& bad) { bad.buffers[2].bytes = {12}; }).find("\"scales\" has 12 bytes") !=
        std::string::npos);
  CHECK(refusal(plan, [&](Plan& bad) { bad.buffers[4].parameters = {0}; }) != "");
  CHECK(refusal(plan, [&](Plan& bad) { bad.precision.fp8_param_gather = false; }).find("quantised buckets") !=
        std::string::npos);
  CHECK(refusal(plan, [&](Plan& bad) { bad.precision.fp8 = Fp8Recipe::delayed; }).find("quantised weights") !=
        std::string::npos);
}

TEST_CASE("A second pass over packed masters finds them inside the regions of the first") {
  Plan plan;
  plan.shards = {{.name = "a", .numel = {250}, .at = {0}}};
  const OwnedElements owned(plan);
  HostLayout host;
  std::vector<HostUse> uses = {{kAllState, {0, 100}, true},
                               {kAllState, {100, 200}, true},
                               {kAllState, {200, 250}, true},
                               {kMaster, {50, 150}, true}};
  REQUIRE(host.build(owned, plan.precision, uses, std::nullopt));
  CHECK(host.pinned().value == 12 * 250);
  CHECK(host.region(kAllState, {100, 200})->value == 1200);
  CHECK_FALSE(host.region(kMaster, {50, 150}));
  CHECK(host.at(kMaster, 0, 50)->value == 800 + 4 * 50);
  CHECK(host.region_end(50) == 100);
  CHECK(host.at(kMaster, 0, 100)->value == 1200 + 800);
  uses.push_back({kAllState, {150, 250}, true});
  HostLayout other;
  CHECK_FALSE(other.build(owned, plan.precision, uses, std::nullopt));
}
