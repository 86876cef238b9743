// Members of what `ebb diff` prints.
#include "planner/document_fields.hpp"

namespace ebb::cli {

void read(const JsonValue& json, std::pair<std::string, std::string>& named) {
  Fields(json).key("name", named.first).key("value", named.second);
}
void read(const JsonValue& json, std::pair<std::string, Bytes>& named) {
  Fields(json).key("name", named.first).key("bytes", named.second);
}

void read(const JsonValue& json, reports::DiffTime& time) {
  Fields(json)
      .key("predicted_seconds", time.predicted)
      .key("measured_seconds", time.measured)
      .key("measured_least_seconds", time.least)
      .key("measured_most_seconds", time.most);
}

void read(const JsonValue& json, reports::DiffPhase& phase) {
  Fields(json)
      .key("name", phase.name)
      .key("predicted_seconds", phase.predicted)
      .key("measured_seconds", phase.measured);
}

void read(const JsonValue& json, reports::DiffClass& c) {
  Fields(json)
      .key("name", c.name)
      .key("ops", c.ops)
      .key("bytes", c.bytes)
      .key("busy_predicted_seconds", c.busy_predicted)
      .key("busy_measured_seconds", c.busy_measured)
      .key("rate_predicted", c.rate_predicted)
      .key("rate_measured", c.rate_measured)
      .key("exposed_predicted_seconds", c.exposed_predicted)
      .key("exposed_measured_seconds", c.exposed_measured);
}

void read(const JsonValue& json, reports::DiffBytes& bytes) {
  Fields(json).key("name", bytes.name).key("predicted_bytes", bytes.predicted).key("measured_bytes", bytes.measured);
}

void read(const JsonValue& json, reports::DiffMemory& memory) {
  Fields(json)
      .key("live_peak_predicted_bytes", memory.live_predicted)
      .key("live_peak_measured_bytes", memory.live_measured)
      .key("live_by_phase", memory.live_by_phase)
      .key("host", memory.host)
      .key("of_run", memory.of_run)
      .key("forecast", memory.forecast);
}

void read(const JsonValue& json, reports::DiffRank& rank) {
  Fields(json)
      .key("rank", rank.rank)
      .key("repeats", rank.repeats)
      .key("verdict", rank.verdict)
      .key("step", rank.step)
      .key("optimizer_step", rank.update)
      .key("phases", rank.phases)
      .key("classes", rank.classes)
      .key("memory", rank.memory);
  if (rank.repeats < 1) json.at("repeats").reject("a run has at least one");
}

}  // namespace ebb::cli
