#include "planner/set_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "models/library.hpp"
#include "models/model_yaml.hpp"
#include "models/quantity_text.hpp"
#include "models/text_file.hpp"
#include "models/units.hpp"

namespace ebb {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kClusterBlocks[] = {"gpu",   "host_link",    "topology", "host",
                                               "calls", "interconnect", "storage"};
/// Of a cluster's blocks: plain values, not figures with a source.
constexpr std::string_view kPlainKeys[] = {"name", "gpus_per_switch", "sockets", "nvlink_domain"};

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> split_path(std::string_view key) {
  std::vector<std::string> path;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('.', begin), key.size());
    path.emplace_back(key.substr(begin, end - begin));
    begin = end + 1;
  }
  return path;
}

void set_places(YamlNode& node, const Place& place) {
  node.place = place;
  for (YamlEntry& entry : node.entries) {
    entry.key_place = place;
    set_places(entry.value, place);
  }
}

YamlNode scalar(std::string text, const Place& place) {
  return {.kind = YamlNode::Kind::scalar, .text = std::move(text), .entries = {}, .place = place};
}

YamlNode* find(YamlNode& node, std::string_view key) {
  for (YamlEntry& entry : node.entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

YamlNode& find_or_add(YamlNode& map, const std::string& key, const Place& place) {
  if (YamlNode* known = find(map, key)) return *known;
  map.entries.push_back({key, place, {}});
  YamlNode& added = map.entries.back().value;
  added.kind = YamlNode::Kind::map;
  added.place = place;
  return added;
}

/// The file that `name` stands for, as a tree.
YamlNode named_file(Library kind, const std::string& name, const std::string& job_file, const Place& place) {
  const fs::path path = resolve(kind, name, fs::path(job_file).parent_path(), place);
  if (path.extension() == ".json") return parse_yaml(write_model(load_model(path)), path.string());
  YamlNode root = parse_yaml(read_text_file(path, kMostYamlBytes), path.string());
  if (root.kind == YamlNode::Kind::map && root.find("name") == nullptr)
    root.entries.push_back({"name", root.place, scalar(path.stem().string(), root.place)});
  return root;
}

/// A model or a cluster that the job only names.
void put_in_place(YamlNode& root, const std::string& key, const std::string& job_file) {
  YamlNode* node = find(root, key);
  if (node == nullptr || node->kind != YamlNode::Kind::scalar) return;
  *node = named_file(key == "model" ? Library::models : Library::clusters, node->text, job_file, node->place);
}

/// YAML's words for nothing.
bool is_null(std::string_view value) {
  constexpr std::string_view kNulls[] = {"~", "null", "Null", "NULL"};
  const std::size_t begin = value.find_first_not_of(" \t");
  const std::size_t end = value.find_last_not_of(" \t");
  return begin != std::string_view::npos && is_one_of(value.substr(begin, end - begin + 1), kNulls);
}

YamlNode value_of(const Setting& setting) {
  if (is_null(setting.value))
    throw InputError(setting.place(), "null sets nothing",
                     setting.path.front() == "offload" ? "write auto to leave it to Ebb" : "give a value");
  YamlNode value = parse_yaml(setting.value, setting.place().file);
  set_places(value, setting.place());
  return value;
}

bool is_figure(const std::vector<std::string>& path) {
  return path.size() == 3 && path[0] == "cluster" && is_one_of(path[1], kClusterBlocks) &&
         !is_one_of(path[2], kPlainKeys);
}

YamlNode figure(YamlNode value, const Place& place) {
  YamlNode node{.kind = YamlNode::Kind::map, .text = {}, .entries = {}, .place = place};
  node.entries.push_back({"value", place, std::move(value)});
  node.entries.push_back({"source", place, scalar(kSetSource, place)});
  return node;
}

void apply(const Setting& setting, const std::string& file, YamlNode& root) {
  const Place place = setting.place();
  const std::vector<std::string>& path = setting.path;
  if (path.size() > 1 && (path[0] == "model" || path[0] == "cluster")) put_in_place(root, path[0], file);
  YamlNode* node = &root;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (node->kind != YamlNode::Kind::map)
      throw InputError(place, fmt::format("\"{}\" is {}, not a mapping", path[i - 1], node->description()),
                       fmt::format("leave out .{} and what follows", path[i]));
    node = &find_or_add(*node, path[i], place);
  }
  YamlNode value = value_of(setting);
  // A figure may also be given whole: {value: ..., source: ...}.
  *node = is_figure(path) && value.find("value") == nullptr ? figure(std::move(value), place) : std::move(value);
}

BytesPerSecond rate_of(const YamlNode& figure) {
  const YamlNode* value = figure.find("value");
  return value == nullptr ? BytesPerSecond{0} : parse_bandwidth(value->text, value->place);
}

bool was_set(std::span<const Setting> settings, std::string_view link_key) {
  return std::any_of(settings.begin(), settings.end(), [&](const Setting& setting) {
    return setting.path == std::vector<std::string>{"cluster", "host_link", std::string(link_key)};
  });
}

void take_down(YamlNode& value, BytesPerSecond most) {
  if (value.kind == YamlNode::Kind::scalar && parse_bandwidth(value.text, value.place) > most)
    value.text = exact_text(most);
  for (YamlEntry& entry : value.entries) take_down(entry.value, most);
}

/// No more in both directions together than in each.
void take_down_both(std::span<const Setting> settings, YamlNode& root) {
  if (!was_set(settings, "h2d") && !was_set(settings, "d2h")) return;
  YamlNode* link = find(*find(root, "cluster"), "host_link");
  const YamlNode* h2d = find(*link, "h2d");
  const YamlNode* d2h = find(*link, "d2h");
  if (h2d == nullptr || d2h == nullptr) return;  // reading the job says so
  for (const char* key : {"both", "both_by_size"}) {
    YamlNode* both = find(*link, key);
    YamlNode* value = both == nullptr ? nullptr : find(*both, "value");
    if (value != nullptr && !was_set(settings, key)) take_down(*value, rate_of(*h2d) + rate_of(*d2h));
  }
}

}  // namespace

