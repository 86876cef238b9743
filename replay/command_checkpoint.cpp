// `ebb-replay checkpoint PATH`: reads every byte of a checkpoint and says what is in it. Two checkpoints of one state
// have the same contents, whoever wrote them on however many ranks. Exit 2, with the file and the reason, where it is
// not whole.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/json_fields.hpp"
#include "models/text_output.hpp"
#include "replay/checkpoint/checkpoint.hpp"
#include "replay/commands.hpp"
#include "reports/table.hpp"

namespace ebb::replay::cli {

namespace {

struct SavedContent {
  const char* name;
  StateBits state;
  Dtype type;
};

std::vector<SavedContent> contents_of(const Precision& types) {
  std::vector<SavedContent> contents = {{"exp_avg", kExpAvg, types.exp_avg},
                                        {"exp_avg_sq", kExpAvgSq, types.exp_avg_sq}};
  if (types.master_bytes() > 0) contents.push_back({"master", kMaster, types.master});
  contents.push_back({"param", kParams, types.params});
  return contents;
}

std::string text_of(const checkpoint::Reader& reader) {
  const checkpoint::Description& what = reader.description();
  std::string text = fmt::format("{}\n  whole: every byte is what was written\n", reader.path());
  text +=
      fmt::format("  job {}, step {} ({} of Adam), written by {} {}, {} parameters\n", what.job, what.place.steps,
                  what.place.adam_steps, what.ranks, what.ranks == 1 ? "rank" : "ranks", reader.parameters().size());
  reports::Table table({{"  state", reports::Align::left}, {"type"}, {"content"}});
  for (const SavedContent& one : contents_of(what.precision))
    table.add_row({fmt::format("  {}", one.name), std::string(name_of(one.type)),
                   fmt::format("{:016x}", reader.content(one.state))});
  for (const std::string& line : table.lines()) text += line + "\n";
  return text;
}

std::string json_of(const checkpoint::Reader& reader) {
  const checkpoint::Description& what = reader.description();
  Json json = {{"path", reader.path()},
               {"job", what.job},
               {"ranks", what.ranks},
               {"step", what.place.steps},
               {"adam_steps", what.place.adam_steps},
               {"seed", fmt::format("{:016x}", what.place.seed)},
               {"loss_scale", what.place.loss_scale},
               {"parameters", reader.parameters().size()}};
  for (const SavedContent& one : contents_of(what.precision))
    json["content"][one.name] = fmt::format("{:016x}", reader.content(one.state));
  return dump(json) + "\n";
}

}  // namespace

int run_checkpoint(const CheckpointOptions& options) {
  const checkpoint::Reader reader(options.path);
  write_stdout(options.json ? json_of(reader) : text_of(reader));
  return 0;
}

}  // namespace ebb::replay::cli
