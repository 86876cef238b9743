// Typed values out of Megatron-LM's arguments. The last of several arguments of one name counts, as in argparse; every
// complaint names the argument and its place.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/yaml_fields.hpp"
#include "planner/megatron_arguments.hpp"

namespace ebb {

/// Names are without dashes in front. A value "None" is an absent argument. InputError for a value of the wrong type,
/// out of range, or missing.
class MegatronValues {
 public:
  explicit MegatronValues(const MegatronArguments& arguments) : arguments_(&arguments) {}

  const MegatronArgument* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  Place place_of(std::string_view name) const;

  bool flag(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  /// All words of the value, also where they stand in one string or in a list: "[a, b]".
  std::vector<std::string> words(std::string_view name) const;
  std::optional<std::int64_t> find_count(std::string_view name, std::int64_t least = 1) const;
  std::int64_t count(std::string_view name, std::int64_t otherwise, std::int64_t least = 1) const;
  std::int64_t require_count(std::string_view name) const;
  std::optional<double> find_number(std::string_view name) const;
  double number(std::string_view name, double otherwise, double least, double most) const;
  /// The environment variable's value, "" where the file does not set it.
  std::string environment(const std::string& name) const;

  template <class Enum>
  Enum choice(std::string_view name, Enum otherwise, std::span<const Choice<Enum>> choices) const {
    const std::optional<std::string> word = text(name);
    if (!word) return otherwise;
    std::vector<std::string_view> known;
    for (const auto& [text, value] : choices) {
      if (text == *word) return value;
      known.push_back(text);
    }
    reject(name, "unknown value \"" + word->substr(0, 40) + "\"", did_you_mean(*word, known, "values"));
  }

  [[noreturn]] void reject(std::string_view name, const std::string& problem, const std::string& cure) const;

 private:
  const MegatronArguments* arguments_;
};

}  // namespace ebb
