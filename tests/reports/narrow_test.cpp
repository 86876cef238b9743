// The one-screen answer: 24 lines of 100 columns whatever the job, without losing what decides; and the wrapping that
// holds the width.
#include <algorithm>

#include "reports/answer_text.hpp"
#include "reports/explain.hpp"
#include "reports/table.hpp"
#include "reports/wrap.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::reports;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// Everything at its longest: flags over two lines, a reason over three, both warnings, nine rows with four reasons.
PlanReport longest() {
  PlanReport report;
  report.header.model = "a-model-with-a-long-name-in-the-library";
  report.header.cluster = "a-cluster-with-a-long-name";
  report.header.gpus = 16384;
  report.header.device_budget = 100_GiB;
  report.header.host_budget = 2000_GiB;
  report.next_command =
      "ebb simulate /a/path/that/is/rather/long/and/goes/on/to/my/jobs/the-job.yaml --policy windowed "
      "--chunk-size-mb 128 --fraction 0.8 --budget 100GiB";
  const auto add = [&](const std::string& policy, const std::string& requirement, bool feasible) {
    Candidate c;
    c.policy = policy;
    c.requirement = requirement;
    c.feasible = feasible;
    c.deployable = requirement != "ebb" && feasible;
    c.chunk_numel = Numel{10'000'000'000 + static_cast<std::int64_t>(report.candidates.size())};
    c.device_peak = c.device_reserved = feasible ? 99_GiB : 101_GiB;
    c.reason = "over the device budget by 1.000 GiB";
    c.step = {1234.5};
    c.slowdown = 12.345;
    report.candidates.push_back(c);
  };
  add("resident", "", false);
  add("full-reload", "pr6544", true);
  for (int i = 0; i < 3; ++i) add("chunked", "pr6544", true);
  for (int i = 0; i < 3; ++i) add("windowed", "dev", true);
  add("cpu-adam", "main", true);
  add("pipelined", "ebb", true);
  for (int i = 2; i < 6; ++i) {
    report.candidates[static_cast<std::size_t>(i)].deployable = false;
    report.candidates[static_cast<std::size_t>(i)].reason =
        "reason " + std::to_string(i) + " that is a whole sentence and says what Megatron says and why it cannot be so";
  }
  report.recommended = 7;
  Candidate& pick = report.candidates[7];
  pick.flags = {"--chunked-optimizer-state-offload", "--optimizer-state-offload-chunk-size-mb", "128",
                "--optimizer-state-offload-fraction", "0.8"};
  pick.takers = "Megatron-LM dev (since #6244); main and pull request 6544 do not have the flags";
  for (int i = 0; i < 45; ++i) pick.reason += "words ";
  pick.first_steps_pinned = 10_GiB;
  pick.first_step = {2000};
  pick.device_resume = 120_GiB;
  return report;
}

}  // namespace

TEST_CASE("text is broken at blanks to the width, and a word that is wider stays whole") {
  CHECK(wrapped("one two three", 2, "", 8) == "one two\n  three\n");
  CHECK(wrapped("one two three", 2, "\\", 9) == "one two \\\n  three\n");
  CHECK(wrapped("aVeryLongWord b", 0, "", 4) == "aVeryLongWord\nb\n");
  CHECK(wrapped("", 0) == "\n");
  CHECK(wrapped("\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9", 0, "", 5) == "\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9\n");  // characters
  for (const std::string& line : lines_of(wrapped(std::string(500, 'x').replace(250, 1, " "), 4)))
    CHECK(line.find("xx") != std::string::npos);
}

