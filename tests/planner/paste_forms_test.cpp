// The forms that people paste hold the same settings: every flag with its value once, under the key that the framework
// has for the field of Megatron-Core's OptimizerConfig.
#include "planner/paste_forms.hpp"

#include "planner/flags.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

std::vector<reports::PasteForm> forms_of(const Candidate& candidate) {
  return paste_forms(candidate, flags_of(candidate));
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("windowed in four forms") {
  const auto forms = forms_of({.policy = Policy::windowed, .chunk_size_mb = 128, .fraction = 0.8});
  REQUIRE(forms.size() == 4);
  CHECK(forms[0].format == "flags");
  CHECK(forms[0].lines == Lines{"--chunked-optimizer-state-offload --optimizer-state-offload-chunk-size-mb 128 "
                                "--optimizer-state-offload-fraction 0.8"});
  CHECK(forms[1].format == "yaml");
  CHECK(forms[1].lines == Lines{"MODEL_ARGS:", "  --chunked-optimizer-state-offload: true",
                                "  --optimizer-state-offload-chunk-size-mb: 128",
                                "  --optimizer-state-offload-fraction: 0.8"});
  CHECK(forms[2].format == "bridge");
  CHECK(forms[2].lines == Lines{"optimizer.chunked_optimizer_state_offload=true",
                                "optimizer.optimizer_state_offload_chunk_size_mb=128",
                                "optimizer.optimizer_state_offload_fraction=0.8"});
  CHECK(forms[3].format == "verl");
  const std::string prefix = "+actor_rollout_ref.actor.optim.override_optimizer_config.";
  CHECK(forms[3].lines == Lines{prefix + "chunked_optimizer_state_offload=true",
                                prefix + "optimizer_state_offload_chunk_size_mb=128",
                                prefix + "optimizer_state_offload_fraction=0.8"});
}

TEST_CASE("a framework's own training loop is warned of where Megatron's takes part, and only there") {
  const auto warned = [](const Candidate& candidate) {
    const std::vector<reports::PasteForm> forms = forms_of(candidate);
    for (const std::string& note : forms[2].notes)
      if (note.find("training loop") != std::string::npos) return true;
    return false;
  };
  CHECK(warned({.policy = Policy::windowed, .chunk_size_mb = 64}));
  CHECK(warned({.policy = Policy::full_reload}));
  CHECK_FALSE(warned({.policy = Policy::chunked, .chunk_numel = {1'000'000'000}}));
  CHECK_FALSE(warned({.policy = Policy::cpu_adam, .fraction = 0.5}));
}

TEST_CASE("where there is nothing to set or no key, the forms say so and hold no line") {
  for (const Policy policy : {Policy::resident, Policy::pipelined})
    for (const reports::PasteForm& form :
         forms_of({.policy = policy, .chunk_numel = {policy == Policy::pipelined ? 1 << 22 : 0}, .slots = 2})) {
      CHECK(form.lines.empty());
      REQUIRE(form.notes.size() == 1);
      CHECK((form.notes[0].find("Ebb's own runtime") != std::string::npos) == (policy == Policy::pipelined));
    }
}

TEST_CASE("every setting of every form is a known argument with its value") {
  const Candidate candidate{.policy = Policy::cpu_adam, .fraction = 0.65};
  for (const reports::PasteForm& form : forms_of(candidate)) {
    std::string all;
    for (const std::string& line : form.lines) all += line + "\n";
    const bool dashes = form.format == "flags" || form.format == "yaml";
    CHECK(all.find(dashes ? "optimizer-cpu-offload" : "optimizer_cpu_offload") != std::string::npos);
    CHECK(all.find("0.65") != std::string::npos);
    CHECK(all.find(dashes ? "use-precision-aware-optimizer" : "use_precision_aware_optimizer") != std::string::npos);
  }
}

TEST_CASE("the forms are those that the command line offers, in its order") {
  const std::vector<reports::PasteForm> forms = forms_of({.policy = Policy::chunked, .chunk_numel = Numel{1'000'000}});
  REQUIRE(forms.size() == kPasteForms.size());
  for (std::size_t i = 0; i < forms.size(); ++i) CHECK(forms[i].format == kPasteForms[i]);
}
