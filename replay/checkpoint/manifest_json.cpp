// The text of a manifest, and the way back.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/errors.hpp"
#include "models/json_fields.hpp"
#include "models/precision_json.hpp"
#include "replay/checkpoint/file.hpp"
#include "replay/checkpoint/manifest.hpp"

namespace ebb::replay::checkpoint {

namespace {

constexpr std::string_view kFormat = "ebb-checkpoint";
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostNumel = std::int64_t{1} << 56;  // bytes of any type still fit an int64 many times over
constexpr std::string_view kSealBegin = ",\n\"hash\":\"";
constexpr std::string_view kSealEnd = "\"}\n";
constexpr std::size_t kSealBytes = kSealBegin.size() + 32 + kSealEnd.size();

std::string hexadecimal(std::uint64_t value) { return fmt::format("{:016x}", value); }

std::uint64_t read_hexadecimal(const JsonValue& json) {
  const auto hash = parse_hash("0000000000000000" + json.text());
  if (!hash) json.reject("expected 16 hexadecimal digits");
  return hash->low;
}

Json place_json(const TrainingPlace& place) {
  return {{"steps", place.steps},           {"adam_steps", place.adam_steps}, {"seed", hexadecimal(place.seed)},
          {"loss_scale", place.loss_scale}, {"good_steps", place.good_steps}, {"hysteresis", place.hysteresis}};
}

float read_scale(const JsonValue& json) {
  const auto scale = static_cast<float>(json.number());
  if (!std::isfinite(scale)) json.reject("this is no finite fp32 number");
  return scale;
}

TrainingPlace read_place(const JsonValue& json) {
  constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();
  json.require_keys({"steps", "adam_steps", "seed", "loss_scale", "good_steps", "hysteresis"});
  TrainingPlace place;
  place.steps = json.at("steps").integer(0, kMost);
  place.adam_steps = json.at("adam_steps").integer(0, place.steps);
  place.seed = read_hexadecimal(json.at("seed"));
  place.loss_scale = read_scale(json.at("loss_scale"));
  place.good_steps = static_cast<int>(json.at("good_steps").integer(0, kMostInt));
  place.hysteresis = static_cast<int>(json.at("hysteresis").integer(-kMostInt, kMostInt));
  return place;
}

Json origin_json(const TrainingOrigin& origin) {
  const LossScaling& scaling = origin.scaling;
  return {{"seed", hexadecimal(origin.seed)},
          {"loss_scaling",
           {{"on", scaling.on},
            {"initial", scaling.initial},
            {"least", scaling.least},
            {"interval", scaling.interval},
            {"hysteresis", scaling.hysteresis}}}};
}

TrainingOrigin read_origin(const JsonValue& json) {
  constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();
  json.require_keys({"seed", "loss_scaling"});
  const JsonValue rule = json.at("loss_scaling");
  rule.require_keys({"on", "initial", "least", "interval", "hysteresis"});
  return {.seed = read_hexadecimal(json.at("seed")),
          .scaling = {.on = rule.at("on").boolean(),
                      .initial = read_scale(rule.at("initial")),
                      .least = read_scale(rule.at("least")),
                      .interval = static_cast<int>(rule.at("interval").integer(0, kMostInt)),
                      .hysteresis = static_cast<int>(rule.at("hysteresis").integer(0, kMostInt))}};
}

Json piece_json(const Piece& piece) {
  return {{"state", name_of_state(piece.state)},
          {"parameter", piece.parameter},
          {"offset", piece.offset.value},
          {"numel", piece.numel.value},
          {"type", name_of(piece.type)}};
}

StateBits read_state(const JsonValue& json) {
  for (const StateBits state : kSavedStates)
    if (name_of_state(state) == json.text()) return state;
  json.reject("an unknown state");
}

Piece read_piece(const JsonValue& json, const std::vector<Parameter>& parameters) {
  json.require_keys({"state", "parameter", "offset", "numel", "type"});
  Piece piece;
  piece.state = read_state(json.at("state"));
  piece.parameter = json.at("parameter").index(parameters.size());
  const std::int64_t numel = numel_of(parameters[piece.parameter]);
  piece.offset.value = json.at("offset").integer(0, numel);
  piece.numel.value = json.at("numel").integer(1, numel - piece.offset.value);
  piece.type = json.at("type").one_of<Dtype>(static_cast<int>(Dtype::fp8) + 1);
  return piece;
}

template <class Items, class ToJson>
std::string lines(const char* key, const Items& items, const ToJson& to) {
  std::string text = fmt::format("\"{}\":[", key);
  for (std::size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "\n" : ",\n") + to(items[i]);
  return text + "]";
}

std::string file_text(const DataFile& file) {
  std::string text =
      fmt::format("{{\"name\":{},\"bytes\":{},\"block\":{},", dump(file.name), file.bytes.value, file.block.value);
  text += lines("hashes", file.blocks, [](const Hash128& hash) { return fmt::format("\"{}\"", hash.text()); }) + ",\n";
  return text + lines("tensors", file.pieces, [](const Piece& piece) { return dump(piece_json(piece)); }) + "}";
}

DataFile read_file(const JsonValue& json, const std::vector<Parameter>& parameters) {
  json.require_keys({"name", "bytes", "block", "hashes", "tensors"});
  DataFile file;
  file.name = json.at("name").text();
  file.bytes.value = json.at("bytes").integer(0, kMost);
  file.block.value = json.at("block").integer(kAlignment, std::int64_t{1} << 30);
  if (file.block.value % kAlignment != 0) json.at("block").reject("this is no multiple of 4096");
  const JsonValue hashes = json.at("hashes");
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const auto hash = parse_hash(hashes[i].text());
    if (!hash) hashes[i].reject("expected 32 hexadecimal digits");
    file.blocks.push_back(*hash);
  }
  if (static_cast<std::int64_t>(file.blocks.size()) != ceil_div(file.bytes.value, file.block.value))
    hashes.reject("their number does not fit the file's size");
  const JsonValue tensors = json.at("tensors");
  for (std::size_t i = 0; i < tensors.size(); ++i) file.pieces.push_back(read_piece(tensors[i], parameters));
  return file;
}

Parameter read_parameter(const JsonValue& json) {
  json.require_keys({"name", "shape"});
  Parameter parameter;
  parameter.name = json.at("name").text();
  const JsonValue shape = json.at("shape");
  std::int64_t most = kMostNumel;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    parameter.shape.push_back(shape[i].integer(0, most));
    if (parameter.shape.back() > 0) most /= parameter.shape.back();
  }
  return parameter;
}

