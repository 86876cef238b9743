#include "replay/calibrate.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/cluster_write.hpp"
#include "models/cluster_yaml.hpp"
#include "models/errors.hpp"
#include "models/json_fields.hpp"
#include "models/library.hpp"
#include "models/quantity_text.hpp"
#include "models/text_file.hpp"
#include "models/text_output.hpp"
#include "replay/calibrate_figures.hpp"
#include "replay/calibrate_measure.hpp"
#include "replay/run_facts.hpp"
#include "replay/talk.hpp"
#include "reports/answer_head.hpp"

namespace ebb::replay {
namespace {

constexpr Bytes kMostRaw = 64_MiB;

CalibrationData data_of(const CalibrateOptions& options) {
  if (options.from) return read_calibration(read_text_file(*options.from, kMostRaw.value), options.from->string());
  return measure({.devices = options.devices,
                  .seconds = options.seconds,
                  .date = options.date.empty() ? run_date() : options.date,
                  .command = options.command,
                  .progress = remark});
}

std::vector<std::string> comments(const Setting& s, const std::string& base) {
  return {fmt::format("Calibrated {} by ebb-replay on {} {}, driver {}, CUDA {}{}{}.", s.date, s.gpus, s.gpu, s.driver,
                      s.cuda, s.nccl.empty() ? "" : ", NCCL ", s.nccl),
          fmt::format("Figures that no measurement here can give are those of {}.", base),
          fmt::format("Command: {}", s.command.empty() ? "not recorded" : s.command)};
}

std::string table_text(const Calibration& calibration, const std::string& base) {
  std::string text;
  std::size_t width = 0;
  for (const CalibratedFigure& figure : calibration.figures) width = std::max(width, figure.name.size());
  text += fmt::format("{:{}}  {:>12}  {:>12}  residual median, worst\n", "figure", width, "calibrated", base);
  for (const CalibratedFigure& figure : calibration.figures) {
    const std::string residual = figure.residual ? fmt::format("{:5.1f} % {:5.1f} %", 100 * figure.residual->median,
                                                               100 * figure.residual->worst)
                                                 : "";
    if (figure.value.size() <= 12) {
      text += fmt::format("{:{}}  {:>12}  {:>12}  {}\n", figure.name, width, figure.value, figure.base, residual);
    } else {
      text += fmt::format("{:{}}  {}  {}\n{:{}}  ({})\n", figure.name, width, figure.value, residual, "", width,
                          figure.base);
    }
  }
  for (const std::string& remark : calibration.remarks) text += fmt::format("note: {}\n", remark);
  return text;
}

std::string json_text(const Calibration& calibration, const CalibrateOptions& options, const std::string& base) {
  Json json = reports::answer_head("calibrate");
  json["cluster"] = options.output.string();
  json["base"] = base;
  json["figures"] = Json::array();
  for (const CalibratedFigure& figure : calibration.figures) {
    Json row;
    row["name"] = figure.name;
    row["value"] = figure.value;
    row["base"] = figure.base;
    if (figure.residual) {
      row["residual_median"] = figure.residual->median;
      row["residual_worst"] = figure.residual->worst;
    }
    json["figures"].push_back(row);
  }
  json["remarks"] = calibration.remarks;
  return dump(json) + "\n";
}

}  // namespace

std::string base_cluster(const std::string& gpu, std::int64_t gpus) {
  // As many a host at best; one GPU or several must agree; then the nearest number.
  struct Distance {
    bool other_kind;
    std::int64_t gpus;
    auto operator<=>(const Distance&) const = default;
  };
  std::string best;
  Distance least{};
  for (const std::string& name : library_names(Library::clusters)) {
    const Cluster cluster = load_cluster(library_path(Library::clusters, name));
    if (cluster.gpu.name != gpu) continue;
    const Distance distance{(cluster.gpus_per_host > 1) != (gpus > 1), std::abs(cluster.gpus_per_host - gpus)};
    if (!best.empty() && distance >= least) continue;
    best = name;
    least = distance;
  }
  if (!best.empty()) return best;
  return gpus == 1 ? "h200-1gpu" : "hgx-h200";
}

namespace {

Cluster base_of(const std::string& name) {
  return load_cluster(resolve(Library::clusters, name, std::filesystem::current_path(), {"--base", 0, 0}));
}

}  // namespace

int run_calibrate(const CalibrateOptions& options) {
  if (options.output.empty()) throw InputError({}, "no file to write the cluster to", "add -o cluster.yaml");
  if (!(options.seconds > 0)) throw InputError({}, "--seconds is not above 0", "use 60 or so");
  if (options.base) (void)base_of(*options.base);  // a minute before it would be found out
  const CalibrationData data = data_of(options);
  // First of all what a minute was spent on.
  if (options.raw) write_text_file(options.raw->string(), calibration_lines(data));
  const std::string base_name = options.base.value_or(base_cluster(data.setting.gpu, data.setting.gpus));
  const Cluster base = base_of(base_name);
  const Calibration calibration = calibrated(data, base, options.output.stem().string());
  const std::string text = cluster_file_text(calibration.cluster, comments(data.setting, base_name));
  // What is written must be readable: the reader checks what must hold between figures.
  (void)read_cluster(parse_yaml(text, options.output.string()), calibration.cluster.name);
  write_text_file(options.output.string(), text);
  write_stdout(options.json ? json_text(calibration, options, base_name) : table_text(calibration, base_name));
  return 0;
}

}  // namespace ebb::replay
