// What schemas are put together from: one call a key, with its description. Internal to those who write schemas.
//
// YAML has no quantities: `130GiB` is a string there and `64` a number. The kinds for YAML files take both, as the
// reader does; those for JSON documents take what Ebb writes.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/yaml_fields.hpp"

namespace ebb::schema {

/// Keys keep their order, so that what is printed is always the same bytes.
using Json = nlohmann::ordered_json;

enum class Presence : std::uint8_t { optional, required };
using enum Presence;

struct Field {
  std::string key;
  Json schema;
  Presence presence = optional;
};

/// An object with these keys and no others.
Json object(std::string_view description, const std::vector<Field>& fields);
/// An object of any keys.
Json mapping(std::string_view description, Json values);
Json list(std::string_view description, Json items);
Json fixed_list(std::string_view description, const std::vector<Json>& items);
Json one_of_words(std::string_view description, const std::vector<std::string_view>& words);
Json constant(Json value);
Json boolean(std::string_view description);
Json any_of(std::string_view description, const std::vector<Json>& schemas);
/// ... or null, where there is no such value.
Json nullable(Json schema);

template <class Choices>
Json choice(std::string_view description, const Choices& choices) {
  std::vector<std::string_view> words;
  for (const auto& [word, value] : choices) words.push_back(word);
  return one_of_words(description, words);
}

/// The names of Enum's first `count` values.
template <class Enum>
Json names(std::string_view description, int count) {
  std::vector<std::string_view> words;
  for (int i = 0; i < count; ++i) words.push_back(name_of(static_cast<Enum>(i)));
  return one_of_words(description, words);
}

// Of YAML files:
inline constexpr std::int64_t kMostCount = 1'000'000'000;
Json yaml_text(std::string_view description);
Json yaml_count(std::string_view description, std::int64_t least = 1, std::int64_t most = kMostCount);
Json yaml_ratio(std::string_view description, double least, double most);
Json yaml_bytes(std::string_view description);
Json yaml_numel(std::string_view description);
Json yaml_rate(std::string_view description);
Json yaml_flops(std::string_view description);
Json yaml_seconds(std::string_view description);
/// ... or `auto`.
Json yaml_or_auto(Json schema);
/// What a byte count looks like, as a key.
std::string bytes_pattern();

// Of JSON documents:
inline constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
Json text(std::string_view description);
Json integer(std::string_view description, std::int64_t least = 0, std::int64_t most = kMost);
Json number(std::string_view description);

/// A whole document: `schema` with its dialect, name and version in front.
std::string document(std::string_view name, int version, std::string_view title, const Json& schema);

// Schemas that others hold.
Json model_schema();
Json cluster_schema();
Json candidate_schema();

/// What a figure of a cluster's block means, e.g. of "gpu" and "memory".
std::string_view figure_description(std::string_view block, std::string_view key);

// One a file.
std::string job_document();
std::string model_document();
std::string cluster_document();
std::string plan_document();
std::string timeline_document();

}  // namespace ebb::schema