/// What lies before the seal.
void require_seal(std::string_view text, const std::string& file) {
  const char* cure = "take another checkpoint";
  if (text.size() < kSealBytes || text[0] != '{')
    throw InputError({file}, "this is no manifest of a checkpoint, or it is truncated", cure);
  const std::string_view body = text.substr(0, text.size() - kSealBytes);
  const std::string seal = fmt::format("{}{}{}", kSealBegin, hash_of(body).text(), kSealEnd);
  if (text.substr(body.size()) != seal)
    throw InputError({file}, "it is truncated or has been changed: its text and its hash disagree", cure);
}

}  // namespace

Hash128 identity(const Description& what) {
  return hash_of(dump(Json{{"job", what.job},
                           {"ranks", what.ranks},
                           {"place", place_json(what.place)},
                           {"origin", origin_json(what.origin)},
                           {"precision", precision_json(what.precision)}}));
}

std::string manifest_text(const Manifest& manifest) {
  std::string text = fmt::format(
      "{{\"format\":\"{}\",\"version\":{},\"job\":{},\"ranks\":{},\n\"place\":{},\n\"origin\":{},\n\"precision\":{},\n",
      kFormat, kVersion, dump(manifest.what.job), manifest.what.ranks, dump(place_json(manifest.what.place)),
      dump(origin_json(manifest.what.origin)), dump(precision_json(manifest.what.precision)));
  Json contents;
  for (const StateBits state : kSavedStates)
    contents[std::string(name_of_state(state))] = hexadecimal(manifest.contents[index_of(state)]);
  text += fmt::format("\"content\":{},\n", dump(contents));
  text += lines("parameters", manifest.parameters,
                [](const Parameter& parameter) {
                  return dump(Json{{"name", parameter.name}, {"shape", parameter.shape}});
                }) +
          ",\n";
  text += lines("files", manifest.files, file_text);
  return fmt::format("{}{}{}{}", text, kSealBegin, hash_of(text).text(), kSealEnd);
}

Manifest parse_manifest(std::string_view text, const std::string& file) {
  require_seal(text, file);
  const Json document = parse_json(text, file, "take another checkpoint");
  const JsonValue json(document, "", file);
  if (json.at("format").text() != kFormat) json.at("format").reject("this is no checkpoint of Ebb's");
  const std::int64_t version = json.at("version").integer(0, kMost);
  if (version != kVersion)
    json.at("version").reject(fmt::format("version {} of the format; this program reads {}", version, kVersion),
                              "use the Ebb that wrote it");
  json.require_keys(
      {"format", "version", "job", "ranks", "place", "origin", "precision", "content", "parameters", "files", "hash"});
  Manifest manifest;
  manifest.what.job = json.at("job").text();
  manifest.what.ranks = json.at("ranks").integer(1, std::int64_t{1} << 24);
  manifest.what.place = read_place(json.at("place"));
  manifest.what.origin = read_origin(json.at("origin"));
  manifest.what.precision = read_precision(json.at("precision"));
  for (const StateBits state : kSavedStates)
    manifest.contents[index_of(state)] =
        read_hexadecimal(json.at("content").at(std::string(name_of_state(state)).c_str()));
  const JsonValue parameters = json.at("parameters");
  for (std::size_t i = 0; i < parameters.size(); ++i) manifest.parameters.push_back(read_parameter(parameters[i]));
  const JsonValue files = json.at("files");
  for (std::size_t i = 0; i < files.size(); ++i) manifest.files.push_back(read_file(files[i], manifest.parameters));
  return manifest;
}

Manifest read_manifest(const std::string& path) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 31;
  return parse_manifest(read_small_file(path, kMostBytes), path);
}

}  // namespace ebb::replay::checkpoint
