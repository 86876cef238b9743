// The figures of each block of a Cluster, by key: one list, walked by the reader (cluster_yaml.cpp) and the writers
// (cluster_write.cpp) alike, so that none can forget a figure. for_each() has what a file must state,
// for_each_optional() what has a default. `field` takes (key, figure). Not here: plain values (names, counts), which
// each spells out.
#pragma once

#include <type_traits>

#include "models/cluster.hpp"

namespace ebb {

template <class Gpu, class Field>
void for_each(Gpu& gpu, const Field& field) requires std::is_same_v<std::remove_const_t<Gpu>, ebb::Gpu> {
  field("memory", gpu.memory);
  field("context", gpu.context);
  field("hbm", gpu.hbm);
  field("adam", gpu.adam);
  field("adam_foreach", gpu.adam_foreach);
  field("matrix_bf16", gpu.matrix_bf16);
  field("matrix_fp8", gpu.matrix_fp8);
  field("compute_efficiency", gpu.compute_efficiency);
}

template <class Link, class Field>
void for_each(Link& link, const Field& field) requires std::is_same_v<std::remove_const_t<Link>, HostLink> {
  field("h2d", link.h2d);
  field("d2h", link.d2h);
  field("both", link.both);
  field("d2h_weight", link.d2h_weight);
  field("host_one_way", link.host_one_way);
  field("host_both", link.host_both);
  field("latency", link.latency);
}

template <class Host, class Field>
void for_each(Host& host, const Field& field) requires std::is_same_v<std::remove_const_t<Host>, ebb::Host> {
  field("memory", host.memory);
  field("cpu_adam", host.cpu_adam);
  field("pin_seconds_per_gib", host.pin_seconds_per_gib);
}

template <class Calls, class Field>
void for_each(Calls& calls, const Field& field) requires std::is_same_v<std::remove_const_t<Calls>, ebb::Calls> {
  field("launch", calls.launch);
  field("copy", calls.copy);
  field("synchronize", calls.synchronize);
  field("chunk", calls.chunk);
  field("tensor_scan", calls.tensor_scan);
}

template <class Net, class Field>
void for_each(Net& net, const Field& field) requires std::is_same_v<std::remove_const_t<Net>, Interconnect> {
  field("nvlink", net.nvlink);
  field("nvlink_latency", net.nvlink_latency);
  field("network", net.network);
  field("network_latency", net.network_latency);
}

template <class Field>
void for_each(const Topology&, const Field&) {}

template <class Field>
void for_each(const Storage&, const Field&) {}

// The same for figures that have a default.

template <class Block, class Field>
void for_each_optional(Block&, const Field&) {}

template <class Gpu, class Field>
void for_each_optional(Gpu& gpu, const Field& field) requires std::is_same_v<std::remove_const_t<Gpu>, ebb::Gpu> {
  field("kernel_floor", gpu.kernel_floor);
}

template <class Link, class Field>
void for_each_optional(Link& link, const Field& field) requires std::is_same_v<std::remove_const_t<Link>, HostLink> {
  field("both_by_size", link.both_by_size);
  field("pageable_h2d", link.pageable_h2d);
  field("pageable_d2h", link.pageable_d2h);
}

template <class Topology, class Field>
void for_each_optional(Topology& topology,
                       const Field& field) requires std::is_same_v<std::remove_const_t<Topology>, ebb::Topology> {
  field("switch_one_way", topology.switch_one_way);
  field("switch_both", topology.switch_both);
  field("socket_one_way", topology.socket_one_way);
  field("socket_both", topology.socket_both);
  field("socket_memory", topology.socket_memory);
  field("inter_socket", topology.inter_socket);
  field("remote_memory", topology.remote_memory);
}

template <class Host, class Field>
void for_each_optional(Host& host, const Field& field) requires std::is_same_v<std::remove_const_t<Host>, ebb::Host> {
  field("pin_call", host.pin_call);
}

template <class Calls, class Field>
void for_each_optional(Calls& calls,
                       const Field& field) requires std::is_same_v<std::remove_const_t<Calls>, ebb::Calls> {
  field("event", calls.event);
  field("collective", calls.collective);
  field("allocate", calls.allocate);
}

template <class Net, class Field>
void for_each_optional(Net& net, const Field& field) requires std::is_same_v<std::remove_const_t<Net>, Interconnect> {
  field("collective_floor", net.collective_floor);
  field("copy_interference", net.copy_interference);
}

template <class Storage, class Field>
void for_each_optional(Storage& storage,
                       const Field& field) requires std::is_same_v<std::remove_const_t<Storage>, ebb::Storage> {
  field("read", storage.read);
  field("write", storage.write);
}

}  // namespace ebb
