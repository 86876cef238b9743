// Perfetto's trace format: a sequence of TracePackets in protobuf, each a descriptor of a track or an event on one.
// Field numbers are those of perfetto/protos/perfetto/trace/{trace,trace_packet}.proto and track_event/*.proto, part of
// its stable API. Strings are written in place, not interned: a reader needs no state.
#include <algorithm>
#include <protozero/pbf_builder.hpp>
#include <tuple>
#include <vector>

#include "reports/trace_formats.hpp"
#include "reports/trace_process.hpp"

namespace ebb::reports {

namespace {

using protozero::pbf_builder;
using Tag = protozero::pbf_tag_type;

enum class TraceField : Tag { packet = 1 };
enum class PacketField : Tag {
  timestamp = 8,
  trusted_packet_sequence_id = 10,
  track_event = 11,
  sequence_flags = 13,
  track_descriptor = 60,
};
enum class EventField : Tag {
  debug_annotations = 4,
  type = 9,
  track_uuid = 11,
  categories = 22,
  name = 23,
  counter_value = 30,
  flow_ids = 47,
  terminating_flow_ids = 48,
};
enum class AnnotationField : Tag { int_value = 4, string_value = 6, name = 10 };
enum class TrackField : Tag { uuid = 1, name = 2, process = 3, thread = 4, parent_uuid = 5, counter = 8 };
enum class ProcessField : Tag { pid = 1, process_name = 6 };
enum class ThreadField : Tag { pid = 1, tid = 2, thread_name = 5 };
enum class CounterField : Tag { unit = 3 };

enum EventType : std::int32_t { kSliceBegin = 1, kSliceEnd = 2, kCounter = 4 };
constexpr std::int32_t kUnitSizeBytes = 3;
constexpr std::uint32_t kIncrementalStateCleared = 1;  // nothing before this packet is needed to read what follows
constexpr std::uint32_t kSequence = 1;                 // all packets are of one writer

/// The same number names a track and, where it is a process or a thread, that.
using Uuid = std::int32_t;

class Writer {
 public:
  void process(const TracedPlan& part) {
    const TraceProcess process = trace_process(*part.plan, *part.timeline, next_flow_);
    const Uuid pid = next_uuid_++;
    describe_process(pid, process.name);
    const Uuid first_track = next_uuid_;
    for (const std::string& track : process.tracks) describe_thread(pid, track);
    for (const TraceCounter& counter : process.counters) {
      const Uuid uuid = describe_counter(pid, counter.name);
      for (const TraceSample& sample : counter.samples) count(uuid, sample);
    }
    slices(part, process, first_track);
  }

  std::string take() { return std::move(data_); }

 private:
  pbf_builder<PacketField> packet() {
    pbf_builder<PacketField> packet(trace_, TraceField::packet);
    packet.add_uint32(PacketField::trusted_packet_sequence_id, kSequence);
    return packet;
  }

  void describe_process(Uuid pid, const std::string& name) {
    pbf_builder<PacketField> at = packet();
    if (pid == 1) at.add_uint32(PacketField::sequence_flags, kIncrementalStateCleared);
    pbf_builder<TrackField> track(at, PacketField::track_descriptor);
    track.add_uint64(TrackField::uuid, static_cast<std::uint64_t>(pid));
    pbf_builder<ProcessField> process(track, TrackField::process);
    process.add_int32(ProcessField::pid, pid);
    process.add_string(ProcessField::process_name, name);
  }

  void describe_thread(Uuid pid, const std::string& name) {
    const Uuid tid = next_uuid_++;
    pbf_builder<PacketField> at = packet();
    pbf_builder<TrackField> track(at, PacketField::track_descriptor);
    track.add_uint64(TrackField::uuid, static_cast<std::uint64_t>(tid));
    track.add_uint64(TrackField::parent_uuid, static_cast<std::uint64_t>(pid));
    pbf_builder<ThreadField> thread(track, TrackField::thread);
    thread.add_int32(ThreadField::pid, pid);
    thread.add_int32(ThreadField::tid, tid);
    thread.add_string(ThreadField::thread_name, name);
  }