TEST_CASE("the longest answer fits 24 lines of 100 columns and keeps what decides") {
  const PlanReport report = longest();
  const std::string text = to_text(report, {});
  const std::vector<std::string> lines = lines_of(text);
  CHECK(lines.size() <= 24);
  for (const std::string& line : lines) {
    INFO(line);
    CHECK(width_of(line) <= 100);
  }
  CHECK(text.rfind("--chunked-optimizer-state-offload --optimizer-state-offload-chunk-size-mb 128 \\\n  "
                   "--optimizer-state-offload-fraction 0.8\n",
                   0) == 0);
  for (const char* part :
       {"takes it: ", "why: ", "first step +", "beware: ", "\n*  windowed", "\n   resident", "over by 1.000 GiB",
        "Ebb's runtime", "Not in these figures: ", "Next: ebb simulate ", "more rows"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("where all rows fit none is left out, and every row has its figures in the wide text") {
  PlanReport report = longest();
  report.candidates[7].reason = "it fits";
  report.candidates[7].first_steps_pinned = Bytes{0};
  report.candidates.erase(report.candidates.begin() + 2, report.candidates.begin() + 6);
  report.recommended = 3;
  const std::string text = to_text(report, {});
  CHECK(text.find("more rows") == std::string::npos);
  CHECK(text.find("Megatron dev") != std::string::npos);
  CHECK(text.find("Megatron main") != std::string::npos);
  CHECK(text.find("1134.5 %") != std::string::npos);
  const std::string wide = to_wide_text(longest(), {});
  for (const char* part :
       {"pinned/rank", "reserved ~", "optimizer", "10000000009", "reason 5 that is a whole sentence"})
    CHECK(wide.find(part) != std::string::npos);
}

TEST_CASE("an explanation's text names every part that is there and keeps the width") {
  ExplainReport report;
  report.header.job = "small";
  report.candidate.policy = "chunked";
  report.candidate.chunk_numel = Numel{400'000'000};
  report.candidate.device_peak = 30_GiB;
  report.chosen = "as ebb plan recommends";
  Explanation& e = report.explanation.emplace();
  e.step = {2.0};
  e.optimizer = {0.4};
  e.segments = {{"forward", "computation", "compute", "stream order", 8, {1.5}, 75.0},
                {"step", "copies to the device", "h2d", "dependency", 96, {0.5}, 25.0}};
  e.path_operations = 104;
  e.bottleneck = {"compute",
                  {1.5},
                  "Forward and backward computation takes 75.0 % of the step, and this sentence goes "
                  "on for more than a line of a terminal."};
  e.bounds = {{"link", {0.2}, "10 GB in and 10 GB out"}};
  e.memory.least = 20_GiB;
  e.neighbours = {{"next smaller chunk", report.candidate, "a step 2.000 ms longer, the same memory: slower"}};
  e.shard = {"output_layer.weight", 3, Numel{500'000'000}, 6_GiB, "400,000,000 elements", true, false, "how", {}, {}};
  e.shard.levers.push_back({"--tensor-model-parallel-size 2", Numel{250'000'000}});
  e.what_ifs = {{"a link to the host twice as fast", "windowed 128 MiB, 80 %", {}, true, Seconds{1.8}, 29_GiB, ""},
                {"tensor parallelism 2", "", {}, false, {}, {}, "no valid job: so"}};
  const std::string text = to_text(report, {});
  for (const std::string& line : lines_of(text)) {
    INFO(line);
    CHECK(width_of(line) <= 100);
  }
  for (const char* part :
       {"100.0 %", "takes 75.0 % of the step", "2.00 times the highest", "is at least 20.00 GiB at the peak",
        "30.00 GiB allocated at the peak, 10.00 GiB more",
        "next smaller chunk, chunked 400000000: a step 2.000 ms longer", "that shard is a chunk of its own",
        "--tensor-model-parallel-size 2 would make it 250,000,000",
        "twice as fast: windowed 128 MiB, 80 %, step 1.800 s", "no valid job: so"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("no line ends between a number and its unit") {
  const std::string text = "needs up to 130.5 GiB, at 12 ms a step (80 %), for 3 steps";
  for (std::size_t columns = 12; columns < text.size(); ++columns)
    for (const std::string& line : wrapped_lines(text, columns)) {
      INFO(columns << "\n" << line);
      CHECK((line.rfind("GiB", 0) != 0 && line.rfind("ms", 0) != 0 && line.rfind("%", 0) != 0));
    }
  std::string joined;
  for (const std::string& line : wrapped_lines(text, 20)) joined += (joined.empty() ? "" : " ") + line;
  CHECK(joined == text);
}

TEST_CASE("words of a table's last column go on below each other, and no other cell is repeated") {
  Table table({{"name", Align::left}, {"n"}, {"what", Align::left}});
  table.add_row({"a", "1", "one two three four five six seven"});
  table.add_row({"b", "22", "short"});
  CHECK(table.lines(26) == std::vector<std::string>{"name   n  what", "a      1  one two three",
                                                    "          four five six", "          seven", "b     22  short"});
  CHECK(table.lines()[1] == "a      1  one two three four five six seven");
}
