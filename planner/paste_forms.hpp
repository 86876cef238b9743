// The settings of a candidate in the forms that people paste: Megatron-LM's command line and YAML, and the override
// keys of Megatron-Bridge, NeMo RL and verl. Not here: which Megatron has the settings (flags.hpp).
//
// All four name the fields of one dataclass, Megatron-Core's OptimizerConfig; Megatron-LM's arguments are these fields
// with dashes. Sources:
//   flags   Megatron-LM dev d48bd6be0a and pull request 6544 at c9eddcd3ae, megatron/training/arguments.py
//   yaml    Megatron-LM, tests/functional_tests/test_cases/*/*/model_config.yaml (MODEL_ARGS); --yaml-cfg reads a flat
//           namespace with underscores (megatron/training/yaml_arguments.py, load_yaml)
//   bridge  NVIDIA-NeMo/Megatron-Bridge, docs/megatron-lm-to-megatron-bridge.md (config groups, Hydra overrides) and
//           skills/perf-cpu-offloading/SKILL.md; NeMo RL: policy.megatron_cfg.optimizer of its Megatron policies
//   verl    verl-project/verl 0624152754, verl/utils/megatron/optimizer.py (init_megatron_optim_config copies
//           override_optimizer_config into OptimizerConfig) and verl/trainer/config/optim/megatron.yaml
#pragma once

#include <array>
#include <string>
#include <vector>

#include "models/policy.hpp"
#include "reports/answer.hpp"

namespace ebb {

/// The forms, in the order of paste_forms().
inline constexpr std::array kPasteForms = {"flags", "yaml", "bridge", "verl"};

/// `flags`: flags_of(candidate).
std::vector<reports::PasteForm> paste_forms(const Candidate& candidate, const std::vector<std::string>& flags);

}  // namespace ebb
