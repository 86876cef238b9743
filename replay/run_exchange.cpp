#include "replay/run_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "models/errors.hpp"

namespace ebb::replay {

using nlohmann::json;

std::vector<std::int64_t> exchange_ranks(Processes& processes, std::int64_t own) {
  std::vector<std::int64_t> ranks;
  for (const std::string& text : processes.all_gather(json(own).dump())) ranks.push_back(json::parse(text));
  std::sort(ranks.begin(), ranks.end());
  const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
  if (twice != ranks.end()) {
    throw InputError({}, fmt::format("two processes replay rank {}", *twice),
                     "start one process for each plan of the file, and on several hosts give each its own file");
  }
  return ranks;
}

NcclIds exchange_ids(Processes& processes, const NcclIds& own) {
  json mine = json::array();
  for (const auto& [group, id] : own) mine.push_back({group.first, group.stride, group.members, id.bytes});
  NcclIds ids;
  for (const std::string& text : processes.all_gather(mine.dump())) {
    for (const json& entry : json::parse(text)) {
      const CommGroup group{entry.at(0), entry.at(1), entry.at(2)};
      entry.at(3).get_to(ids[group].bytes);
    }
  }
  return ids;
}

std::vector<std::vector<Ticks>> exchange_steps(Processes& processes, const std::vector<Ticks>& own) {
  json mine = json::array();
  for (const Ticks step : own) mine.push_back(step.value);
  std::vector<std::vector<Ticks>> all;
  for (const std::string& text : processes.all_gather(mine.dump())) {
    std::vector<Ticks>& steps = all.emplace_back();
    for (const json& step : json::parse(text)) steps.push_back({step.get<std::int64_t>()});
  }
  return all;
}

// Numbers travel as their bits: equal must mean equal.
std::string to_text(const RankRun& run) {
  json numbers = json::array();
  for (const StepNumbers& step : run.numbers.steps) {
    numbers.push_back(
        {std::bit_cast<std::uint64_t>(step.loss), std::bit_cast<std::uint32_t>(step.sum_of_squares), step.digest});
  }
  TimelineFile file;
  file.source = TimelineSource::measured;
  file.plan_digest = "0000000000000000";  // the file is only a way for one rank's timeline
  file.ranks.push_back(run.timeline);
  return json{{"numbers", numbers},
              {"final_state", run.numbers.final_state},
              {"peak_live", run.numbers.peak_live.value},
              {"timeline", to_json(file)}}
      .dump();
}

RankRun rank_run_from_text(std::string_view text) {
  const json all = json::parse(text);
  RankRun run;
  for (const json& step : all.at("numbers")) {
    run.numbers.steps.push_back({.loss = std::bit_cast<double>(step.at(0).get<std::uint64_t>()),
                                 .sum_of_squares = std::bit_cast<float>(step.at(1).get<std::uint32_t>()),
                                 .digest = step.at(2).get<std::uint64_t>()});
  }
  run.numbers.final_state = all.at("final_state").get<std::uint64_t>();
  run.numbers.peak_live = {all.at("peak_live").get<std::int64_t>()};
  TimelineFile file = timeline_file_from_json(all.at("timeline").get<std::string>(), "another process");
  EBB_ASSERT(file.ranks.size() == 1);
  run.timeline = std::move(file.ranks[0]);
  return run;
}

std::vector<RankRun> gather_runs(Processes& processes, RankRun own) {
  const std::vector<std::string> texts = processes.gather(to_text(own));
  std::vector<RankRun> runs;
  if (processes.rank() != 0) {
    runs.push_back(std::move(own));
    return runs;
  }
  for (const std::string& text : texts) runs.push_back(rank_run_from_text(text));
  std::sort(runs.begin(), runs.end(),
            [](const RankRun& a, const RankRun& b) { return a.timeline.rank < b.timeline.rank; });
  return runs;
}

}  // namespace ebb::replay
