// The schema of a cluster. Which figures a block has, and of which kind, comes from cluster_figures.hpp, the list that
// its reader walks; what each means stands here, and a figure without a description is a bug.
#include <fmt/format.h>

#include <map>

#include "models/cluster_figures.hpp"
#include "models/errors.hpp"
#include "models/schema/schema_parts.hpp"

namespace ebb::schema {

namespace {

/// As "block.figure".
const std::map<std::string, std::string_view>& descriptions() {
  static const std::map<std::string, std::string_view> texts = {
      {"gpu.memory", "Device memory as the driver reports it"},
      {"gpu.context", "CUDA context and NCCL buffers, outside the allocator"},
      {"gpu.hbm", "Achieved device-to-device copy, reads + writes"},
      {"gpu.adam", "Achieved by fused Adam over the bytes it must move"},
      {"gpu.adam_foreach", "The same of unfused, multi-tensor Adam"},
      {"gpu.matrix_bf16", "Achieved dense matrix product on random data, bf16"},
      {"gpu.matrix_fp8", "The same in FP8"},
      {"gpu.compute_efficiency", "Part of that rate that a whole training step reaches, 0 to 1"},
      {"gpu.kernel_floor", "What a memory-bound kernel takes on the device beyond its bytes"},
      {"host_link.h2d", "One GPU from pinned host memory, alone"},
      {"host_link.d2h", "One GPU to pinned host memory, alone"},
      {"host_link.both", "Both directions at once, their sum"},
      {"host_link.d2h_weight", "Share of `both` that device-to-host takes for each unit of host-to-device (1: even)"},
      {"host_link.host_one_way", "All GPUs of a host in one direction, their sum"},
      {"host_link.host_both", "All GPUs of a host in both directions, their sum"},
      {"host_link.latency", "Of each copy, back to back on a stream"},
      {"host_link.both_by_size", "`both` by the bytes of a copy, ascending: {64MiB: 98.5GB/s, 1GiB: 93.7GB/s}"},
      {"host_link.pageable_h2d", "From memory that is not pinned, alone"},
      {"host_link.pageable_d2h", "To memory that is not pinned, alone"},
      {"topology.switch_one_way", "A PCIe switch's uplink, each direction"},
      {"topology.switch_both", "... both directions together"},
      {"topology.socket_one_way", "A socket's root complex, each direction"},
      {"topology.socket_both", "... both directions together"},
      {"topology.socket_memory", "A socket's memory, reads + writes"},
      {"topology.inter_socket", "Between two sockets, each direction"},
      {"topology.remote_memory", "Part of the pinned memory that lies on another socket than its GPU, 0 to 1"},
      {"host.memory", "Memory of a host"},
      {"host.cpu_adam", "Adam on the CPU over its 28 bytes an element, all GPUs of the host together"},
      {"host.pin_seconds_per_gib", "Seconds that pinning a GiB takes"},
      {"host.pin_call", "... beyond that, of each call"},
      {"calls.launch", "A kernel launch"},
      {"calls.copy", "Enqueueing an asynchronous copy"},
      {"calls.synchronize", "The host's wait for a stream, beyond the waiting itself"},
      {"calls.chunk", "Fixed cost of the framework for a chunk"},
      {"calls.tensor_scan", "Cost of the framework for a parameter and pass over the list of parameters"},
      {"calls.event", "Recording an event or waiting for one"},
      {"calls.collective", "Enqueueing a collective"},
      {"calls.allocate", "An allocation that the caching allocator answers from what it has"},
      {"interconnect.nvlink", "Bus bandwidth of collectives for a GPU inside an NVLink domain"},
      {"interconnect.nvlink_latency", "Of one step of an NCCL ring there"},
      {"interconnect.network", "A GPU between hosts, one direction"},
      {"interconnect.network_latency", "Of one step of an NCCL ring there"},
      {"interconnect.collective_floor", "The least that a collective takes"},
      {"interconnect.copy_interference",
       "How much a collective slows down while its GPUs' host links are full, 0 to 1"},
      {"storage.read", "Checkpoints, read by all ranks of a host together"},
      {"storage.write", "Checkpoints, written by all ranks of a host together"},
  };
  return texts;
}

constexpr double kMostRatio = 1e300;

Json value_schema(const Bytes&, std::string_view text) { return yaml_bytes(text); }
Json value_schema(const BytesPerSecond&, std::string_view text) { return yaml_rate(text); }
Json value_schema(const FlopsPerSecond&, std::string_view text) { return yaml_flops(text); }
Json value_schema(const Seconds&, std::string_view text) { return yaml_seconds(text); }
Json value_schema(const double&, std::string_view text) { return yaml_ratio(text, 0, kMostRatio); }
Json value_schema(const std::vector<SizedRate>&, std::string_view text) {
  Json schema = mapping(text, yaml_rate("Rate of copies of this size"));
  schema["propertyNames"] = {{"pattern", bytes_pattern()}};
  schema["minProperties"] = 1;
  return schema;
}

Json source_schema() {
  Json schema = text("Where the value comes from: begins with measured, datasheet or report, and says which.");
  schema["pattern"] = "^(measured|datasheet|report)[: ]...*";
  return schema;
}

template <class Block>
Json block_schema(std::string_view name, std::string_view description, std::vector<Field> fields) {
  const auto add = [&](std::string_view key, const auto& figure, Presence presence) {
    const std::string_view text = figure_description(name, key);
    fields.push_back(
        {std::string(key),
         object(text, {{"value", value_schema(figure.value, text), required}, {"source", source_schema(), required}}),
         presence});
  };
  const Block block;
  for_each(block, [&](std::string_view key, const auto& figure) { add(key, figure, required); });
  for_each_optional(block, [&](std::string_view key, const auto& figure) { add(key, figure, optional); });
  return object(description, fields);
}

}  // namespace

std::string_view figure_description(std::string_view block, std::string_view key) {
  const auto text = descriptions().find(fmt::format("{}.{}", block, key));
  EBB_ASSERT(text != descriptions().end());
  return text->second;
}

Json cluster_schema() {
  return object(
      "What the hardware can do; every figure says where it comes from.",
      {{"name", yaml_text("Name in answers (default: the file's).")},
       {"gpus_per_host", yaml_count("GPUs of a host.", 1, 1024), required},
       {"gpu", block_schema<Gpu>("gpu", "One GPU.", {{"name", yaml_text("What the driver calls it."), required}}),
        required},
       {"host_link",
        block_schema<HostLink>("host_link", "A GPU's link to host memory, and what the host sustains for all.", {}),
        required},
       {"topology", block_schema<Topology>("topology", "What lies between the links and host memory.",
                                           {{"gpus_per_switch", yaml_count("GPUs behind one PCIe switch.", 1, 1024)}})},
       {"host",
        block_schema<Host>("host", "CPUs and memory.", {{"sockets", yaml_count("CPU sockets of a host.", 1, 64)}}),
        required},
       {"calls", block_schema<Calls>("calls", "What calls cost the CPU thread of a rank.", {}), required},
       {"interconnect",
        block_schema<Interconnect>(
            "interconnect", "NVLink and network.",
            {{"nvlink_domain", yaml_count("GPUs that reach each other over NVLink.", 1, 100'000), required}}),
        required},
       {"storage", block_schema<Storage>("storage", "What checkpoints are written to and read from.", {})}});
}

std::string cluster_document() { return document("cluster", 1, "Cluster of Ebb", cluster_schema()); }

}  // namespace ebb::schema
