// AdamW, fused and in passes, against its reference.
#include <cstdio>
#include <random>
#include <vector>

#include "kernels/adamw.hpp"
#include "tests/kernels/gpu/cases.hpp"
#include "tests/kernels/gpu/checks.hpp"
#include "tests/kernels/gpu/device.hpp"

namespace ebb::kernels::gpu {
namespace {

const AdamwStep kStep = adamw_step({.learning_rate = 3e-4F, .beta2 = 0.95F, .weight_decay = 0.1F}, 5);

// Five arrays of one case, twice.
struct Case {
  AdamwArrays types;
  std::vector<AdamwRun> runs;
  std::vector<Twin> arrays;  // grad, exp_avg, exp_avg_sq, master, param

  AdamwArrays on_host() { return with(&Twin::host); }
  AdamwArrays on_device() { return with(&Twin::device); }
  AdamwArrays with(char* (Twin::*side)()) {
    AdamwArrays a = types;
    a.grad = (arrays[0].*side)(), a.exp_avg = (arrays[1].*side)(), a.exp_avg_sq = (arrays[2].*side)();
    a.master = (arrays[3].*side)();
    if (types.param != nullptr) a.param = (arrays[4].*side)();
    return a;
  }
  bool same() {
    return arrays[0].same("grad") & arrays[1].same("exp_avg") & arrays[2].same("exp_avg_sq") &
           arrays[3].same("master") & arrays[4].same("param");
  }
};

Case make_case(const AdamwArrays& types, const std::vector<std::int64_t>& lengths, Placing placing,
               std::mt19937& engine) {
  Case c{.types = types, .runs = std::vector<AdamwRun>(lengths.size()), .arrays = {}};
  const struct {
    Type type;
    std::int64_t AdamwRun::*offset;
    Values32 values;
  } parts[] = {{types.grad_type, &AdamwRun::grad, {.scale = 1e-2F}},
               {types.exp_avg_type, &AdamwRun::exp_avg, {.scale = 1e-3F, .specials = 997}},
               {types.exp_avg_sq_type, &AdamwRun::exp_avg_sq, {.scale = 1e-5F, .negative = false, .specials = 997}},
               {Type::fp32, &AdamwRun::master, {.scale = 1, .specials = 997}},
               {types.param_type, &AdamwRun::param, {}}};
  for (const auto& part : parts) {
    const std::vector<std::int64_t> offsets = place(lengths, placing, engine);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      c.runs[i].*part.offset = offsets[i] * bytes_of(part.type);
      c.runs[i].numel = lengths[i];
    }
    c.arrays.emplace_back(random_array(part.type, extent(lengths, offsets), part.values, engine));
  }
  // The parameter is only written: poison shows an element that was not.
  const std::size_t bytes = c.arrays.back().size();
  c.arrays.pop_back();
  c.arrays.emplace_back(std::vector<char>(bytes, '\xa5'));
  return c;
}

const char* word(Type type) {
  switch (type) {
    case Type::bf16:
      return "bf16";
    case Type::fp16:
      return "fp16";
    case Type::fp8_e4m3:
      return "fp8";
    default:
      return "fp32";
  }
}

void report(const Case& c, std::size_t lengths, Placing placing) {
  std::printf("DIFFERENT: adamw grad %s, exp_avg %s, exp_avg_sq %s, param %s, lengths %zu, placing %d\n",
              word(c.types.grad_type), word(c.types.exp_avg_type), word(c.types.exp_avg_sq_type),
              c.types.param == nullptr ? "none" : word(c.types.param_type), lengths, static_cast<int>(placing));
}

std::vector<AdamwArrays> all_types() {
  static int some = 0;  // only says that there is a parameter
  std::vector<AdamwArrays> all;
  for (const Type grad : {Type::fp32, Type::bf16}) {
    for (const Type avg : {Type::fp32, Type::bf16}) {
      for (const Type sq : {Type::fp32, Type::bf16}) {
        for (const Type param : {Type::fp32, Type::bf16, Type::fp16, Type::fp8_e4m3}) {
          all.push_back({.param = param == Type::fp32 ? nullptr : &some,
                         .grad_type = grad,
                         .exp_avg_type = avg,
                         .exp_avg_sq_type = sq,
                         .param_type = param == Type::fp32 ? Type::bf16 : param,
                         .param_scale = 48});
        }
      }
    }
  }
  return all;
}

template <class Launch>
bool check_all(const char* name, bool fp32_moments, Launch launch) {
  std::mt19937 engine(1);
  bool same = true;
  int cases = 0;
  for (const AdamwArrays& types : all_types()) {
    if (fp32_moments && (types.exp_avg_type != Type::fp32 || types.exp_avg_sq_type != Type::fp32)) continue;
    const auto all = run_lengths(engine);
    for (std::size_t k = 0; k < all.size(); ++k) {
      for (const Placing placing : kPlacings) {
        Case c = make_case(types, all[k], placing, engine);
        adamw_ref(c.on_host(), c.runs, kStep);
        launch(c);
        finish(name);
        ++cases;
        if (c.same()) continue;
        report(c, k, placing);
        same = false;
      }
    }
  }
  std::printf("%-12s %5d cases: %s\n", name, cases, same ? "same bits" : "DIFFERENT");
  return same;
}

}  // namespace

bool check_adamw() {
  return check_all("adamw", false,
                   [](Case& c) { check(launch_adamw(c.on_device(), c.runs, kStep, nullptr), "adamw"); });
}

bool check_foreach() {
  return check_all("foreach", true, [](Case& c) {
    std::int64_t numel = 0;
    for (const AdamwRun& run : c.runs) numel += run.numel;
    Twin scratch(std::vector<char>(static_cast<std::size_t>(4 * numel + 64), '\x5a'));
    check(launch_adamw_foreach(c.on_device(), c.runs, kStep, scratch.device(), nullptr), "foreach");
    finish("foreach");
    std::vector<char> behind(64);
    copy(behind.data(), scratch.device() + 4 * numel, behind.size());
    if (behind != std::vector<char>(64, '\x5a')) {
      std::printf("DIFFERENT: foreach wrote behind its scratch\n");
      std::exit(1);
    }
  });
}

}  // namespace ebb::kernels::gpu
