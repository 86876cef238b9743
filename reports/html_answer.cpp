// The first screen of a report, and the candidates.
#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"
#include "reports/answer_text_parts.hpp"
#include "reports/html_blob.hpp"
#include "reports/html_parts.hpp"
#include "reports/wrap.hpp"

namespace ebb::reports {

namespace {

bool is_ebbs_own(const Candidate& candidate) { return candidate.requirement == "ebb"; }

/// Memory as a part of its budget, for the eye: a bar in the page's own colours.
void append_gauge(std::string& page, Bytes used, Bytes budget, const char* what) {
  if (budget.value <= 0) return;
  const double part = static_cast<double>(used.value) / static_cast<double>(budget.value);
  page += fmt::format(
      "<span class=\"gauge{}\" role=\"img\" aria-label=\"{:.1f} % of the {} budget\"><span style=\"width:{:.1f}%\">"
      "</span></span>",
      part > 1 ? " over" : "", part * 100, what, std::min(part, 1.0) * 100);
}

void append_figure(std::string& page, const char* name, const std::string& value, const std::string& more,
                   const std::string& gauge = "") {
  page +=
      fmt::format("<div><dt>{}</dt><dd>{}{}<small>{}</small></dd></div>\n", name, escaped(value), gauge, escaped(more));
}

void append_figures(std::string& page, const Candidate& c, const Header& header) {
  std::string device, host;
  append_gauge(device, c.device_reserved, header.device_budget, "device");
  append_gauge(host, c.host_pinned_per_host + c.host_pageable_per_host, header.host_budget, "host");
  page += "<dl class=\"figures\">\n";
  append_figure(page, "Device memory, at most", format_bytes(c.device_reserved),
                fmt::format("of {}; decided by {}", format_bytes(header.device_budget), c.deciding_phase), device);
  append_figure(page, "Step", format_seconds(c.step),
                fmt::format("{:.3f} times resident; optimizer {}", c.slowdown, format_seconds(c.optimizer)));
  append_figure(page, "Pinned on a host", format_bytes(c.host_pinned_per_host),
                fmt::format("of {}; {} a rank", format_bytes(header.host_budget), format_bytes(c.host_pinned_per_rank)),
                host);
  append_figure(page, "First step", format_seconds(c.first_step),
                c.first_steps_pinned.value > 0
                    ? fmt::format("pins {} a rank; warm-up apart", format_bytes(c.first_steps_pinned))
                    : std::string("pins nothing; warm-up apart"));
  page += "</dl>\n";
}

void append_flags(std::string& page, const Candidate& c, const std::string& id) {
  if (c.flags.empty()) {
    page += fmt::format("<p class=\"flags none\"><strong>{}</strong></p>\n",
                        c.requirement == "ebb" ? "There is no flag for it." : "No flag is needed.");
    return;
  }
  page += fmt::format(
      "<div class=\"flags\"><pre id=\"{0}\" tabindex=\"0\" aria-label=\"Flags to paste\"><code>{1}</code></pre>"
      "<button type=\"button\" class=\"copy\" data-copy=\"{0}\">Copy</button></div>\n",
      id, escaped(joined(c.flags)));
}

std::string sentence(std::string text) {
  if (text.empty()) return text;
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  if (text.back() != '.') text += '.';
  return text;
}

/// A number and its unit stay on one line.
std::string unbroken(const std::string& text) {
  std::string joined;
  for (std::size_t i = 0; i < text.size(); ++i)
    joined += joins_unit(text, i) ? std::string("\xc2\xa0") : std::string(1, text[i]);
  return joined;
}

void append_paragraph(std::string& page, const char* css, const std::string& text) {
  if (!text.empty()) page += fmt::format("<p class=\"{}\">{}</p>\n", css, escaped(unbroken(text)));
}

/// What fits now may not fit when the job is resumed.
std::string resume_warning(const Candidate& c, const Header& header) {
  if (c.device_resume <= header.device_budget || c.deciding_phase == "load") return "";
  return fmt::format(
      "Beware: a run resumed with optimizer state needs up to {} in its load or after it, {} over the budget.",
      format_bytes(c.device_resume), format_bytes(c.device_resume - header.device_budget));
}

void append_nothing_fits(std::string& page, const HtmlJob& job) {
  page += "<p class=\"verdict bad\">Nothing fits.</p>\n";
  append_paragraph(page, "why", sentence(job.shortfall));
  if (job.cures.empty()) return;
  page += "<p>What would cure it, each of them tried:</p>\n<ul>\n";
  for (const std::string& cure : job.cures) page.append("<li>").append(escaped(cure)).append("</li>\n");
  page += "</ul>\n";
}

/// What the table says in words.
std::string note_of(const Candidate& c) {
  const bool in_question = (c.deployable || is_ebbs_own(c)) && c.feasible;
  return in_question ? (is_ebbs_own(c) ? "Ebb's own runtime" : "") : c.reason;
}

std::string takers_line(const Candidate& c) {
  return c.takers.empty() ? "Requires: " + c.requirement + "." : "Takes it: " + c.takers + ".";
}

/// The candidate that the first screen is about; none where nothing fits.
std::size_t answered(const HtmlJob& job) {
  return job.plan && !job.recommended ? job.candidates.size() : job.recommended.value_or(job.selected);
}

void append_details(std::string& page, const HtmlJob& job, std::size_t number, std::size_t i) {
  const HtmlCandidate& candidate = job.candidates[i];
  const Candidate& c = candidate.answer;
  page += fmt::format("<article class=\"of-candidate\" data-candidate=\"{}\"{}>\n<h3>{}{}</h3>\n", i,
                      i == job.selected ? "" : " hidden", escaped(label_of(c)),
                      job.recommended == i ? " <span class=\"mark\">recommended</span>" : "");
  if (!candidate.known) {
    page += "</article>\n";
    return;
  }
  if (i != answered(job)) {
    append_flags(page, c, fmt::format("flags-{}-{}", number, i));
    append_paragraph(page, "takers", takers_line(c));
    append_paragraph(page, "why", sentence(c.reason));
    append_paragraph(page, "beware", resume_warning(c, job.header));
    append_figures(page, c, job.header);
  }
  for (const std::string& limit : candidate.host_limits) append_paragraph(page, "beware", sentence(limit));
  HtmlTable terms("Device memory between steps", {"what", "bytes", ""});
  for (const NamedBytes& term : c.device_terms)
    terms.add_row({term.name, format_numel({term.bytes.value}), format_bytes(term.bytes)});
  terms.add_row({"in all", format_numel({c.device_between_steps.value}), format_bytes(c.device_between_steps)}, "sum");
  page += "<details><summary>What lies on the device between steps</summary>\n";
  terms.append_to(page);
  page += "</details>\n</article>\n";
}

bool any_known(const HtmlJob& job) {
  return std::any_of(job.candidates.begin(), job.candidates.end(), [](const HtmlCandidate& c) { return c.known; });
}

}  // namespace

std::string label_of(const Candidate& candidate) {
  std::string parameters = parameters_of(candidate);
  if (candidate.chunk_numel) {
    parameters = format_numel(*candidate.chunk_numel);
    if (candidate.slots) parameters = fmt::format("{} x {}", *candidate.slots, parameters);
  }
  return parameters == "-" ? candidate.policy : candidate.policy + " " + parameters;
}

void mark_front(std::vector<HtmlCandidate>& candidates) {
  for (HtmlCandidate& candidate : candidates) {
    const Candidate& c = candidate.answer;
    candidate.on_front = candidate.known && std::none_of(candidates.begin(), candidates.end(), [&](const auto& other) {
                           const Candidate& o = other.answer;
                           return other.known && o.device_reserved <= c.device_reserved && o.step <= c.step &&
                                  (o.device_reserved < c.device_reserved || o.step < c.step);
                         });
  }
}

void append_answer(std::string& page, const HtmlJob& job, std::size_t number) {
  if (!any_known(job)) return;
  page += "<section class=\"answer\" aria-label=\"Answer\">\n";
  if (job.plan && !job.recommended) {
    append_nothing_fits(page, job);
  } else {
    const Candidate& c = job.candidates[answered(job)].answer;
    const char* verb = job.plan ? "Use" : "Simulated:";
    page += fmt::format("<p class=\"verdict{}\">{} <strong>{}</strong>{}</p>\n", c.feasible ? "" : " bad", verb,
                        escaped(label_of(c)), c.feasible ? "." : ": it does not fit.");
    append_flags(page, c, fmt::format("flags-{}", number));
    append_paragraph(page, "takers", takers_line(c));
    append_paragraph(page, "why", sentence(c.reason));
    append_paragraph(page, "beware", resume_warning(c, job.header));
    append_figures(page, c, job.header);
  }
  const Header& h = job.header;
  append_paragraph(page, "basis",
                   fmt::format("Predicted, not measured. Forward and backward {}. Not in these figures: CUDA context "
                               "and NCCL buffers, data loading, evaluation, the time to read and write checkpoints.",
                               h.compute_measured ? "take the time that the job states as measured"
                                                  : "by a roofline of the cluster's achieved rates"));
  page += "</section>\n";
}

void append_candidates(std::string& page, const HtmlJob& job, std::size_t number) {
  if (!any_known(job)) return;
  page +=
      "<section class=\"candidates\">\n<h2>Memory against time</h2>\n"
      "<p class=\"hint\">Every point is a schedule. Select one, with a click or with Tab and Enter, to see its "
      "figures, "
      "its timeline and its memory below.</p>\n"
      "<div class=\"plot pareto\" role=\"group\" aria-label=\"Step time over device memory\"></div>\n";
  HtmlTable table("", {"policy", "device peak", "reserved, likely", "needs at most", "pinned a rank", "pinned a host",
                       "optimizer", "step", "slow-down", "note"});
  for (std::size_t i = 0; i < job.candidates.size(); ++i) {
    const Candidate& c = job.candidates[i].answer;
    if (!job.candidates[i].known) {
      table.add_row({label_of(c), "-", "-", "-", "-", "-", "-", "-", "-", "timeline alone"}, "candidate");
      continue;
    }
    table.add_row({label_of(c), format_bytes(c.device_peak),
                   c.device_reserved_likely.value > 0 ? format_bytes(c.device_reserved_likely) : "-",
                   format_bytes(c.device_reserved), format_bytes(c.host_pinned_per_rank),
                   format_bytes(c.host_pinned_per_host), format_seconds(c.optimizer), format_seconds(c.step),
                   fmt::format("{:.3f}", c.slowdown), job.recommended == i ? "recommended" : note_of(c)},
                  fmt::format("candidate{}{}", job.recommended == i ? " picked" : "", c.feasible ? "" : " unfit"));
  }
  table.append_to(page);
  for (std::size_t i = 0; i < job.candidates.size(); ++i) append_details(page, job, number, i);
  page += "</section>\n";
}

}  // namespace ebb::reports
