// The only file that includes valijson, which takes long to compile.
#include "tests/schema_validator.hpp"

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace ebb::test {

struct SchemaValidator::Parsed {
  valijson::Schema schema;
};

SchemaValidator::SchemaValidator(const nlohmann::json& schema) : parsed_(std::make_unique<Parsed>()) {
  valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), parsed_->schema);
}

SchemaValidator::~SchemaValidator() = default;

std::string SchemaValidator::fault_of(const nlohmann::json& value) const {
  // Strong types: "8" is no number.
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  valijson::ValidationResults results;
  if (validator.validate(parsed_->schema, valijson::adapters::NlohmannJsonAdapter(value), &results)) return "";
  std::string text = "refused";
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    text += "\n ";
    for (const std::string& part : error.context) text += part;
    text += ": " + error.description;
  }
  return text;
}

}  // namespace ebb::test
