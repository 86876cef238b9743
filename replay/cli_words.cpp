#include "replay/cli_words.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <sstream>

#include "models/errors.hpp"
#include "models/nearest.hpp"
#include "models/quantity_text.hpp"

namespace ebb::replay::cli {

void add_text(CLI::App& command, const char* names, std::optional<std::string>& value, const char* help,
              const char* type) {
  command.add_option(names, value, help)->type_name(type);
}

void add_choice(CLI::App& command, const char* names, std::optional<std::string>& value, const char* help,
                const char* type, const std::vector<std::string>& words) {
  reports::limit_to(*command.add_option(names, value, help), type, words);
}

std::int64_t count(const std::optional<std::string>& text, const char* option, std::int64_t otherwise,
                   std::int64_t least, std::int64_t most) {
  if (!text) return otherwise;
  const std::int64_t value = parse_count(*text, {.file = option});
  if (value < least || value > most)
    throw InputError({.file = option}, fmt::format("{} is not in {} to {}", value, least, most));
  return value;
}

std::optional<std::string> path_of(const std::optional<std::string>& text, const char* option) {
  if (text && text->empty())
    throw InputError({.file = option}, "the name is empty", "name a directory; is a variable of the shell unset?");
  return text;
}

Device device_of(const std::optional<std::string>& word, Device otherwise) {
  if (!word) return otherwise;
  if (*word == "gpu") return Device::gpu;
  if (*word == "cpu") return Device::cpu;
  throw InputError({.file = "--device"}, fmt::format("unknown device \"{}\"", word->substr(0, 40)), "cpu or gpu");
}

std::vector<int> devices_of(const std::optional<std::string>& list) {
  std::vector<int> devices;
  if (!list) return devices;
  constexpr std::int64_t kMostDevices = 1024;
  std::istringstream words(*list);
  for (std::string word; std::getline(words, word, ',');)
    devices.push_back(static_cast<int>(count(word, "--devices", 0, 0, kMostDevices)));
  if (devices.empty()) throw InputError({.file = "--devices"}, "no device in it", "e.g. 0,1");
  return devices;
}

namespace {

constexpr std::array kStreams = {StreamKind::host, StreamKind::compute, StreamKind::h2d, StreamKind::d2h,
                                 StreamKind::comm};

}  // namespace

std::vector<std::string> stream_words() {
  std::vector<std::string> words;
  for (const StreamKind kind : kStreams) words.emplace_back(name_of(kind));
  return words;
}

std::optional<StreamKind> stream_of(const std::optional<std::string>& word) {
  if (!word) return std::nullopt;
  for (const StreamKind kind : kStreams)
    if (name_of(kind) == *word) return kind;
  throw InputError({.file = "--slow"}, fmt::format("unknown stream \"{}\"", word->substr(0, 40)),
                   did_you_mean(*word, stream_words(), "streams"));
}

void add_without(CLI::App& command, const char* flag, bool& on, const char* help) {
  command.add_flag_callback(
      flag, [&on] { on = false; }, help);
}

void add_loss_scale(CLI::App& command, Words& words) {
  command.add_flag("--loss-scale", words.loss_scale, "scale the loss as Megatron does for fp16");
  add_text(command, "--initial-loss-scale", words.initial_loss_scale, "... beginning with this power of two (2^32)",
           "S");
}

float spoiled_value(const std::string& word, const char* option) {
  if (word == "inf") return std::numeric_limits<float>::infinity();
  if (word == "-inf") return -std::numeric_limits<float>::infinity();
  if (word == "nan") return std::numeric_limits<float>::quiet_NaN();
  throw InputError({.file = option}, fmt::format("\"{}\" skips no step", word.substr(0, 40)), "inf, -inf or nan");
}

LossScaling loss_scaling_of(const Words& words) {
  constexpr std::int64_t kMostScale = std::int64_t{1} << 40;
  LossScaling scaling;
  scaling.on = words.loss_scale || words.initial_loss_scale.has_value();
  const auto initial = count(words.initial_loss_scale, "--initial-loss-scale",
                             static_cast<std::int64_t>(scaling.initial), 1, kMostScale);
  if ((initial & (initial - 1)) != 0)
    throw InputError({.file = "--initial-loss-scale"}, fmt::format("{} is no power of two", initial),
                     "with one scaling alone changes no bit, e.g. 65536");
  scaling.initial = static_cast<float>(initial);
  return scaling;
}

}  // namespace ebb::replay::cli