Setting parse_setting(const std::string& text) {
  const std::size_t equals = text.find('=');
  const Place place{"--set " + text.substr(0, 100)};
  if (equals == std::string::npos || equals == 0)
    throw InputError(place, "this is not KEY=VALUE", "write it like --set batch.sequence=16384");
  Setting setting{.path = split_path(text.substr(0, equals)), .value = text.substr(equals + 1), .text = text};
  if (setting.value.find_first_not_of(" \t") == std::string::npos)
    throw InputError(place, "there is no value", "write it like --set batch.sequence=16384");
  if (setting.path.size() > kMostYamlDepth / 2 || text.size() > 10'000) throw InputError(place, "this is too long");
  if (is_one_of("", std::vector<std::string_view>(setting.path.begin(), setting.path.end())))
    throw InputError(place, "a key of the path is empty", "write it like --set batch.sequence=16384");
  std::string& first = setting.path.front();
  if (first == "link") first = "host_link";
  if (setting.path.size() > 1 && first == "cluster" && setting.path[1] == "link") setting.path[1] = "host_link";
  if (is_one_of(first, kClusterBlocks)) setting.path.insert(setting.path.begin(), "cluster");
  return setting;
}

std::vector<Setting> parse_settings(std::span<const std::string> texts) {
  std::vector<Setting> settings;
  for (const std::string& text : texts) settings.push_back(parse_setting(text));
  return settings;
}

void apply_settings(std::span<const Setting> settings, const std::string& file, YamlNode& root) {
  if (root.kind != YamlNode::Kind::map) return;  // reading the job says so
  // A model or cluster that is replaced comes before what is changed in it.
  for (const bool whole : {true, false})
    for (const Setting& setting : settings)
      if ((setting.path.size() == 1) == whole) apply(setting, file, root);
  take_down_both(settings, root);
}

}  // namespace ebb
