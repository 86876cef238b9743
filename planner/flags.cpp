#include "planner/flags.hpp"

#include <fmt/format.h>

#include <array>

#include "models/nearest.hpp"

namespace ebb {

namespace {

constexpr std::array kMegatrons = {Megatron::any, Megatron::main, Megatron::dev, Megatron::pr6544};

}  // namespace

std::string_view name_of(Megatron megatron) {
  switch (megatron) {
    case Megatron::any:
      return "any";
    case Megatron::main:
      return "main";
    case Megatron::dev:
      return "dev";
    case Megatron::pr6544:
      return "pr6544";
  }
  return "";
}

Megatron parse_megatron(std::string_view word, const Place& place) {
  std::vector<std::string> names;
  for (const Megatron megatron : kMegatrons) {
    if (name_of(megatron) == word) return megatron;
    names.emplace_back(name_of(megatron));
  }
  throw InputError(place, fmt::format("unknown Megatron \"{}\"", word), did_you_mean(word, names, "Megatrons"));
}

std::vector<std::string> flags_of(const Candidate& candidate) {
  switch (candidate.policy) {
    case Policy::resident:
    case Policy::pipelined:
    case Policy::tidal:
      return {};
    case Policy::full_reload:
      return {"--offload-optimizer-states"};
    case Policy::chunked:
      return {"--offload-optimizer-states", "--offload-optimizer-states-chunk-numel",
              std::to_string(candidate.chunk_numel.value)};
    case Policy::windowed:
      return {"--chunked-optimizer-state-offload", "--optimizer-state-offload-chunk-size-mb",
              std::to_string(candidate.chunk_size_mb), "--optimizer-state-offload-fraction",
              fmt::format("{}", candidate.fraction)};
    case Policy::cpu_adam:
      return {"--optimizer-cpu-offload", "--optimizer-offload-fraction", fmt::format("{}", candidate.fraction),
              "--use-precision-aware-optimizer"};
  }
  return {};
}

std::string_view requirement_of(const Precision& precision, Policy policy) {
  const bool gathered_alone =
      precision.fp8 == Fp8Recipe::mxfp8 && precision.fp8_param_gather && !precision.reuses_grad_buffer();
  return gathered_alone ? "ebb" : requirement_of(policy);
}

std::string_view requirement_of(Policy policy) {
  switch (policy) {
    case Policy::resident:
      return "";
    case Policy::cpu_adam:
      return "main";
    case Policy::windowed:
      return "dev";
    case Policy::full_reload:  // on dev the same flag is an alias of windowed with chunk 0: another schedule
    case Policy::chunked:
      return "pr6544";
    case Policy::pipelined:
    case Policy::tidal:
      return "ebb";
  }
  return "";
}

bool accepts(Megatron megatron, Policy policy) {
  const std::string_view requirement = requirement_of(policy);
  if (requirement == "ebb") return false;
  if (requirement.empty() || requirement == "main" || megatron == Megatron::any) return true;
  return requirement == name_of(megatron);
}

std::string takers_of(Policy policy) {
  const std::string_view requirement = requirement_of(policy);
  if (requirement.empty()) return "every Megatron-LM";
  if (requirement == "main") return "Megatron-LM main, dev and pull request 6544";
  if (requirement == "dev") return "Megatron-LM dev (since #6244); main and pull request 6544 do not have the flags";
  if (requirement == "pr6544")
    return "Megatron-LM with pull request 6544 (open); main and dev do not take the flags so";
  return "Ebb's own runtime; no Megatron-LM has this schedule";
}

}  // namespace ebb
