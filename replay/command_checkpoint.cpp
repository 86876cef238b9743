#include "replay/command_checkpoint.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/json_fields.hpp"
#include "models/quantity_text.hpp"
#include "models/text_output.hpp"
#include "replay/checkpoint/checkpoint.hpp"
#include "reports/answer_head.hpp"

namespace ebb::replay {

namespace {

constexpr std::pair<StateBits, const char*> kStates[] = {
    {kExpAvg, "exp_avg"}, {kExpAvgSq, "exp_avg_sq"}, {kMaster, "master"}, {kParams, "param"}};

Numel elements_of(const checkpoint::Reader& reader) {
  Numel all{0};
  for (const checkpoint::Parameter& parameter : reader.parameters()) {
    Numel numel{1};
    for (const std::int64_t extent : parameter.shape) numel.value *= extent;
    all += numel;
  }
  return all;
}

std::string to_text(const checkpoint::Reader& reader, const CheckpointOptions& options) {
  const checkpoint::Description& what = reader.description();
  std::string text =
      fmt::format("{}\n  job        {}\n  step       {} ({} of Adam), loss scale {}\n", reader.path(), what.job,
                  what.place.steps, what.place.adam_steps, static_cast<double>(what.place.loss_scale));
  text += fmt::format("  ranks      {}\n  parameters {}, {} elements\n  data       {}\n", what.ranks,
                      reader.parameters().size(), format_numel(elements_of(reader)), format_bytes(reader.bytes()));
  for (const auto& [state, name] : kStates) {
    const std::optional<Dtype> type = reader.type(state);
    text += type ? fmt::format("  {:<10} {}, content {:016x}\n", name, name_of(*type), reader.content(state))
                 : fmt::format("  {:<10} none\n", name);
  }
  return text + (options.hashes ? "  whole      every byte is as it was saved\n"
                                : "  whole      by sizes and headers; without --no-hashes by every byte\n");
}

std::string to_json(const checkpoint::Reader& reader, const CheckpointOptions& options) {
  const checkpoint::Description& what = reader.description();
  Json json = reports::answer_head("checkpoint");
  json.update({{"checkpoint", reader.path()},
               {"job", what.job},
               {"step", what.place.steps},
               {"adam_steps", what.place.adam_steps},
               {"loss_scale", what.place.loss_scale},
               {"ranks", what.ranks},
               {"bytes", reader.bytes().value},
               {"elements", elements_of(reader).value},
               {"hashes_checked", options.hashes}});
  for (const auto& [state, name] : kStates)
    if (const std::optional<Dtype> type = reader.type(state))
      json["states"][name] = {{"type", name_of(*type)}, {"content", fmt::format("{:016x}", reader.content(state))}};
  json["parameters"] = Json::array();
  for (const checkpoint::Parameter& parameter : reader.parameters())
    json["parameters"].push_back({{"name", parameter.name}, {"shape", parameter.shape}});
  return dump(json) + "\n";
}

}  // namespace

int run_checkpoint(const CheckpointOptions& options) {
  const checkpoint::Reader reader(options.path, options.hashes);
  write_stdout(options.json ? to_json(reader, options) : to_text(reader, options));
  return 0;
}

}  // namespace ebb::replay
