// What a JSON Schema says of a document, by valijson: a validator that is not ours.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace ebb::test {

class SchemaValidator {
 public:
  /// Any exception of valijson's where `schema` is none.
  explicit SchemaValidator(const nlohmann::json& schema);
  ~SchemaValidator();
  SchemaValidator(const SchemaValidator&) = delete;
  SchemaValidator& operator=(const SchemaValidator&) = delete;

  /// "": nothing is wrong.
  std::string fault_of(const nlohmann::json& value) const;
  bool accepts(const nlohmann::json& value) const { return fault_of(value).empty(); }

 private:
  struct Parsed;
  std::unique_ptr<Parsed> parsed_;
};

}  // namespace ebb::test