  Uuid describe_counter(Uuid pid, std::string_view name) {
    const Uuid uuid = next_uuid_++;
    pbf_builder<PacketField> at = packet();
    pbf_builder<TrackField> track(at, PacketField::track_descriptor);
    track.add_uint64(TrackField::uuid, static_cast<std::uint64_t>(uuid));
    track.add_uint64(TrackField::parent_uuid, static_cast<std::uint64_t>(pid));
    track.add_string(TrackField::name, name.data(), name.size());
    pbf_builder<CounterField> counter(track, TrackField::counter);
    counter.add_enum(CounterField::unit, kUnitSizeBytes);
    return uuid;
  }

  void count(Uuid uuid, const TraceSample& sample) {
    pbf_builder<PacketField> at = packet();
    at.add_uint64(PacketField::timestamp, static_cast<std::uint64_t>(sample.ns));
    pbf_builder<EventField> event(at, PacketField::track_event);
    event.add_enum(EventField::type, kCounter);
    event.add_uint64(EventField::track_uuid, static_cast<std::uint64_t>(uuid));
    event.add_int64(EventField::counter_value, sample.bytes.value);
  }

  /// In time order. What happens in one nanosecond is in the order of ops, so that a slice ends before the next on its
  /// track begins, and an arrow's begin is met before its end.
  void slices(const TracedPlan& part, const TraceProcess& process, Uuid first_track) {
    std::vector<std::tuple<std::int64_t, std::uint32_t, bool>> moments;
    moments.reserve(2 * process.slices.size());
    for (std::uint32_t i = 0; i < process.slices.size(); ++i) {
      moments.emplace_back(process.slices[i].begin_ns, i, false);
      moments.emplace_back(process.slices[i].end_ns, i, true);
    }
    std::sort(moments.begin(), moments.end());
    for (const auto& [ns, op, ends] : moments) {
      const Uuid uuid = first_track + static_cast<Uuid>(process.slices[op].track);
      pbf_builder<PacketField> at = packet();
      at.add_uint64(PacketField::timestamp, static_cast<std::uint64_t>(ns));
      pbf_builder<EventField> event(at, PacketField::track_event);
      event.add_enum(EventField::type, ends ? kSliceEnd : kSliceBegin);
      event.add_uint64(EventField::track_uuid, static_cast<std::uint64_t>(uuid));
      if (!ends) begin(part, op, process.slices[op], event);
    }
  }

  static void begin(const TracedPlan& part, std::uint32_t id, const TraceSlice& slice, pbf_builder<EventField>& event) {
    const Op& op = part.plan->ops[id];
    const std::string_view phase = name_of(op.phase);
    const std::string_view name = slice_name(op);
    event.add_string(EventField::categories, phase.data(), phase.size());
    event.add_string(EventField::name, name.data(), name.size());
    for_each_argument(
        *part.plan, *part.timeline, id,
        [&](std::string_view key, std::string_view value) {
          pbf_builder<AnnotationField> annotation(event, EventField::debug_annotations);
          annotation.add_string(AnnotationField::name, key.data(), key.size());
          annotation.add_string(AnnotationField::string_value, value.data(), value.size());
        },
        [&](std::string_view key, std::int64_t value) {
          pbf_builder<AnnotationField> annotation(event, EventField::debug_annotations);
          annotation.add_string(AnnotationField::name, key.data(), key.size());
          annotation.add_int64(AnnotationField::int_value, value);
        });
    for (const std::uint64_t flow : slice.flows_out) event.add_fixed64(EventField::flow_ids, flow);
    for (const std::uint64_t flow : slice.flows_in) event.add_fixed64(EventField::terminating_flow_ids, flow);
  }

  std::string data_;
  pbf_builder<TraceField> trace_{data_};
  Uuid next_uuid_ = 1;
  std::uint64_t next_flow_ = 1;
};

}  // namespace

std::string perfetto_trace(std::span<const TracedPlan> parts) {
  Writer writer;
  for (const TracedPlan& part : parts) writer.process(part);
  return writer.take();
}

}  // namespace ebb::reports
