#include "replay/calibrate_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/errors.hpp"
#include "models/json_fields.hpp"

namespace ebb::replay {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 60;

// One list of fields for each record, walked by the writer and the reader alike.
void fields(auto& r, const auto& f) requires requires { r.driver; }
{
  f("gpu", r.gpu), f("gpus", r.gpus), f("driver", r.driver), f("cuda", r.cuda), f("nccl", r.nccl), f("date", r.date);
  f("command", r.command), f("memory", r.memory), f("context", r.context), f("host_memory", r.host_memory);
  f("host_threads", r.host_threads), f("peers", r.peers);
}
void fields(auto& r, const auto& f) requires requires { r.to_device; }
{
  f("to_device", r.to_device), f("pinned", r.pinned), f("mixed", r.mixed), f("gpu", r.gpu), f("bytes", r.bytes),
      f("calls", r.calls);
  f("s", r.all);
}
void fields(auto& r, const auto& f) requires requires { r.window; }
{ f("gpu", r.gpu), f("gpus", r.gpus), f("bytes", r.bytes), f("window_s", r.window), f("h2d", r.h2d), f("d2h", r.d2h); }
void fields(auto& r, const auto& f) requires requires { r.seconds; }
{ f("what", r.what), f("bytes", r.bytes), f("calls", r.calls), f("s", r.seconds); }
void fields(auto& r, const auto& f) requires requires { r.threads; }
{ f("numel", r.numel), f("threads", r.threads), f("s", r.each); }
void fields(auto& r, const auto& f) requires requires { r.link_use; }
{ f("work", r.work), f("members", r.members), f("bytes", r.bytes), f("link_use", r.link_use), f("s", r.each); }
void fields(auto& r, const auto& f) requires(
    requires {
      r.what;
      r.each;
    } &&
    !requires { r.bytes; }) {
  f("what", r.what), f("s", r.each);
}
void fields(auto& r, const auto& f) requires requires {
  r.what;
  r.each;
  r.bytes;
}
{ f("what", r.what), f("bytes", r.bytes), f("s", r.each); }

/// Walks every table with its name.
void tables(auto& data, const auto& table) {
  table("copy", data.copies);
  table("flow", data.flows);
  table("pin", data.pins);
  table("call", data.calls);
  table("kernel", data.kernels);
  table("host_adam", data.host_adam);
  table("collective", data.collectives);
}

struct Writer {
  Json& json;

  void operator()(const char* key, const Timed& t) const {
    json[key] = t.median;
    json["least"] = t.least;
    json["most"] = t.most;
    json["repeats"] = t.repeats;
  }
  void operator()(const char* key, Work work) const { json[key] = std::string(name_of(work)); }
  template <class Unit, class Rep>
  void operator()(const char* key, const Quantity<Unit, Rep>& q) const {
    json[key] = q.value;
  }
  template <class T>
  void operator()(const char* key, const T& value) const {
    json[key] = value;
  }
};

struct Reader {
  const JsonValue& line;

  void operator()(const char* key, Timed& t) const {
    t = {.median = line.at(key).number(), .least = line.at("least").number(), .most = line.at("most").number()};
    t.repeats = line.at("repeats").integer(1, kMost);
    if (!(t.median > 0)) line.at(key).reject("it is no time above 0", "measure again");
  }
  void operator()(const char* key, Work& work) const {
    for (const Work known : {Work::all_gather, Work::reduce_scatter, Work::all_reduce}) {
      work = known;
      if (name_of(known) == line.at(key).text()) return;
    }
    line.at(key).reject("it is no collective of a calibration", "use all-gather, reduce-scatter or all-reduce");
  }
  template <class Unit, class Rep>
  void operator()(const char* key, Quantity<Unit, Rep>& q) const {
    // What was measured had a size; only a setting may not know one.
    q.value = line.at(key).integer(line.at("k").text() == "setting" ? 0 : 1, kMost);
  }
  void operator()(const char* key, std::int64_t& value) const { value = line.at(key).integer(0, kMost); }
  void operator()(const char* key, double& value) const {
    value = line.at(key).number();
    const bool time = std::string_view(key).ends_with('s');
    if (!(time ? value > 0 : value >= 0)) line.at(key).reject("it is too small", "measure again");
  }
  void operator()(const char* key, bool& value) const { value = line.at(key).boolean(); }
  void operator()(const char* key, std::string& value) const { value = line.at(key).text(); }
};

template <class Record>
std::string line_of(const char* kind, const Record& record) {
  Json json;
  json["k"] = kind;
  fields(record, Writer{json});
  return dump(json) + "\n";
}

void read_line(const JsonValue& line, CalibrationData& data) {
  const std::string kind = line.at("k").text();
  if (kind == "setting") return fields(data.setting, Reader{line});
  bool known = false;
  tables(data, [&](std::string_view name, auto& records) {
    if (name != kind) return;
    known = true;
    fields(records.emplace_back(), Reader{line});
  });
  if (!known) line.at("k").reject(fmt::format("\"{}\" is no table of a calibration", kind), "calibrate again");
}

}  // namespace

Timed timed(std::vector<double> seconds) {
  EBB_ASSERT(!seconds.empty());
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  return {.median = n % 2 == 1 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2,
          .least = seconds.front(),
          .most = seconds.back(),
          .repeats = static_cast<std::int64_t>(n)};
}

std::string calibration_lines(const CalibrationData& data) {
  std::string text = line_of("setting", data.setting);
  tables(data, [&](const char* name, const auto& records) {
    for (const auto& record : records) text += line_of(name, record);
  });
  return text;
}

CalibrationData read_calibration(std::string_view text, const std::string& file) {
  CalibrationData data;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const std::string where = fmt::format("{}:{}", file, number);
    const Json json = parse_json(line, where, "write it with ebb-replay calibrate --raw");
    read_line(JsonValue(json, "", where), data);
  }
  if (data.setting.gpu.empty())
    throw InputError({file, 0, 0}, "it does not say which GPU was measured",
                     "write it with ebb-replay calibrate --raw");
  return data;
}

}  // namespace ebb::replay
