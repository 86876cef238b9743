#include "planner/paste_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/flags.hpp"

namespace ebb {

namespace {

/// A field of OptimizerConfig.
struct Setting {
  std::string argument;              // "--optimizer-offload-fraction"
  std::optional<std::string> value;  // none: a switch

  std::string field() const {
    std::string name = argument.substr(2);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
  }
  std::string value_text() const { return value.value_or("true"); }
};

std::vector<Setting> settings_of(const std::vector<std::string>& flags) {
  std::vector<Setting> settings;
  for (const std::string& token : flags) {
    if (token.rfind("--", 0) == 0)
      settings.push_back({token, std::nullopt});
    else
      settings.back().value = token;
  }
  return settings;
}

constexpr std::string_view kNothing = "nothing to set: all optimizer state stays on the device";
constexpr std::string_view kNoKeys = "no framework has keys for it: this schedule runs on Ebb's own runtime";

/// What a framework with a training loop of its own must see to. Megatron-LM's train_step calls the offloader between
/// steps (full-reload: offload_states; windowed: offload_optimizer_state_for_forward, which takes the masters away);
/// `chunked` moves everything inside the optimizer step, and cpu-adam inside its own optimizer.
std::string loop_note(Policy policy) {
  if (policy != Policy::full_reload && policy != Policy::windowed) return "";
  return fmt::format(
      "Megatron-LM's own training loop calls the offloader between steps; a loop that does not leaves {} on the device",
      policy == Policy::full_reload ? "all state" : "the master weights");
}

std::string core_note(Policy policy) {
  const std::string_view requirement = requirement_of(policy);
  if (requirement == "pr6544") return "needs a Megatron-Core with pull request 6544 below it";
  if (requirement == "dev") return "needs a Megatron-Core of the dev branch (#6244) below it";
  return "";
}

/// verl 0624152754 sets these for bf16 whatever Megatron's defaults are.
constexpr std::string_view kVerlTypes =
    "verl trains bf16 with bf16 gradients, bf16 moments and the precision-aware optimizer unless overridden: the job's "
    "precision should say the same";

void add_note(reports::PasteForm& form, const std::string& note) {
  if (!note.empty()) form.notes.push_back(note);
}

std::string joined(const std::vector<std::string>& flags) {
  std::string line;
  for (const std::string& token : flags) line.append(line.empty() ? "" : " ").append(token);
  return line;
}

reports::PasteForm yaml_form(const std::vector<Setting>& settings) {
  reports::PasteForm form{"yaml", {}, {}};
  form.lines.emplace_back("MODEL_ARGS:");
  for (const Setting& setting : settings)
    form.lines.push_back(fmt::format("  {}: {}", setting.argument, setting.value_text()));
  form.notes.emplace_back("a file for --yaml-cfg has the same keys at its top level, with underscores and no dashes");
  return form;
}

reports::PasteForm override_form(std::string name, const std::vector<Setting>& settings, std::string_view prefix) {
  reports::PasteForm form{std::move(name), {}, {}};
  for (const Setting& setting : settings)
    form.lines.push_back(fmt::format("{}{}={}", prefix, setting.field(), setting.value_text()));
  return form;
}

}  // namespace

std::vector<reports::PasteForm> paste_forms(const Candidate& candidate, const std::vector<std::string>& flags) {
  const Policy policy = candidate.policy;
  const std::vector<Setting> settings = settings_of(flags);
  if (settings.empty()) {
    const std::string note(requirement_of(policy) == "ebb" ? kNoKeys : kNothing);
    return {{"flags", {}, {note}}, {"yaml", {}, {note}}, {"bridge", {}, {note}}, {"verl", {}, {note}}};
  }
  reports::PasteForm bridge = override_form("bridge", settings, "optimizer.");
  bridge.notes.emplace_back("NeMo RL takes the same fields behind policy.megatron_cfg.optimizer.");
  reports::PasteForm verl =
      override_form("verl", settings, "+actor_rollout_ref.actor.optim.override_optimizer_config.");
  verl.notes.emplace_back("supervised fine-tuning takes them behind +optim.override_optimizer_config.");
  verl.notes.emplace_back(kVerlTypes);
  for (reports::PasteForm* form : {&bridge, &verl}) {
    add_note(*form, core_note(policy));
    add_note(*form, loop_note(policy));
  }
  return {{"flags", {joined(flags)}, {}}, yaml_form(settings), std::move(bridge), std::move(verl)};
}

}  // namespace ebb
