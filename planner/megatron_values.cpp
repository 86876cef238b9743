#include "planner/megatron_values.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"

namespace ebb {

namespace {

constexpr std::int64_t kMostCount = 1'000'000'000;  // as in a job file: products of two stay inside int64

bool is_none(const MegatronArgument& argument) {
  return argument.values.size() == 1 && (argument.values[0] == "None" || argument.values[0] == "null");
}

}  // namespace

const MegatronArgument* MegatronValues::find(std::string_view name) const {
  const auto& all = arguments_->arguments;
  const auto last = std::find_if(all.rbegin(), all.rend(), [&](const MegatronArgument& a) { return a.name == name; });
  return last == all.rend() || is_none(*last) ? nullptr : &*last;
}

Place MegatronValues::place_of(std::string_view name) const {
  const MegatronArgument* argument = find(name);
  return argument == nullptr ? Place{arguments_->file} : argument->place;
}

void MegatronValues::reject(std::string_view name, const std::string& problem, const std::string& cure) const {
  throw InputError(place_of(name), fmt::format("--{}: {}", name, problem), cure);
}

bool MegatronValues::flag(std::string_view name) const {
  const MegatronArgument* argument = find(name);
  if (argument == nullptr) return false;
  if (argument->values.empty() || !argument->unset.empty()) return true;
  const std::string& word = argument->values[0];
  if (argument->values.size() == 1 && (word == "true" || word == "True")) return true;
  if (argument->values.size() == 1 && (word == "false" || word == "False")) return false;
  reject(name, fmt::format("is a flag, and \"{}\" follows it", word.substr(0, 40)), "write the flag alone");
}

std::optional<std::string> MegatronValues::text(std::string_view name) const {
  const MegatronArgument* argument = find(name);
  if (argument == nullptr) return std::nullopt;
  if (argument->values.empty()) reject(name, "has no value", "give one, or leave it out");
  if (!argument->unset.empty())
    reject(name, fmt::format("the variable {} is not set in this file", argument->unset[0].substr(0, 60)),
           fmt::format("write the value, or set the variable, for example {}=... on a line of its own",
                       argument->unset[0].substr(0, 60)));
  if (argument->values.size() > 1)
    reject(name, fmt::format("takes one value, and {} follow it", argument->values.size()), "give one");
  return argument->values[0];
}

std::string MegatronValues::text(std::string_view name, std::string_view otherwise) const {
  return text(name).value_or(std::string(otherwise));
}

std::vector<std::string> MegatronValues::words(std::string_view name) const {
  std::vector<std::string> words;
  const MegatronArgument* argument = find(name);
  if (argument == nullptr) return words;
  constexpr std::string_view kBetween = " \t,[]'\"";
  for (const std::string& value : argument->values)
    for (std::size_t begin = value.find_first_not_of(kBetween); begin != std::string::npos;) {
      const std::size_t end = std::min(value.find_first_of(kBetween, begin), value.size());
      words.push_back(value.substr(begin, end - begin));
      begin = value.find_first_not_of(kBetween, end);
    }
  return words;
}

std::optional<std::int64_t> MegatronValues::find_count(std::string_view name, std::int64_t least) const {
  const std::optional<std::string> word = text(name);
  if (!word) return std::nullopt;
  const bool digits = !word->empty() && word->find_first_not_of("0123456789_") == std::string::npos;
  if (!digits) reject(name, fmt::format("\"{}\" is not a whole number", word->substr(0, 40)), "");
  // Longer than any number in range; parse_count complains about the rest.
  const std::int64_t value = word->size() > 18 ? kMostCount + 1 : parse_count(*word, place_of(name));
  if (value < least) reject(name, fmt::format("{} is too small", value), fmt::format("use {} or more", least));
  if (value > kMostCount)
    reject(name, fmt::format("{} is out of range", word->substr(0, 40)), fmt::format("use at most {}", kMostCount));
  return value;
}

std::int64_t MegatronValues::count(std::string_view name, std::int64_t otherwise, std::int64_t least) const {
  return find_count(name, least).value_or(otherwise);
}

std::int64_t MegatronValues::require_count(std::string_view name) const {
  if (const std::optional<std::int64_t> value = find_count(name)) return *value;
  throw InputError(Place{arguments_->file}, fmt::format("--{} is missing", name),
                   "Megatron-LM needs it, and so does Ebb");
}

std::optional<double> MegatronValues::find_number(std::string_view name) const {
  const std::optional<std::string> word = text(name);
  if (!word) return std::nullopt;
  const bool negative = word->starts_with('-');
  const double value = parse_ratio(word->substr(negative ? 1 : 0), place_of(name));
  return negative ? -value : value;
}

double MegatronValues::number(std::string_view name, double otherwise, double least, double most) const {
  const std::optional<double> value = find_number(name);
  if (!value) return otherwise;
  if (!(*value >= least && *value <= most))
    reject(name, fmt::format("{} is out of range", *value), fmt::format("use a number from {} to {}", least, most));
  return *value;
}

std::string MegatronValues::environment(const std::string& name) const {
  const auto it = arguments_->environment.find(name);
  return it == arguments_->environment.end() ? "" : it->second;
}

}  // namespace ebb
