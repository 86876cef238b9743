// Proves of HTML reports what needs no browser: nothing in a user's text becomes markup, the data survive the packing,
// detail that is left out is counted, the answer comes first, and equal reports are equal bytes. What a browser makes
// of a page is tested in tests/web.
#include "reports/html.hpp"

#include <zlib.h>

#include <algorithm>

#include "reports/html_blob.hpp"
#include "tests/catch.hpp"

namespace ebb::reports {
namespace {

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// RFC 4648, written for this test.
std::string from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    group = group << 6 | static_cast<unsigned>(digits.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(group >> bits & 0xff));
  }
  return bytes;
}

Candidate candidate(const std::string& policy, std::int64_t gib, double step) {
  Candidate c;
  c.policy = policy;
  c.deployable = c.feasible = true;
  c.device_reserved = {gib << 30};
  c.device_peak = {gib << 30};
  c.step = {step};
  c.takers = "every Megatron-LM";
  c.deciding_phase = "step";
  return c;
}

HtmlReport report() {
  HtmlReport report;
  HtmlJob& job = report.jobs.emplace_back();
  job.plan = true;
  job.header.job = "a job";
  job.header.model = "a model";
  job.header.cluster = "a cluster";
  job.header.device_budget = 100_GiB;
  job.header.host_budget = 900_GiB;
  job.candidates.resize(2);
  job.candidates[0].answer = candidate("resident", 120, 1.0);
  job.candidates[1].answer = candidate("chunked", 80, 1.5);
  job.candidates[1].answer.chunk_numel = Numel{400000000};
  job.candidates[1].answer.flags = {"--offload-optimizer-states", "--n", "400000000"};
  Phase phase;
  phase.name = "save";
  phase.device_peak = 60_GiB;
  phase.device_reserved_likely = 70_GiB;
  phase.device_reserved = 80_GiB;
  job.candidates[1].life = {phase};
  job.recommended = job.selected = 1;
  report.facts = {{"Ebb", "1"}};
  report.command = "ebb plan job.yaml --html 'a b.html'";
  return report;
}

HtmlSpan span(HtmlStream stream, std::uint8_t kind, std::int64_t start, std::int64_t end) {
  HtmlSpan s;
  s.stream = stream;
  s.kind = kind;
  s.bytes = {10};
  s.start = {start};
  s.end = {end};
  return s;
}

}  // namespace

TEST_CASE("base64: the vectors of RFC 4648") {
  CHECK(base64("").empty());
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foob") == "Zm9vYg==");
  CHECK(base64("fooba") == "Zm9vYmE=");
  CHECK(base64("foobar") == "Zm9vYmFy");
}

TEST_CASE("text becomes no markup, and what is not UTF-8 becomes U+FFFD") {
  CHECK(escaped("a<b>&\"'") == "a&lt;b&gt;&amp;&quot;&#39;");
  CHECK(escaped("\xc3\xa9\xe2\x82\xac\xf0\x9f\x9a\x80") == "\xc3\xa9\xe2\x82\xac\xf0\x9f\x9a\x80");
  const std::string replacement = "\xef\xbf\xbd";
  CHECK(escaped("\xff") == replacement);
  CHECK(escaped("\xc3") == replacement);
  CHECK(escaped("\xc0\xbc") == replacement + replacement);                    // an overlong <
  CHECK(escaped("\xed\xa0\x80") == replacement + replacement + replacement);  // a surrogate
}

TEST_CASE("JSON in a script element ends neither the element nor a line") {
  const std::string json = json_in_html("{\"a\":\"</script><!--&\xe2\x80\xa8\xe2\x80\xa9\"}");
  CHECK(json == "{\"a\":\"\\u003c/script\\u003e\\u003c!--\\u0026\\u2028\\u2029\"}");
}

TEST_CASE("columns lie at multiples of eight bytes, little-endian, in a zlib stream") {
  HtmlBlob blob;
  const auto bytes = blob.add(std::vector<std::uint8_t>{1, 2, 3});
  const auto words = blob.add(std::vector<std::uint32_t>{0x01020304, 7});
  const auto numbers = blob.add(std::vector<double>{-2.0});
  CHECK((bytes.at == 0 && bytes.count == 3));
  CHECK((words.at == 8 && words.count == 2));
  CHECK((numbers.at == 16 && numbers.count == 1));
  const std::string packed = from_base64(blob.deflated());
  std::string inflated(24, '?');
  uLongf size = inflated.size();
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(inflated.data()), &size, reinterpret_cast<const Bytef*>(packed.data()),
                     static_cast<uLong>(packed.size())) == Z_OK);
  const std::string expected("\1\2\3\0\0\0\0\0\4\3\2\1\7\0\0\0\0\0\0\0\0\0\0\xc0", 24);  // -2.0 is 0xc000000000000000
  CHECK(inflated.substr(0, size) == expected);
}

