// Plans a job of the library, and prints the recommended policy and its peak, as `ebb plan` would find them.
#include <cstdio>
#include <models/job_yaml.hpp>
#include <planner/constraints.hpp>
#include <planner/search.hpp>
#include <reports/table.hpp>
#include <string>

int main() {
  const ebb::Job job = ebb::load_job("llama3-8b-hgx-h200");
  ebb::check(job);
  const ebb::SearchResult result = ebb::search(job, {.likely = true});
  if (!result.recommended) return 1;
  const ebb::Answer& answer = result.candidates[*result.recommended];
  ebb::reports::Table table({{"policy", ebb::reports::Align::left}, {"peak", ebb::reports::Align::right}});
  table.add_row({std::string(ebb::name_of(answer.candidate.policy)), std::to_string(answer.device_peak.value)});
  std::printf("%s\n%s\n", EBB_DATA_DIR, table.lines().back().c_str());
  return 0;
}
