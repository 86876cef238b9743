#include "models/cluster_write.hpp"

#include <fmt/format.h>

#include "models/cluster_figures.hpp"
#include "models/cluster_yaml.hpp"
#include "models/errors.hpp"
#include "models/quantity_text.hpp"

namespace ebb {

namespace {

void write_value(double value, YamlWriter& writer) { writer.field("value", exact_text(value)); }

void write_value(const std::vector<SizedRate>& points, YamlWriter& writer) {
  writer.open("value");
  for (const SizedRate& point : points) writer.field(exact_text(point.bytes), exact_text(point.rate));
  writer.close();
}

template <class Unit, class Rep>
void write_value(Quantity<Unit, Rep> value, YamlWriter& writer) {
  writer.field("value", exact_text(value));
}

template <class Block>
void write_figures(const Block& block, YamlWriter& writer) {
  const auto write = [&](std::string_view key, const auto& figure) {
    writer.open(key);
    write_value(figure.value, writer);
    writer.field("source", figure.source);
    writer.close();
  };
  for_each(block, write);
  for_each_optional(block, [&](std::string_view key, const auto& figure) {
    if (!figure.source.starts_with("default")) write(key, figure);
  });
  writer.close();
}

}  // namespace

void write_cluster(const Cluster& cluster, YamlWriter& writer) {
  writer.field("name", cluster.name);
  writer.field("gpus_per_host", cluster.gpus_per_host);
  writer.open("gpu");
  writer.field("name", cluster.gpu.name);
  write_figures(cluster.gpu, writer);
  writer.open("host_link");
  write_figures(cluster.host_link, writer);
  if (!(cluster.topology == Topology{})) {
    writer.open("topology");
    writer.field("gpus_per_switch", cluster.topology.gpus_per_switch);
    write_figures(cluster.topology, writer);
  }
  writer.open("host");
  writer.field("sockets", cluster.host.sockets);
  write_figures(cluster.host, writer);
  writer.open("calls");
  write_figures(cluster.calls, writer);
  writer.open("interconnect");
  writer.field("nvlink_domain", cluster.interconnect.nvlink_domain);
  write_figures(cluster.interconnect, writer);
  if (cluster.storage == Storage{}) return;
  writer.open("storage");
  write_figures(cluster.storage, writer);
}

std::string write_cluster(const Cluster& cluster) {
  YamlWriter writer;
  write_cluster(cluster, writer);
  return writer.text();
}

namespace {

template <class Value>
std::string flow_text(const Value& value) {
  return exact_text(value);
}

std::string flow_text(const std::vector<SizedRate>& points) {
  std::string text;
  for (const SizedRate& point : points)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", exact_text(point.bytes), exact_text(point.rate));
  return "{" + text + "}";
}

template <class Block>
std::string figure_lines(const Block& block) {
  std::string lines;
  const auto write = [&](std::string_view key, const auto& figure) {
    // Always in quotes: in a flow mapping a plain scalar may not hold commas or braces.
    std::string source = YamlWriter::scalar(figure.source);
    if (source.front() != '"') source = fmt::format("\"{}\"", source);
    lines += fmt::format("  {}: {{value: {}, source: {}}}\n", key, flow_text(figure.value), source);
  };
  for_each(block, write);
  for_each_optional(block, [&](std::string_view key, const auto& figure) {
    if (!figure.source.starts_with("default")) write(key, figure);
  });
  return lines;
}

}  // namespace

std::string cluster_file_text(const Cluster& cluster, std::span<const std::string> comments) {
  std::string text;
  for (const std::string& comment : comments) {
    std::string line = comment;  // a line of its own, whatever is in it
    for (char& c : line)
      if (static_cast<unsigned char>(c) < ' ') c = ' ';
    text += fmt::format("# {}\n", line);
  }
  text += fmt::format("name: {}\ngpus_per_host: {}\n", YamlWriter::scalar(cluster.name), cluster.gpus_per_host);
  text += fmt::format("gpu:\n  name: {}\n", YamlWriter::scalar(cluster.gpu.name)) + figure_lines(cluster.gpu);
  text += "host_link:\n" + figure_lines(cluster.host_link);
  if (!(cluster.topology == Topology{}))
    text += fmt::format("topology:\n  gpus_per_switch: {}\n", cluster.topology.gpus_per_switch) +
            figure_lines(cluster.topology);
  text += fmt::format("host:\n  sockets: {}\n", cluster.host.sockets) + figure_lines(cluster.host);
  text += "calls:\n" + figure_lines(cluster.calls);
  text += fmt::format("interconnect:\n  nvlink_domain: {}\n", cluster.interconnect.nvlink_domain) +
          figure_lines(cluster.interconnect);
  if (!(cluster.storage == Storage{})) text += "storage:\n" + figure_lines(cluster.storage);
  return text;
}

}  // namespace ebb
