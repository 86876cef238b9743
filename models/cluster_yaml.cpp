#include "models/cluster_yaml.hpp"

#include <fmt/format.h>

#include <type_traits>

#include "models/cluster_figures.hpp"
#include "models/quantity_text.hpp"
#include "models/text_file.hpp"
#include "models/yaml_fields.hpp"

namespace ebb {

namespace {

/// Sizes of one `both_by_size`: the simulator keeps a rate for each.
constexpr std::size_t kMostSizes = 8;

void parse_value(const std::string& text, const Place& place, Bytes& out) { out = parse_bytes(text, place); }
void parse_value(const std::string& text, const Place& place, BytesPerSecond& out) {
  out = parse_bandwidth(text, place);
}
void parse_value(const std::string& text, const Place& place, FlopsPerSecond& out) {
  out = parse_flop_rate(text, place);
}
void parse_value(const std::string& text, const Place& place, Seconds& out) { out = parse_seconds(text, place); }
void parse_value(const std::string& text, const Place& place, double& out) { out = parse_ratio(text, place); }

void read_value(const YamlFields& figure, const YamlNode& value, auto& out) {
  parse_value(figure.scalar("value", value), value.place, out);
}

/// A mapping from sizes to rates, ascending.
void read_value(const YamlFields& figure, const YamlNode& value, std::vector<SizedRate>& out) {
  if (value.kind != YamlNode::Kind::map || value.entries.empty())
    throw InputError(value.place, fmt::format("\"{}\" is {}", figure.full_name("value"), value.description()),
                     "write a mapping from sizes to rates: {64MiB: 99.97GB/s, 1GiB: 97.75GB/s}");
  out.clear();
  for (const YamlEntry& entry : value.entries) {
    SizedRate point;
    point.bytes = parse_bytes(entry.key, entry.key_place);
    parse_value(figure.scalar("value", entry.value), entry.value.place, point.rate);
    if (point.rate.value == 0) throw InputError(entry.value.place, "the rate is zero", "use a positive value");
    if (point.bytes.value == 0 || (!out.empty() && point.bytes <= out.back().bytes))
      throw InputError(entry.key_place, "the sizes do not ascend", "list each size once, the smallest first");
    if (out.size() == kMostSizes)
      throw InputError(entry.key_place, fmt::format("more than {} sizes", kMostSizes), "leave out some");
    out.push_back(point);
  }
}

double magnitude(const std::vector<SizedRate>& points) { return points.empty() ? 0 : 1; }

template <class T>
double magnitude(const T& quantity) {
  if constexpr (std::is_same_v<T, double>)
    return quantity;
  else
    return static_cast<double>(quantity.value);
}

void check_source(const YamlFields& figure, const std::string& source) {
  for (const std::string_view kind : {"measured", "datasheet", "report"})
    if (source.starts_with(kind) && source.size() > kind.size() + 3 &&
        (source[kind.size()] == ':' || source[kind.size()] == ' '))
      return;
  throw InputError(figure.place_of("source"),
                   fmt::format("\"{}\" is {}", figure.full_name("source"), figure.require("source").description()),
                   "begin it with measured, datasheet or report, and say which: \"measured: one H200, driver 580\"");
}

/// One figure.
template <class T>
void read_figure(const YamlFields& block, std::string_view key, Sourced<T>& out, bool is_share) {
  block.require(key);
  const auto figure = block.nested(key, {"value", "source"});
  const YamlNode& value = figure->require("value");
  figure->require("source");
  read_value(*figure, value, out.value);
  figure->text("source", out.source);
  check_source(*figure, out.source);
  // Only latencies, call costs and optional shares may be nothing: without a rate the simulated clock would stop.
  if (magnitude(out.value) == 0 && !is_share && !std::is_same_v<T, Seconds>)
    throw InputError(value.place, fmt::format("\"{}\" is zero", block.full_name(key)), "use a positive value");
  if (is_share && magnitude(out.value) > 1)
    throw InputError(value.place, fmt::format("\"{}\" is above 1", block.full_name(key)), "use a value from 0 to 1");
}

/// A block's figures. What a file may leave out has a default that names its source; everything else is needed: a
/// made-up default would hide where an answer comes from.
template <class Block>
YamlFields read_block(const YamlFields& cluster, std::string_view key, Block& out,
                      std::vector<std::string_view> plain_keys) {
  cluster.require(key);
  std::vector<std::string_view> keys = std::move(plain_keys);
  for_each(out, [&](std::string_view figure, auto&) { keys.push_back(figure); });
  for_each_optional(out, [&](std::string_view figure, auto&) { keys.push_back(figure); });
  YamlFields fields = *cluster.nested(key, std::move(keys));
  for_each(out, [&](std::string_view figure, auto& value) { read_figure(fields, figure, value, false); });
  for_each_optional(out, [&](std::string_view figure, auto& value) {
    constexpr bool is_share = std::is_same_v<std::remove_cvref_t<decltype(value.value)>, double>;
    if (fields.find(figure) != nullptr) read_figure(fields, figure, value, is_share);
  });
  return fields;
}

void check(const YamlFields& gpu, const YamlFields& link, const Cluster& cluster) {
  const auto value_place = [](const YamlFields& block, std::string_view key) {
    return block.nested(key, {"value", "source"})->place_of("value");
  };
  if (cluster.gpu.context.value >= cluster.gpu.memory.value)
    throw InputError(value_place(gpu, "context"), "the context fills the whole memory", "use less than gpu.memory");
  if (cluster.gpu.compute_efficiency.value > 1)
    throw InputError(value_place(gpu, "compute_efficiency"), "an efficiency above 1", "use a value from 0 to 1");
  if (cluster.host_link.both.value > cluster.host_link.h2d.value + cluster.host_link.d2h.value)
    throw InputError(value_place(link, "both"), "both directions together are faster than each alone",
                     "use at most h2d + d2h");
  for (const SizedRate& point : cluster.host_link.both_by_size.value)
    if (point.rate > cluster.host_link.h2d.value + cluster.host_link.d2h.value)
      throw InputError(value_place(link, "both_by_size"), "both directions together are faster than each alone",
                       "use at most h2d + d2h");
}

}  // namespace

Cluster read_cluster(const YamlNode& node, const std::string& name, const std::string& path) {
  const YamlFields fields(
      node, path,
      {"name", "gpus_per_host", "gpu", "host_link", "topology", "host", "calls", "interconnect", "storage"});
  Cluster cluster;
  cluster.name = name;
  fields.text("name", cluster.name);
  fields.require("gpus_per_host");
  fields.count("gpus_per_host", cluster.gpus_per_host, 1, 1024);
  const YamlFields gpu = read_block(fields, "gpu", cluster.gpu, {"name"});
  gpu.require("name");
  gpu.text("name", cluster.gpu.name);
  const YamlFields link = read_block(fields, "host_link", cluster.host_link, {});
  if (fields.find("topology") != nullptr) {
    const YamlFields topology = read_block(fields, "topology", cluster.topology, {"gpus_per_switch"});
    topology.count("gpus_per_switch", cluster.topology.gpus_per_switch, 1, 1024);
  }
  const YamlFields host = read_block(fields, "host", cluster.host, {"sockets"});
  host.count("sockets", cluster.host.sockets, 1, 64);
  read_block(fields, "calls", cluster.calls, {});
  const YamlFields net = read_block(fields, "interconnect", cluster.interconnect, {"nvlink_domain"});
  net.require("nvlink_domain");
  net.count("nvlink_domain", cluster.interconnect.nvlink_domain, 1, 100'000);
  if (fields.find("storage") != nullptr) read_block(fields, "storage", cluster.storage, {});
  check(gpu, link, cluster);
  return cluster;
}

Cluster load_cluster(const std::filesystem::path& file) {
  const std::string text = read_text_file(file, kMostYamlBytes);
  return read_cluster(parse_yaml(text, file.string()), file.stem().string());
}

std::vector<std::string> default_figures(const Cluster& cluster) {
  std::vector<std::string> list;
  const auto collect = [&](std::string_view block_name, const auto& block) {
    for_each_optional(block, [&](std::string_view key, const auto& figure) {
      if (figure.source.starts_with("default") && !figure.source.ends_with("does not bind"))
        list.push_back(fmt::format("{}.{} ({})", block_name, key, figure.source));
    });
  };
  collect("host_link", cluster.host_link);
  collect("topology", cluster.topology);
  collect("host", cluster.host);
  collect("calls", cluster.calls);
  collect("interconnect", cluster.interconnect);
  return list;
}

}  // namespace ebb
