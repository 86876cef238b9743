#include "models/json_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/errors.hpp"
#include "models/nearest.hpp"
#include "models/text_file.hpp"

namespace ebb {

Json parse_json(std::string_view text, const std::string& file, const std::string& cure) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    // A number too large for any type has no position; it is rare enough to name the file alone.
    const auto* at = dynamic_cast<const Json::parse_error*>(&error);
    const Place place = at == nullptr ? Place{file} : place_of_byte(text, at->byte == 0 ? 0 : at->byte - 1, file);
    throw InputError(place, "this is not valid JSON", cure);
  }
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

JsonValue::JsonValue(const Json& json, std::string path, const std::string& file)
    : json_(&json), path_(std::move(path)), file_(&file) {}

void JsonValue::reject(const std::string& problem, const std::string& cure) const {
  throw InputError({*file_}, fmt::format("{}: {}", path_.empty() ? "the document" : path_, problem), cure);
}

JsonValue JsonValue::at(const char* key) const {
  require_object();
  const auto it = json_->find(key);
  if (it == json_->end()) reject(fmt::format("the key \"{}\" is missing", key));
  return {*it, path_.empty() ? key : fmt::format("{}.{}", path_, key), *file_};
}

bool JsonValue::has(const char* key) const {
  require_object();
  return json_->contains(key);
}

void JsonValue::require_keys(const std::vector<std::string_view>& known) const {
  require_object();
  for (const auto& item : json_->items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      reject(fmt::format("unknown key \"{}\"", item.key().substr(0, 60)), did_you_mean(item.key(), known, "keys"));
}

bool JsonValue::is_null() const { return json_->is_null(); }

std::size_t JsonValue::size() const {
  if (!json_->is_array()) reject(fmt::format("expected a list, found {}", shown()));
  return json_->size();
}

JsonValue JsonValue::operator[](std::size_t i) const { return {(*json_)[i], fmt::format("{}[{}]", path_, i), *file_}; }

std::int64_t JsonValue::integer(std::int64_t least, std::int64_t most) const {
  const bool fits = json_->is_number_integer() &&
                    (!json_->is_number_unsigned() || std::in_range<std::int64_t>(json_->get<std::uint64_t>()));
  if (!fits || json_->get<std::int64_t>() < least || json_->get<std::int64_t>() > most)
    reject(fmt::format("expected a whole number from {} to {}, found {}", least, most, shown()));
  return json_->get<std::int64_t>();
}

std::uint32_t JsonValue::index(std::size_t count) const {
  if (count == 0) reject("there is nothing to refer to");
  return static_cast<std::uint32_t>(integer(0, static_cast<std::int64_t>(count) - 1));
}

double JsonValue::number() const {
  if (!json_->is_number()) reject(fmt::format("expected a number, found {}", shown()));
  return json_->get<double>();
}

bool JsonValue::boolean() const {
  if (!json_->is_boolean()) reject(fmt::format("expected true or false, found {}", shown()));
  return json_->get<bool>();
}

const std::string& JsonValue::text() const {
  if (!json_->is_string()) reject(fmt::format("expected a text, found {}", shown()));
  return json_->get_ref<const std::string&>();
}

void JsonValue::require_object() const {
  if (!json_->is_object()) reject(fmt::format("expected an object, found {}", shown()));
}

void JsonValue::reject_word(const std::vector<std::string_view>& names) const {
  reject(fmt::format("unknown word \"{}\"", text().substr(0, 60)), did_you_mean(text(), names, "words"));
}

std::string JsonValue::shown() const {
  const std::string text = json_->is_structured() ? json_->type_name() : dump(*json_);
  return text.size() <= 40 ? text : fmt::format("{}...", text.substr(0, 37));
}

}  // namespace ebb
