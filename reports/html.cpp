// The page: head, one section a job, and where everything came from. Its script and its style stand in it, its data
// too; the content policy forbids it to fetch anything.
#include "reports/html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"
#include "reports/html_blob.hpp"
#include "reports/html_parts.hpp"
#include "reports/web_bundle.hpp"

namespace ebb::reports {

namespace {

std::string title_of(const HtmlReport& report) {
  std::string title;
  for (const HtmlJob& job : report.jobs)
    if (!job.header.job.empty()) title += (title.empty() ? "" : ", ") + job.header.job;
  for (const SweepReport& sweep : report.sweeps) title += (title.empty() ? "" : ", ") + sweep.job;
  return title.empty() ? "Ebb report" : title + " - Ebb report";
}

void append_head(std::string& page, const HtmlReport& report) {
  page +=
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; "
      "style-src "
      "'unsafe-inline'; img-src data:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n";
  page += fmt::format("<title>{}</title>\n<style>", escaped(title_of(report)));
  page += web_style();
  page += "</style>\n</head>\n<body>\n";
}

void append_job_head(std::string& page, const Header& h) {
  page += "<header class=\"job-head\">\n";
  page += fmt::format("<h1>{}</h1>\n", escaped(h.job.empty() ? "Report" : h.job));
  if (!h.model.empty())
    page += fmt::format("<p>{} on {} x {}, {} a host; budget {} a GPU and {} a host</p>\n", escaped(h.model),
                        format_numel({h.gpus}), escaped(h.cluster), h.gpus_per_host, format_bytes(h.device_budget),
                        format_bytes(h.host_budget));
  page += "</header>\n";
}

/// `part` of every candidate, of which the selected one shows.
template <class Part>
void append_each(std::string& page, const HtmlJob& job, Part part, bool titled = true) {
  for (std::size_t i = 0; i < job.candidates.size(); ++i) {
    std::string text;
    part(text, job.candidates[i]);
    if (text.empty()) continue;
    const std::string title = "<h3>" + escaped(label_of(job.candidates[i].answer)) + "</h3>\n";
    page += fmt::format("<div class=\"of-candidate\" data-candidate=\"{}\"{}>\n{}{}</div>\n", i,
                        i == job.selected ? "" : " hidden", titled ? title : "", text);
  }
}

std::string timeline_line(const char* source, const std::optional<HtmlTimeline>& timeline) {
  if (!timeline) return "";
  std::string text = fmt::format("{}: {}, rank {}{}, step {}", source, timeline->origin, timeline->rank,
                                 timeline->ranks > 1 ? fmt::format(" (the slowest of {})", timeline->ranks) : "",
                                 format_seconds(to_seconds(timeline->step)));
  if (timeline->spans.size() < timeline->ops)
    text += fmt::format("; {} operations drawn as {}", format_numel({static_cast<std::int64_t>(timeline->ops)}),
                        format_numel({static_cast<std::int64_t>(timeline->spans.size())}));
  return "<p class=\"hint\">" + escaped(text) + "</p>\n";
}

std::string curve_line(const Curve& curve) {
  if (curve.points.empty()) return "";
  Bytes highest{0};
  for (const CurvePoint& point : curve.points) highest = std::max(highest, point.bytes);
  return fmt::format(
      "<p class=\"hint\">memory: rank {} has the highest peak, {}; of its {} micro-batches {} are drawn, the others "
      "repeat the middle ones</p>\n",
      curve.rank, format_bytes(highest), curve.of_micro_batches, curve.micro_batches);
}

bool has_timeline(const HtmlJob& job) {
  for (const HtmlCandidate& c : job.candidates)
    if (c.predicted || c.measured) return true;
  return false;
}

void append_step(std::string& page, const HtmlJob& job) {
  if (!has_timeline(job)) return;
  page += "<section class=\"step\">\n<h2>One step</h2>\n";
  append_each(page, job, [](std::string& text, const HtmlCandidate& c) {
    text += timeline_line("predicted", c.predicted) + timeline_line("measured", c.measured) + curve_line(c.curve);
  });
  page +=
      "<p class=\"hint drawn\">Drag to zoom, double-click for the whole step; with the keyboard, W and S zoom, A and D "
      "(or the arrows) move, 0 shows all. All plots of the step move together.</p>\n"
      "<div class=\"legend\"></div>\n"
      "<div class=\"plot timeline\" tabindex=\"0\" role=\"application\" aria-label=\"Timeline of the step by stream; "
      "W, A, "
      "S, D to zoom and move\"></div>\n"
      "<div class=\"read\" aria-live=\"polite\"></div>\n"
      "<h3 class=\"drawn\">Link use</h3><div class=\"plot links\"></div>\n"
      "<h3 class=\"drawn\">Device memory alive, one GPU</h3><div class=\"plot device\"></div>\n"
      "<h3 class=\"drawn\">Host memory of one rank</h3><div class=\"plot host\"></div>\n";
  append_each(
      page, job, [](std::string& text, const HtmlCandidate& c) { append_streams(text, c); }, false);
  page += "</section>\n";
}

template <class Part>
void append_section(std::string& page, const HtmlJob& job, const char* css, const char* title, Part part) {
  std::string inside;
  append_each(inside, job, part);
  if (!inside.empty()) page += fmt::format("<section class=\"{}\">\n<h2>{}</h2>\n{}</section>\n", css, title, inside);
}

void append_job(std::string& page, const HtmlJob& job, std::size_t number) {
  page += fmt::format("<article class=\"job\" data-job=\"{}\">\n", number);
  append_job_head(page, job.header);
  append_answer(page, job, number);
  append_candidates(page, job, number);
  append_step(page, job);
  append_section(page, job, "lives", "Memory over the life of the job",
                 [&](std::string& text, const HtmlCandidate& c) { append_life_of(text, c, job.header); });
  append_section(page, job, "errors", "How far the prediction was off", [](std::string& text, const HtmlCandidate& c) {
    if (c.diff) append_diff(text, *c.diff);
  });
  append_section(page, job, "explained", "Why it takes that long, and what would change it",
                 [](std::string& text, const HtmlCandidate& c) { append_explanation(text, c); });
  for (const FitReport& fit : job.limits) append_limits(page, fit);
  page += "</article>\n";
}

}  // namespace

void append_provenance(std::string& page, const HtmlReport& report) {
  page += "<section class=\"provenance\">\n<h2>Where this comes from</h2>\n";
  if (!report.command.empty())
    page += fmt::format(
        "<p>This report again:</p>\n<div class=\"flags\"><pre id=\"command\" tabindex=\"0\" "
        "aria-label=\"Command\"><code>"
        "{}</code></pre><button type=\"button\" class=\"copy\" data-copy=\"command\">Copy</button></div>\n",
        escaped(report.command));
  HtmlTable facts("", {"", ""}, 2);
  for (const auto& [name, value] : report.facts) facts.add_row({name, value});
  facts.append_to(page);
  for (const HtmlJob& job : report.jobs) {
    if (job.header.cluster_defaults.empty()) continue;
    page +=
        fmt::format("<details><summary>Figures that {} leaves to Ebb</summary>\n<ul>\n", escaped(job.header.cluster));
    for (const std::string& figure : job.header.cluster_defaults)
      page.append("<li>").append(escaped(figure)).append("</li>\n");
    page += "</ul>\n</details>\n";
  }
  if (!report.job_text.empty())
    page += "<details><summary>The job, with every default</summary>\n<pre class=\"job-text\"><code>" +
            escaped(report.job_text) + "</code></pre>\n</details>\n";
  page += "</section>\n";
}

std::string to_html(const HtmlReport& report) {
  std::string page;
  append_head(page, report);
  page +=
      "<main>\n<noscript><p class=\"hint\">Scripts are off: the plots are not drawn. Every figure stands in the tables."
      "</p></noscript>\n";
  for (std::size_t i = 0; i < report.jobs.size(); ++i) append_job(page, report.jobs[i], i);
  append_sweeps(page, report.sweeps);
  append_provenance(page, report);
  page += "</main>\n<footer>Ebb " + escaped(report.ebb_version) + "</footer>\n";
  const HtmlData data = data_of(report);
  page += "<script type=\"application/json\" id=\"data\">" + data.json + "</script>\n";
  page += "<script type=\"text/plain\" id=\"columns\">" + data.blob + "</script>\n<script>";
  page += web_script();
  page += "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace ebb::reports
