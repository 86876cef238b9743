// What a candidate looks like on Megatron-LM's command line, and which Megatron takes it. Not here: for which jobs
// (rules.hpp), and whether the candidate fits (search.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/errors.hpp"
#include "models/policy.hpp"
#include "models/precision.hpp"

namespace ebb {

/// Which Megatron-LM the user runs; decides which flags exist.
enum class Megatron : std::uint8_t { any, main, dev, pr6544 };
std::string_view name_of(Megatron megatron);
/// InputError at `place` for another word.
Megatron parse_megatron(std::string_view word, const Place& place);

/// Argument tokens to paste. Empty for `resident` (no flag) and for Ebb's own schedules (Megatron has none).
std::vector<std::string> flags_of(const Candidate& candidate);

/// The least that the policy needs: "" (any Megatron), "main" (main and what branches off it), "dev", "pr6544", or
/// "ebb" (Ebb's own runtime).
std::string_view requirement_of(Policy policy);
/// ... in these types: "ebb" also where MXFP8 weights are gathered without the gradient buffer. Transformer Engine
/// cannot place an MXFP8 tensor into a parameter buffer (main d0067d0da6,
/// transformer_engine/pytorch/tensor/utils.py:89).
std::string_view requirement_of(const Precision& precision, Policy policy);

/// Whether `megatron` has the policy's flags; `any` has those of every Megatron.
bool accepts(Megatron megatron, Policy policy);

/// "main, dev and pull request 6544" and the like: who takes the flags, for the sentence below them.
std::string takers_of(Policy policy);

}  // namespace ebb
