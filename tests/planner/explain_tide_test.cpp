// What explain says about tidal, over the whole library: no schedule passes the bounds that are printed beside it.
#include <algorithm>
#include <filesystem>

#include "models/job_yaml.hpp"
#include "planner/explain_parts.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

std::vector<std::filesystem::path> library_jobs() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(EBB_SOURCE_DIR "/models/jobs"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("tidal's bound is not passed, whatever the pieces and the cap; its parts are what is exposed") {
  for (const std::filesystem::path& file : library_jobs()) {
    const Job job = load_job(file.string());
    Evaluator evaluator(job);
    for (const std::int64_t mib : {1, 4, 16, 64}) {
      Candidate candidate{.policy = Policy::tidal, .chunk_numel = {mib << 20}};
      const Bytes usual = evaluator.answer(candidate).cap;
      for (const double more : {0.0, 0.02, 0.1, 0.4}) {
        candidate.cap = usual + Bytes{static_cast<std::int64_t>(more * static_cast<double>(usual.value))};
        const Answer answer = evaluator.answer(candidate);
        const std::optional<reports::Tide> tide = tide_of(evaluator, answer);
        REQUIRE(tide);
        INFO(file.filename() << ": " << mib << " Mi, " << candidate.cap.value << " bytes");
        CHECK(tide->exposed >= tide->bound);
        CHECK(tide->step == answer.step);
        CHECK(tide->peak <= answer.cap);
        double parts = 0;
        for (const reports::TidePart& part : tide->parts) parts += part.time.value;
        CHECK_THAT(parts, Catch::Matchers::WithinRel(tide->exposed.value, 1e-9));
        CHECK(memory_bound(evaluator, answer).least <= answer.device_peak);
      }
    }
  }
}
