// Policy: how optimizer state moves; Candidate: one policy with its parameters (what search tries).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "models/units.hpp"

namespace ebb {

/// One lowering each (planner/lower_*.cpp).
enum class Policy : std::uint8_t { resident, full_reload, chunked, windowed, cpu_adam, pipelined, tidal };

inline constexpr std::array kPolicies = {Policy::resident, Policy::full_reload, Policy::chunked, Policy::windowed,
                                         Policy::cpu_adam, Policy::pipelined,   Policy::tidal};

constexpr std::string_view name_of(Policy policy) {
  switch (policy) {
    case Policy::resident:
      return "resident";
    case Policy::full_reload:
      return "full-reload";
    case Policy::chunked:
      return "chunked";
    case Policy::windowed:
      return "windowed";
    case Policy::cpu_adam:
      return "cpu-adam";
    case Policy::pipelined:
      return "pipelined";
    case Policy::tidal:
      return "tidal";
  }
  return "";
}

/// A policy and the parameters it uses; the others stay at their neutral value.
struct Candidate {
  Policy policy = Policy::resident;
  Numel chunk_numel{0};            // chunked: N; pipelined, tidal: exact elements per piece
  std::int64_t chunk_size_mb = 0;  // windowed: MiB of moments per chunk; 0: one window
  double fraction = 1.0;           // windowed, cpu-adam: part of the state that moves, 0 < f <= 1
  int slots = 0;                   // pipelined: device slots
  Bytes cap{0};  // tidal: live device bytes stay below; 0: what forward and backward take without state

  constexpr auto operator<=>(const Candidate&) const = default;
};

/// Pieces of exactly chunk_numel elements (but for the last), whatever shard they belong to.
constexpr bool cuts_elements(Policy policy) { return policy == Policy::pipelined || policy == Policy::tidal; }
constexpr bool uses_chunk_numel(Policy policy) { return policy == Policy::chunked || cuts_elements(policy); }

}  // namespace ebb
