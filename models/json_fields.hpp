// Strict reading of JSON values, as yaml_fields.hpp is for YAML: known keys only, right types, ranges, and a path in
// every message.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ebb {

/// Keys keep their order, so that what is written is always the same bytes.
using Json = nlohmann::ordered_json;

/// The document in `text`; InputError with line and column when it is no JSON.
Json parse_json(std::string_view text, const std::string& file, const std::string& cure = "write it with ebb");

/// `json` on one line. Text that is not UTF-8 is repaired rather than refused.
std::string dump(const Json& json);

/// A value and its path in the document, e.g. "ops[12].stream". All but has() throw InputError with that path.
class JsonValue {
 public:
  /// Both must outlive this and the values taken from it.
  JsonValue(const Json& json, std::string path, const std::string& file);

  [[noreturn]] void reject(const std::string& problem, const std::string& cure = "") const;

  // An object:
  JsonValue at(const char* key) const;  // which must be there
  bool has(const char* key) const;
  void require_keys(const std::vector<std::string_view>& known) const;

  // A list:
  std::size_t size() const;
  JsonValue operator[](std::size_t i) const;

  // A single value:
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  std::uint32_t index(std::size_t count) const;  // in [0, count)
  double number() const;
  bool boolean() const;
  bool is_null() const;
  const std::string& text() const;
  /// The one of Enum's first `count` values that has this name.
  template <class Enum>
  Enum one_of(int count) const {
    std::vector<std::string_view> names;
    for (int i = 0; i < count; ++i) {
      names.push_back(name_of(static_cast<Enum>(i)));
      if (names.back() == text()) return static_cast<Enum>(i);
    }
    reject_word(names);
  }

 private:
  void require_object() const;
  [[noreturn]] void reject_word(const std::vector<std::string_view>& names) const;
  std::string shown() const;

  const Json* json_;
  std::string path_;
  const std::string* file_;
};

}  // namespace ebb
