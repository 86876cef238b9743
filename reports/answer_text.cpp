#include "reports/answer_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"
#include "reports/answer_text_parts.hpp"
#include "reports/table.hpp"
#include "reports/wrap.hpp"

namespace ebb::reports {

std::string parameters_of(const Candidate& c) {
  if (c.slots && c.chunk_numel) return fmt::format("{} x {}", *c.slots, c.chunk_numel->value);
  if (c.chunk_numel) return fmt::format("{}", c.chunk_numel->value);
  std::string text;
  if (c.chunk_size_mb) text = fmt::format("{} MiB", *c.chunk_size_mb);
  if (c.fraction && *c.fraction < 1) text += fmt::format("{}{:.0f} %", text.empty() ? "" : ", ", *c.fraction * 100);
  return text.empty() ? "-" : text;
}

void append_table(std::string& text, const Table& table, const Style& style) {
  bool title = true;
  for (const std::string& line : table.lines(style.terminal ? std::optional(kColumns) : std::nullopt)) {
    const bool picked = line.rfind('*', 0) == 0;
    text.append(title ? style.dim(line) : picked ? style.bold(line) : line).append("\n");
    title = false;
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

std::string job_line(const Header& header) {
  return fmt::format("{} on {} x {}, budget {} a GPU and {} a host; compute {}", header.model, header.gpus,
                     header.cluster, format_bytes(header.device_budget), format_bytes(header.host_budget),
                     header.compute_measured ? "as measured" : "by roofline");
}

std::string titled_job_line(const Header& header) { return wrapped(header.job + ": " + job_line(header), 2); }

std::string flags_line(const Candidate& c, const Style& style) {
  if (c.flags.empty()) return "";
  const std::string lines = wrapped(joined(c.flags), 2, "\\");
  return style.green(lines.substr(0, lines.size() - 1)) + "\n";
}

std::string worst_case_lines(const std::vector<std::string>& assumptions) {
  std::string line;
  for (const std::string& assumption : assumptions) line += (line.empty() ? "worst case: " : "; ") + assumption;
  return wrapped_or_nothing(line);
}

std::string answer_lines(const PlanReport& report, const Style& style) {
  if (!report.recommended) {
    std::string text = wrapped(fmt::format("nothing fits: {}", report.shortfall), 2);
    for (const std::string& cure : report.cures) text += wrapped(fmt::format("  would cure it: {}", cure), 4);
    return style.bold("nothing fits") + text.substr(std::string("nothing fits").size());
  }
  const Candidate& pick = report.candidates[*report.recommended];
  return (pick.flags.empty() ? style.green("no flag") + "\n" : flags_line(pick, style)) +
         wrapped(fmt::format("takes it: {}", pick.takers), 2) + wrapped(fmt::format("why: {}.", pick.reason), 2) +
         worst_case_lines(report.worst_case) + wrapped_or_nothing(first_steps_line(pick)) +
         wrapped_or_nothing(resume_line(pick, report.header));
}

std::string short_reason(const std::string& reason) {
  constexpr std::string_view kDevice = "over the device budget by ";
  return reason.starts_with(kDevice) ? fmt::format("over by {}", reason.substr(kDevice.size())) : reason;
}

std::string wrapped_or_nothing(const std::string& line) { return line.empty() ? "" : wrapped(line, 2); }

/// "first step +5.2 s (pins 14.7 GiB a rank), warm-up apart"; nothing for a policy that pins nothing then.
std::string first_steps_line(const Candidate& c) {
  if (c.first_steps_pinned.value == 0) return "";
  std::string text;
  const auto add = [&](const char* name, Seconds seconds) {
    if (seconds <= c.step) return;
    text += fmt::format("{}{} +{}", text.empty() ? "" : ", ", name, format_seconds(seconds - c.step));
  };
  add("first step", c.first_step);
  add("second step", c.second_step);
  return text.empty() ? ""
                      : fmt::format("{} (pins {} a rank), warm-up apart", text, format_bytes(c.first_steps_pinned));
}

/// What fits now may not fit when the job is resumed.
std::string resume_line(const Candidate& c, const Header& header) {
  if (c.device_resume <= header.device_budget || c.deciding_phase == "load") return "";
  return fmt::format("beware: a resume with optimizer state needs up to {}, {} over the budget",
                     format_bytes(c.device_resume), format_bytes(c.device_resume - header.device_budget));
}

namespace {

constexpr const char* kReserved =
    "reserved ~ replays torch's allocator in steady steps; needs <= holds start, first step, load and save as well, "
    "and decides.";
constexpr const char* kExcluded =
    "Not in these figures: CUDA context and NCCL buffers, data loading, evaluation, the time to read and write "
    "checkpoints.";

std::string reserved_and_excluded(const Style& style) {
  return style.dim(wrapped(kReserved, 2)) + style.dim(wrapped(kExcluded, 2));
}

bool is_ebbs_own(const Candidate& candidate) { return candidate.requirement == "ebb"; }

Table candidate_table() {
  return Table({{"", Align::left},
                {"policy", Align::left},
                {"chunk"},
                {"device peak"},
                {"reserved ~"},
                {"needs <="},
                {"pinned/rank"},
                {"pinned/host"},
                {"optimizer"},
                {"step"},
                {"slow-down"},
                {"", Align::left}});
}

/// Long notes go below the table, numbered; equal ones share a number.
class Notes {
 public:
  std::string cell(const std::string& note) {
    constexpr std::size_t kMostInCell = 48;
    if (note.size() <= kMostInCell) return note;
    const auto known = std::find(notes_.begin(), notes_.end(), note);
    const auto number = known - notes_.begin() + 1;
    if (known == notes_.end()) notes_.push_back(note);
    return fmt::format("({})", number);
  }
  std::string lines() const {
    std::string text;
    for (std::size_t i = 0; i < notes_.size(); ++i) text += fmt::format("({}) {}\n", i + 1, notes_[i]);
    return text;
  }

 private:
  std::vector<std::string> notes_;
};

void add_row(Table& table, const Candidate& c, bool picked, const std::string& note) {
  table.add_row({picked ? "*" : " ", c.policy, parameters_of(c), format_bytes(c.device_peak),
                 c.device_reserved_likely > Bytes{0} ? format_bytes(c.device_reserved_likely) : "-",
                 format_bytes(c.device_reserved), format_bytes(c.host_pinned_per_rank),
                 format_bytes(c.host_pinned_per_host), format_seconds(c.optimizer), format_seconds(c.step),
                 fmt::format("{:.3f}x", c.slowdown), note});
}

/// What live bytes stay below; "" for other policies than tidal.
std::string cap_line(const Candidate& c) {
  if (c.live_cap.value == 0) return "";
  return wrapped(fmt::format("live bytes stay below a cap of {}{}{}", format_bytes(c.live_cap),
                             c.cap ? "" : ", its default", c.cap_keeps ? "" : fmt::format("; {}", kKeepsNothing)),
                 2);
}

}  // namespace

std::string to_wide_text(const PlanReport& report, const Style& style) {
  std::string text = answer_lines(report, style) + "\n" + titled_job_line(report.header) + "\n";
  Table megatron = candidate_table();
  Table own = candidate_table();
  Notes notes;
  bool any_own = false;
  for (std::size_t i = 0; i < report.candidates.size(); ++i) {
    const Candidate& candidate = report.candidates[i];
    const bool own_runtime = is_ebbs_own(candidate);
    const bool in_question = (candidate.deployable || own_runtime) && candidate.feasible;
    add_row(own_runtime ? own : megatron, candidate, report.recommended == i,
            in_question ? "" : notes.cell(candidate.reason));
    any_own = any_own || own_runtime;
  }
  append_table(text, megatron, style);
  if (any_own) {
    text += "\nWith Ebb's own runtime this hardware could do:\n";
    append_table(text, own, style);
  }
  for (const Candidate& candidate : report.candidates)
    if (candidate.live_cap.value > 0)
      text += fmt::format("{} {}: {}", candidate.policy, parameters_of(candidate), cap_line(candidate));
  if (!notes.lines().empty()) text += fmt::format("\n{}", notes.lines());
  text.append("\n").append(reserved_and_excluded(style));
  if (!report.next_command.empty()) text += fmt::format("Next: {}\n", report.next_command);
  return text;
}

namespace {

/// The row of a plan's table as sentences.
std::string candidate_lines(const Candidate& c) {
  const std::string parameters = parameters_of(c);
  std::string text =
      wrapped(fmt::format("{}{}: {} allocated at the peak, {} reserved likely, needs up to {} ({} decides)", c.policy,
                          parameters == "-" ? "" : fmt::format(" {}", parameters), format_bytes(c.device_peak),
                          format_bytes(c.device_reserved_likely), format_bytes(c.device_reserved), c.deciding_phase),
              2);
  text += cap_line(c);
  return text + wrapped(fmt::format("pins {} a rank, {} a host; optimizer {}, step {}, {:.3f} times resident",
                                    format_bytes(c.host_pinned_per_rank), format_bytes(c.host_pinned_per_host),
                                    format_seconds(c.optimizer), format_seconds(c.step), c.slowdown),
                        2);
}

}  // namespace

std::string to_text(const SimulateReport& report, const Style& style) {
  const Candidate& c = report.candidate;
  std::string text = titled_job_line(report.header) + flags_line(c, style);
  text += wrapped(fmt::format("takes it: {}", c.takers), 2);
  if (!c.reason.empty()) text += wrapped(fmt::format("but: {}", c.reason), 2);
  text += worst_case_lines(report.worst_case) + candidate_lines(c) + wrapped_or_nothing(first_steps_line(c)) + "\n";

  append_life(text, report.phases, style);
  for (const std::string& limit : report.host_limits) text += wrapped(fmt::format("host memory: {}", limit), 2);

  Table terms({{"between steps", Align::left}, {"bytes"}});
  for (const NamedBytes& term : c.device_terms) terms.add_row({term.name, format_bytes(term.bytes)});
  terms.add_row({"in all", format_bytes(c.device_between_steps)});
  text += "\n";
  append_table(text, terms, style);
  return text + "\n" + reserved_and_excluded(style);
}

std::string to_text(const LayoutReport& report, const Style& style) {
  std::string text = wrapped(fmt::format("{}: rank {} ({}) owns {} elements in {} shards, the largest of {}",
                                         report.header.job, report.rank, report.coordinates, format_numel(report.owned),
                                         report.shards.size(), format_numel(report.largest_shard)),
                             2) +
                     "\n";
  Table shards({{"shard"}, {"elements"}, {"bucket"}, {"group"}, {"parameter", Align::left}});
  for (std::size_t i = 0; i < report.shards.size(); ++i) {
    const LayoutShard& shard = report.shards[i];
    shards.add_row({std::to_string(i), format_numel(shard.numel), std::to_string(shard.bucket),
                    fmt::format("{}{}", shard.optimizer == 1 ? "expert " : "", shard.group), shard.name});
  }
  append_table(text, shards, style);

  Table buckets({{"bucket"}, {"start"}, {"elements"}, {"buffer"}, {"", Align::left}});
  for (std::size_t i = 0; i < report.buckets.size(); ++i) {
    const LayoutBucket& bucket = report.buckets[i];
    buckets.add_row({std::to_string(i), format_numel(bucket.start), format_numel(bucket.numel),
                     std::to_string(bucket.buffer), bucket.group == 1 ? "expert" : ""});
  }
  text += "\n";
  append_table(text, buckets, style);
  if (!report.chunks) return text;

  Table chunks({{"chunk"}, {"elements"}, {"shards"}});
  for (std::size_t i = 0; i < report.chunks->size(); ++i) {
    const LayoutChunk& chunk = (*report.chunks)[i];
    chunks.add_row({std::to_string(i), format_numel(chunk.numel),
                    chunk.shards.empty() ? "-" : fmt::format("{} to {}", chunk.shards.front(), chunk.shards.back())});
  }
  text += "\n";
  append_table(text, chunks, style);
  return text;
}

}  // namespace ebb::reports
