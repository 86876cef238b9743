// Strict reading of JSON values, as yaml_fields.hpp is for YAML: known keys only, right types, ranges, and a path in
// every message. For .cpp files of models/ alone: it includes the JSON library.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/errors.hpp"
#include "models/nearest.hpp"

namespace ebb {

using Json = nlohmann::ordered_json;

/// A value and its path in the document.
class JsonValue {
 public:
  JsonValue(const Json& json, std::string path, const std::string& file)
      : json_(&json), path_(std::move(path)), file_(&file) {}

  [[noreturn]] void reject(const std::string& problem, const std::string& cure = "") const {
    throw InputError({*file_}, fmt::format("{}: {}", path_.empty() ? "the document" : path_, problem), cure);
  }

  /// The value of `key`, which must be present.
  JsonValue at(const char* key) const {
    require_object();
    const auto it = json_->find(key);
    if (it == json_->end()) reject(fmt::format("the key \"{}\" is missing", key));
    return {*it, path_.empty() ? key : fmt::format("{}.{}", path_, key), *file_};
  }

  bool has(const char* key) const {
    require_object();
    return json_->contains(key);
  }

  void require_keys(const std::vector<std::string_view>& known) const {
    require_object();
    for (const auto& item : json_->items())
      if (std::find(known.begin(), known.end(), item.key()) == known.end())
        reject(fmt::format("unknown key \"{}\"", item.key().substr(0, 60)), did_you_mean(item.key(), known, "keys"));
  }

  std::int64_t integer(std::int64_t least, std::int64_t most) const {
    const bool fits =
        json_->is_number_integer() &&
        (!json_->is_number_unsigned() || json_->get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX));
    if (!fits || json_->get<std::int64_t>() < least || json_->get<std::int64_t>() > most)
      reject(fmt::format("expected a whole number from {} to {}, found {}", least, most, shown()));
    return json_->get<std::int64_t>();
  }

  std::uint32_t index(std::size_t count) const {
    if (count == 0) reject("there is nothing to refer to");
    return static_cast<std::uint32_t>(integer(0, static_cast<std::int64_t>(count) - 1));
  }

  double number() const {
    if (!json_->is_number()) reject(fmt::format("expected a number, found {}", shown()));
    return json_->get<double>();
  }

  bool boolean() const {
    if (!json_->is_boolean()) reject(fmt::format("expected true or false, found {}", shown()));
    return json_->get<bool>();
  }

  const std::string& text() const {
    if (!json_->is_string()) reject(fmt::format("expected a text, found {}", shown()));
    return json_->get_ref<const std::string&>();
  }

  std::size_t size() const {
    if (!json_->is_array()) reject(fmt::format("expected a list, found {}", shown()));
    return json_->size();
  }

  JsonValue operator[](std::size_t i) const { return {(*json_)[i], fmt::format("{}[{}]", path_, i), *file_}; }

  /// The member of an enumeration of `count` values with that name.
  template <class Enum>
  Enum one_of(int count) const {
    std::vector<std::string_view> names;
    for (int i = 0; i < count; ++i) {
      names.push_back(name_of(static_cast<Enum>(i)));
      if (names.back() == text()) return static_cast<Enum>(i);
    }
    reject(fmt::format("unknown word \"{}\"", text().substr(0, 60)), did_you_mean(text(), names, "words"));
  }

 private:
  void require_object() const {
    if (!json_->is_object()) reject(fmt::format("expected an object, found {}", shown()));
  }

  std::string shown() const {
    const std::string text =
        json_->is_structured() ? json_->type_name() : json_->dump(-1, ' ', true, Json::error_handler_t::replace);
    return text.size() <= 40 ? text : text.substr(0, 37) + "...";
  }

  const Json* json_;
  std::string path_;
  const std::string* file_;
};

}  // namespace ebb
