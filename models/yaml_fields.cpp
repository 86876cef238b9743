#include "models/yaml_fields.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"

namespace ebb {

YamlFields::YamlFields(const YamlNode& node, std::string path, std::vector<std::string_view> known)
    : node_(&node), path_(std::move(path)), known_(std::move(known)) {
  if (node.kind != YamlNode::Kind::map) {
    const std::string what = path_.empty() ? "this file" : fmt::format("\"{}\"", path_);
    throw InputError(node.place, fmt::format("{} must be a mapping, found {}", what, node.description()),
                     fmt::format("write `key: value` with keys like {}", known_.front()));
  }
  for (const YamlEntry& entry : node.entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    throw InputError(entry.key_place, fmt::format("unknown key \"{}\"", full_name(entry.key.substr(0, 60))),
                     did_you_mean(entry.key, known_, "keys"));
  }
}

const YamlNode* YamlFields::find(std::string_view key) const {
  EBB_ASSERT(std::find(known_.begin(), known_.end(), key) != known_.end());
  return node_->find(key);
}

const YamlNode& YamlFields::require(std::string_view key) const {
  const YamlNode* node = find(key);
  if (node == nullptr)
    throw InputError(node_->place, fmt::format("the key \"{}\" is missing", full_name(key)), "add it");
  return *node;
}

std::optional<YamlFields> YamlFields::nested(std::string_view key, std::vector<std::string_view> known) const {
  const YamlNode* node = find(key);
  if (node == nullptr) return std::nullopt;
  return YamlFields(*node, full_name(key), std::move(known));
}

const Place& YamlFields::place_of(std::string_view key) const {
  const YamlNode* node = find(key);
  return node == nullptr ? node_->place : node->place;
}

std::string YamlFields::full_name(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const std::string& YamlFields::scalar(std::string_view key, const YamlNode& node) const {
  if (node.kind != YamlNode::Kind::scalar)
    throw InputError(node.place,
                     fmt::format("\"{}\" must be a single value, found {}", full_name(key), node.description()),
                     "write one value after the colon");
  return node.text;
}

void YamlFields::text(std::string_view key, std::string& out) const {
  if (const YamlNode* node = find(key)) out = scalar(key, *node);
}

void YamlFields::boolean(std::string_view key, bool& out) const {
  static constexpr Choice<bool> kBooleans[] = {{"true", true}, {"false", false}};
  choice<bool>(key, out, kBooleans);
}

void YamlFields::count(std::string_view key, std::int64_t& out, std::int64_t least, std::int64_t most) const {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  const std::string& text = scalar(key, *node);
  // A negative count is out of range like any other, not a malformed number.
  const bool negative = text.size() > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9';
  const std::int64_t value = negative ? -1 : parse_count(text, node->place);
  if (value < least || value > most)
    throw InputError(node->place, fmt::format("\"{}\" is {}", full_name(key), text.substr(0, 40)),
                     fmt::format("use a whole number from {} to {}", least, most));
  out = value;
}

void YamlFields::words(std::string_view key, std::vector<std::string>& out) const {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  if (node->kind != YamlNode::Kind::sequence)
    throw InputError(node->place, fmt::format("\"{}\" must be a list, found {}", full_name(key), node->description()),
                     "write it like [first, second]");
  out.clear();
  for (const YamlEntry& entry : node->entries) out.push_back(scalar(key, entry.value));
}

void YamlFields::reject_choice(std::string_view key, const YamlNode& node,
                               const std::vector<std::string_view>& names) const {
  throw InputError(node.place, fmt::format("\"{}\" cannot be {}", full_name(key), node.description()),
                   did_you_mean(node.text, names, "values"));
}

}  // namespace ebb
