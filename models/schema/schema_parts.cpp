#include "models/schema/schema_parts.hpp"

#include <fmt/format.h>

namespace ebb::schema {

namespace {

/// A number as models/quantity_text.hpp reads it, in front of a unit or nothing.
constexpr std::string_view kNumber = "[0-9.][0-9._]*([eE][-+]?[0-9]+)?";

std::string pattern(std::string_view units) { return fmt::format("^ *{} *({})? *$", kNumber, units); }

Json described(std::string_view description) {
  Json schema;
  if (!description.empty()) schema["description"] = description;
  return schema;
}

Json quantity(std::string_view description, std::string_view units, std::string_view examples) {
  Json schema = described(fmt::format("{} ({})", description, examples));
  schema["type"] = {"number", "string"};
  schema["minimum"] = 0;
  schema["pattern"] = pattern(units);
  return schema;
}

}  // namespace

Json object(std::string_view description, const std::vector<Field>& fields) {
  Json schema = described(description);
  schema["type"] = "object";
  schema["additionalProperties"] = false;
  Json needed = Json::array();
  for (const Field& field : fields)
    if (field.presence == required) needed.push_back(field.key);
  if (!needed.empty()) schema["required"] = needed;
  schema["properties"] = Json::object();
  for (const Field& field : fields) schema["properties"][field.key] = field.schema;
  return schema;
}

Json mapping(std::string_view description, Json values) {
  Json schema = described(description);
  schema["type"] = "object";
  schema["additionalProperties"] = std::move(values);
  return schema;
}

Json list(std::string_view description, Json items) {
  Json schema = described(description);
  schema["type"] = "array";
  schema["items"] = std::move(items);
  return schema;
}

Json fixed_list(std::string_view description, const std::vector<Json>& items) {
  Json schema = described(description);
  schema["type"] = "array";
  schema["items"] = items;
  schema["minItems"] = items.size();
  schema["maxItems"] = items.size();
  return schema;
}

Json one_of_words(std::string_view description, const std::vector<std::string_view>& words) {
  Json schema = described(description);
  schema["enum"] = words;
  return schema;
}

Json constant(Json value) { return {{"const", std::move(value)}}; }

Json boolean(std::string_view description) {
  Json schema = described(description);
  schema["type"] = "boolean";
  return schema;
}

Json any_of(std::string_view description, const std::vector<Json>& schemas) {
  Json schema = described(description);
  schema["anyOf"] = schemas;
  return schema;
}

Json nullable(Json schema) {
  const Json null = {{"type", "null"}};
  return {{"anyOf", Json::array({std::move(schema), null})}};
}

Json yaml_text(std::string_view description) {
  Json schema = described(description);
  schema["type"] = {"string", "number", "boolean"};
  return schema;
}

Json yaml_count(std::string_view description, std::int64_t least, std::int64_t most) {
  Json schema = described(description);
  schema["type"] = {"integer", "string"};
  schema["minimum"] = least;
  schema["maximum"] = most;
  schema["pattern"] = fmt::format("^ *{} *$", kNumber);
  return schema;
}

Json yaml_ratio(std::string_view description, double least, double most) {
  Json schema = described(description);
  schema["type"] = {"number", "string"};
  schema["minimum"] = least;
  schema["maximum"] = most;
  schema["pattern"] = fmt::format("^ *{} *$", kNumber);
  return schema;
}

Json yaml_bytes(std::string_view description) {
  return quantity(description, "[kKMGT]?B|[KMGT]i|[KMGT]iB", "bytes, or with a unit: 130GiB, 64GB");
}
std::string bytes_pattern() { return pattern("[kKMGT]?B|[KMGT]i|[KMGT]iB"); }
Json yaml_numel(std::string_view description) {
  return quantity(description, "[kMG]|[KMG]i", "elements, e.g. 1e9 or 256Mi");
}
Json yaml_rate(std::string_view description) {
  return quantity(description, "[kMGT]?B/s|[KMGT]iB/s|Gbit/s", "bytes a second, or with a unit: 55.4GB/s, 400Gbit/s");
}
Json yaml_flops(std::string_view description) {
  return quantity(description, "[GTP]?FLOP/s|TFLOPS", "FLOP a second, or with a unit: 780TFLOP/s");
}
Json yaml_seconds(std::string_view description) {
  return quantity(description, "s|ms|us|ns|min|h", "seconds, or with a unit: 2.65us, 3.1s");
}

Json yaml_or_auto(Json schema) {
  Json both = described(schema["description"].get<std::string>());
  schema.erase("description");
  both["anyOf"] = Json::array({constant("auto"), std::move(schema)});
  return both;
}

Json text(std::string_view description) {
  Json schema = described(description);
  schema["type"] = "string";
  return schema;
}

Json integer(std::string_view description, std::int64_t least, std::int64_t most) {
  Json schema = described(description);
  schema["type"] = "integer";
  schema["minimum"] = least;
  if (most != kMost) schema["maximum"] = most;
  return schema;
}

Json number(std::string_view description) {
  Json schema = described(description);
  schema["type"] = "number";
  return schema;
}

std::string document(std::string_view name, int version, std::string_view title, const Json& schema) {
  Json whole = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                {"$id", fmt::format("urn:ebb:schema:{}:{}", name, version)},
                {"title", title}};
  whole.update(schema);
  return whole.dump(2) + "\n";
}

}  // namespace ebb::schema