TEST_CASE("a page opens with the answer and its flags, and says them in words") {
  const std::string page = to_html(report());
  const std::size_t flags = page.find("--offload-optimizer-states --n 400000000");
  REQUIRE(flags != std::string::npos);
  CHECK(flags < page.find("<table>"));
  CHECK(page.find("Use <strong>chunked 400,000,000</strong>") < flags);
  CHECK(holds(page, "80.00 GiB"));
  CHECK(holds(page, "ebb plan job.yaml --html &#39;a b.html&#39;"));
  CHECK(holds(page, "<noscript>"));
  CHECK(holds(page, "needs at most: 80.00 GiB"));  // in the drawing of the life
  CHECK(page == to_html(report()));
}

TEST_CASE("a page fetches nothing") {
  const std::string page = to_html(report());
  for (const char* word : {" src=", "<script src", "<link rel=\"stylesheet\"", "@import", "url(http", "fetch("})
    CHECK_FALSE(holds(page, word));
  CHECK(count(page, " href=") == 1);  // the empty icon
  CHECK(holds(page, "default-src 'none'"));
}

TEST_CASE("a page whose texts are hostile has the same elements") {
  const std::string hostile = "</script></style></title><script>alert(1)</script><!--\xe2\x80\xa8";
  const std::string tame = to_html(report());
  HtmlReport bad = report();
  bad.jobs[0].header.job = bad.jobs[0].header.model = bad.jobs[0].header.cluster = hostile;
  bad.jobs[0].header.cluster_defaults = {hostile};
  bad.jobs[0].candidates[1].answer.flags = {hostile};
  bad.jobs[0].candidates[1].answer.reason = hostile;
  bad.jobs[0].candidates[1].life[0].name = hostile;
  bad.facts = {{hostile, hostile}};
  bad.command = bad.job_text = hostile;
  const std::string page = to_html(bad);
  for (const char* element : {"<script", "</script", "</style", "</title", "<!--"})
    CHECK(count(page, element) == count(tame, element));
  CHECK(holds(page, "alert(1)"));
}

TEST_CASE("where nothing fits, a page opens with by how much and what would cure it") {
  HtmlReport nothing = report();
  nothing.jobs[0].recommended.reset();
  nothing.jobs[0].shortfall = "the least is 80 GiB";
  nothing.jobs[0].cures = {"four more GPUs"};
  const std::string page = to_html(nothing);
  CHECK(page.find("Nothing fits.") < page.find("The least is 80"));
  CHECK(page.find("four more GPUs") < page.find("<table>"));
}

TEST_CASE("the front: nobody else needs less of one and no more of the other") {
  std::vector<HtmlCandidate> all(6);
  all[0].answer = candidate("a", 10, 5);
  all[1].answer = candidate("b", 20, 3);
  all[2].answer = candidate("c", 20, 4);  // b is faster
  all[3].answer = candidate("d", 30, 3);  // b needs less
  all[4].answer = candidate("e", 20, 3);  // equal to b
  all[5].known = false;                   // no figures
  mark_front(all);
  std::string front;
  for (const HtmlCandidate& c : all)
    if (c.on_front) front += c.answer.policy;
  CHECK(front == "abe");
}

TEST_CASE("few spans stay as they are") {
  const std::vector<HtmlSpan> spans(1'000, span(HtmlStream::h2d, 0, 5, 9));
  CHECK(joined_spans(spans, 1'000).size() == 1'000);
}

TEST_CASE("joined spans are few, stand for every op and byte, and stay on their lane") {
  std::vector<HtmlSpan> spans;
  const auto add = [&](HtmlStream stream, bool alternate) {
    for (std::int64_t i = 0; i < 5'000; ++i)
      spans.push_back(span(stream, alternate && i % 2 == 1 ? 1 : 0, i * 10'000'000, i * 10'000'000 + 9'000'000));
    // A long one stays what it is.
    spans.push_back(span(stream, 2, 60'000'000'000, 960'000'000'000));
  };
  add(HtmlStream::compute, false);
  add(HtmlStream::h2d, true);
  const std::vector<HtmlSpan> fewer = joined_spans(spans, 1'000);
  CHECK(fewer.size() <= 1'000);
  CHECK(fewer.size() > 100);  // no coarser than it must be
  std::size_t ops = 0;
  Bytes bytes{0};
  std::size_t of_compute = 0;
  for (std::size_t i = 0; i < fewer.size(); ++i) {
    ops += fewer[i].ops;
    bytes += fewer[i].bytes;
    if (fewer[i].stream == HtmlStream::compute) of_compute += fewer[i].ops;
    if (i > 0 && fewer[i - 1].stream == fewer[i].stream) CHECK(fewer[i - 1].end <= fewer[i].start);
  }
  CHECK(ops == spans.size());
  CHECK(bytes.value == 10 * static_cast<std::int64_t>(spans.size()));
  CHECK(of_compute == 5'001);
  CHECK(std::count_if(fewer.begin(), fewer.end(), [](const HtmlSpan& s) { return s.kind == 2 && s.ops == 1; }) == 2);
}

}  // namespace ebb::reports
