// Argument lists of tests/data/megatron/recorded.json: configurations of Megatron-LM's functional tests (its test-case
// YAML files, tests/functional_tests/test_cases), as JSON.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/megatron_arguments.hpp"

namespace ebb::test {

inline nlohmann::json recorded_cases() {
  std::ifstream in(EBB_SOURCE_DIR "/tests/data/megatron/recorded.json");
  return nlohmann::json::parse(in).at("cases");
}

inline std::string text_of(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// A case's arguments on one node of 8 GPUs, which is where all but the release cases ran.
inline MegatronArguments arguments_of(const nlohmann::json& recorded) {
  MegatronArguments result;
  result.file = recorded.at("id").get<std::string>();
  result.gpus = 8;
  for (const auto& [name, value] : recorded.at("args").items()) {
    if (value == false) continue;
    MegatronArgument argument{.name = name, .values = {}, .place = {result.file}};
    if (value.is_array())
      for (const auto& item : value) argument.values.push_back(text_of(item));
    else if (value != true)
      argument.values.push_back(text_of(value));
    result.arguments.push_back(argument);
  }
  for (const auto& [name, value] : recorded.at("env").items()) result.environment[name] = text_of(value);
  return result;
}

}  // namespace ebb::test
