#include "models/precision_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/job_words.hpp"

namespace ebb {

namespace {

template <class Enum, std::size_t N>
Enum read_choice(const JsonValue& json, const Choice<Enum> (&choices)[N]) {
  const std::string& word = json.text();
  const auto* found = std::find_if(std::begin(choices), std::end(choices),
                                   [&](const Choice<Enum>& choice) { return choice.first == word; });
  if (found == std::end(choices)) json.reject("unknown value");
  return found->second;
}

}  // namespace

Json precision_json(const Precision& precision) {
  Json json = {{"params", name_of(precision.params)},
               {"grads", name_of(precision.grads)},
               {"exp_avg", name_of(precision.exp_avg)},
               {"exp_avg_sq", name_of(precision.exp_avg_sq)},
               {"master", name_of(precision.master)}};
  if (precision.precision_aware) json["precision_aware"] = *precision.precision_aware;
  if (precision.remainders) json["remainders"] = *precision.remainders;
  if (precision.fp8 != Fp8Recipe::none) json["fp8"] = word_of(precision.fp8, kFp8Recipes);
  if (precision.fp8_param_gather) json["fp8_param_gather"] = true;
  if (precision.fp4 != Fp4Recipe::none) json["fp4"] = word_of(precision.fp4, kFp4Recipes);
  if (precision.fp4_param_gather) json["fp4_param_gather"] = true;
  return json;
}

Precision read_precision(const JsonValue& json) {
  json.require_keys({"params", "grads", "exp_avg", "exp_avg_sq", "master", "precision_aware", "remainders", "fp8",
                     "fp8_param_gather", "fp4", "fp4_param_gather"});
  Precision precision;
  precision.params = read_choice(json.at("params"), kMomentTypes);
  precision.grads = read_choice(json.at("grads"), kMomentTypes);
  precision.exp_avg = read_choice(json.at("exp_avg"), kMomentTypes);
  precision.exp_avg_sq = read_choice(json.at("exp_avg_sq"), kMomentTypes);
  precision.master = read_choice(json.at("master"), kMomentTypes);
  if (json.has("fp8")) precision.fp8 = read_choice(json.at("fp8"), kFp8Recipes);
  if (json.has("fp4")) precision.fp4 = read_choice(json.at("fp4"), kFp4Recipes);
  const auto read_flag = [&](const char* key, auto& flag) {
    if (json.has(key)) flag = json.at(key).boolean();
  };
  read_flag("precision_aware", precision.precision_aware);
  read_flag("remainders", precision.remainders);
  read_flag("fp8_param_gather", precision.fp8_param_gather);
  read_flag("fp4_param_gather", precision.fp4_param_gather);
  return precision;
}

}  // namespace ebb
