#include "replay/life_exchange.hpp"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

namespace ebb::replay {

using nlohmann::json;

namespace {

// Numbers travel as their bits: equal must mean equal, nan included.
std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
float single(const json& x) { return std::bit_cast<float>(x.get<std::uint32_t>()); }
double twice(const json& x) { return std::bit_cast<double>(x.get<std::uint64_t>()); }

json steps_to_json(const std::vector<StepNumbers>& steps) {
  json all = json::array();
  for (const StepNumbers& step : steps) {
    all.push_back(
        {bits(step.loss), bits(step.sum_of_squares), step.digest, step.skipped ? 1 : 0, bits(step.loss_scale)});
  }
  return all;
}

std::vector<StepNumbers> steps_from_json(const json& all) {
  std::vector<StepNumbers> steps;
  for (const json& step : all) {
    steps.push_back({.loss = twice(step.at(0)),
                     .sum_of_squares = single(step.at(1)),
                     .digest = step.at(2),
                     .skipped = step.at(3) == 1,
                     .loss_scale = single(step.at(4))});
  }
  return steps;
}

json place_to_json(const TrainingPlace& place) {
  return {place.steps, place.adam_steps, place.seed, bits(place.loss_scale), place.good_steps, place.hysteresis};
}

TrainingPlace place_from_json(const json& place) {
  return {.steps = place.at(0),
          .adam_steps = place.at(1),
          .seed = place.at(2),
          .loss_scale = single(place.at(3)),
          .good_steps = place.at(4),
          .hysteresis = place.at(5)};
}

json memory_to_json(const MemoryFigures& memory) {
  json phases = json::array();
  for (const auto& [phase, bytes] : memory.live_by_phase) phases.push_back({static_cast<int>(phase), bytes.value});
  const auto value = [](std::optional<Bytes> bytes) { return bytes.value_or(Bytes{-1}).value; };
  return {memory.live_peak.value,
          phases,
          memory.pinned.value,
          memory.pageable.value,
          value(memory.torch_allocated_peak),
          value(memory.torch_reserved_peak),
          value(memory.driver_peak),
          value(memory.instruments)};
}

MemoryFigures memory_from_json(const json& all) {
  const auto value = [&](std::size_t i) {
    const auto bytes = all.at(i).get<std::int64_t>();
    return bytes < 0 ? std::nullopt : std::optional(Bytes{bytes});
  };
  MemoryFigures memory;
  memory.live_peak = {all.at(0).get<std::int64_t>()};
  for (const json& phase : all.at(1))
    memory.live_by_phase.emplace_back(static_cast<Phase>(phase.at(0).get<int>()), Bytes{phase.at(1)});
  memory.pinned = {all.at(2).get<std::int64_t>()};
  memory.pageable = {all.at(3).get<std::int64_t>()};
  memory.torch_allocated_peak = value(4);
  memory.torch_reserved_peak = value(5);
  memory.driver_peak = value(6);
  memory.instruments = value(7);
  return memory;
}

}  // namespace

std::vector<ProcessStepEnd> exchange_step_end(Processes& processes, const ProcessStepEnd& own) {
  std::vector<ProcessStepEnd> ends;
  const json mine{own.digest, own.skipped ? 1 : 0, own.agree ? 1 : 0};
  for (const std::string& text : processes.all_gather(mine.dump())) {
    const json end = json::parse(text);
    ends.push_back({end.at(0), end.at(1) == 1, end.at(2) == 1});
  }
  return ends;
}

std::string to_text(std::int64_t rank, const LifeNumbers& numbers) {
  json peaks = json::array();
  for (const PartPeak& peak : numbers.peaks)
    peaks.push_back({static_cast<int>(peak.part), peak.live.value, peak.planned.value});
  json checkpoints = json::array();
  for (const CheckpointFigures& figures : numbers.checkpoints) {
    checkpoints.push_back({figures.saved ? 1 : 0, figures.directory, figures.bytes.value, bits(figures.seconds),
                           bits(figures.storage_seconds)});
  }
  return json{{"rank", rank},
              {"steps", steps_to_json(numbers.steps)},
              {"place", place_to_json(numbers.place)},
              {"digests", {numbers.final_state, numbers.parameters, numbers.strays}},
              {"peaks", peaks},
              {"checkpoints", checkpoints},
              {"memory", memory_to_json(numbers.memory)}}
      .dump();
}

std::pair<std::int64_t, LifeNumbers> life_from_text(std::string_view text) {
  const json all = json::parse(text);
  LifeNumbers numbers;
  numbers.steps = steps_from_json(all.at("steps"));
  numbers.place = place_from_json(all.at("place"));
  numbers.final_state = all.at("digests").at(0);
  numbers.parameters = all.at("digests").at(1);
  numbers.strays = all.at("digests").at(2);
  for (const json& peak : all.at("peaks"))
    numbers.peaks.push_back({static_cast<LifePart>(peak.at(0).get<int>()), {peak.at(1)}, {peak.at(2)}});
  for (const json& figures : all.at("checkpoints")) {
    numbers.checkpoints.push_back(
        {figures.at(0) == 1, figures.at(1), {figures.at(2)}, twice(figures.at(3)), twice(figures.at(4))});
  }
  numbers.memory = memory_from_json(all.at("memory"));
  return {all.at("rank"), std::move(numbers)};
}

std::vector<LifeNumbers> gather_lives(Processes& processes, std::int64_t rank, LifeNumbers own) {
  const std::vector<std::string> texts = processes.gather(to_text(rank, own));
  std::vector<LifeNumbers> lives;
  if (processes.rank() != 0) {
    lives.push_back(std::move(own));
    return lives;
  }
  std::vector<std::pair<std::int64_t, LifeNumbers>> all;
  for (const std::string& text : texts) all.push_back(life_from_text(text));
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [of, numbers] : all) lives.push_back(std::move(numbers));
  return lives;
}

}  // namespace ebb::replay
