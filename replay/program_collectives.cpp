// Collectives: which buckets they move, and which part of them is the rank's own (program.hpp).
#include <fmt/format.h>

#include "replay/program_compiler.hpp"

namespace ebb::replay {

namespace {

/// The collective that reduces the rank's gradients of this kind to its shards: reduce-scatter, or an all-reduce of
/// whole buckets.
const Op* reduction_of(const Plan& plan, bool expert) {
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::collective || op.expert != expert || (op.states & kGrads) == 0) continue;
    if (op.work == Work::reduce_scatter || (op.work == Work::all_reduce && op.range.end > 0)) return &op;
  }
  return nullptr;
}

/// The all-reduce between instances of the optimizer: of the rank's own parts, so without a range.
bool between_instances(const Op& op) {
  return op.kind == OpKind::collective && op.work == Work::all_reduce && (op.states & kGrads) != 0 &&
         op.range.begin == 0 && op.range.end == 0;
}

double data_parallel(const Plan& plan, bool expert) {
  const Op* reduction = reduction_of(plan, expert);
  double size = reduction != nullptr ? reduction->members : 1;
  for (const Op& op : plan.ops) {
    if (!between_instances(op) || op.expert != expert) continue;
    size *= op.members;
    break;
  }
  return size;
}

}  // namespace

float gradient_scale_of(const Plan& plan) {
  bool dense = false;
  for (const PlanBucket& bucket : plan.buckets) dense |= !bucket.expert;
  return 1.0F / static_cast<float>(data_parallel(plan, !dense));
}

ElementRange ProgramCompiler::own_part(ElementRange bucket) const {
  const Op* reduction = reduction_of(plan_, op().expert);
  if (reduction == nullptr || reduction->work != Work::reduce_scatter) return bucket;
  const std::int64_t members = reduction->members;
  if (bucket.numel().value % members != 0) reject("a bucket does not divide into equal parts");
  const std::int64_t part = bucket.numel().value / members;
  const std::int64_t place = plan_.rank / reduction->stride % members;
  return {bucket.begin + place * part, bucket.begin + (place + 1) * part};
}

Action ProgramCompiler::collective() {
  if (op().members > 1 && plan_.rank < 0) reject("is of a rank below 0");
  if (op().buffer.valid()) {
    live(op().buffer, "the norm");
    if (op().work == Work::all_reduce && buffer_of(op().buffer).role == Role::largest) {
      if (op().bytes.value < 0 || op().bytes.value % 4 != 0) reject("is of no whole number of fp32");
      room(op().buffer, op().bytes);
      return LargestCollective{op().buffer, {op().bytes.value / 4}};
    }
    if (op().work != Work::all_reduce || buffer_of(op().buffer).role != Role::norm)
      reject("is no collective of parameters, gradients or their norm");
    room(op().buffer, Bytes{NormWords::kNonFinite + 4});
    return NormCollective{op().buffer};
  }
  return parameters_or_gradients();
}

Action ProgramCompiler::parameters_or_gradients() {
  const bool params = op().states == kParams && op().work == Work::all_gather;
  const bool grads = op().states == kGrads && (op().work == Work::reduce_scatter || op().work == Work::all_reduce);
  if (!params && !grads) reject("is no collective of parameters, gradients or their norm");
  BucketCollective all{.work = op().work,
                       .buffer = params ? program_.params : program_.grads,
                       .type = params ? plan_.precision.params : plan_.precision.grads,
                       .buckets = {}};
  const bool everything = op().range.begin == 0 && op().range.end == 0;
  const ElementRange range = everything ? ElementRange{0, program_.padded.value} : op().range;
  const bool in_bytes = params && parameters_.any_quantized();
  Bytes sum{0};
  for (const PlanBucket& bucket : plan_.buckets) {
    if (bucket.expert != op().expert || bucket.numel().value == 0) continue;
    ElementRange elements{bucket.begin.value, bucket.end.value};
    if (elements.end <= range.begin || elements.begin >= range.end) continue;
    if (elements.begin < range.begin || elements.end > range.end) reject("its range cuts a bucket");
    if (between_instances(op()))
      elements = own_part(elements);
    else if (op().work != Work::all_reduce && elements.numel().value % op().members != 0)
      reject("a bucket does not divide into equal parts");
    if (in_bytes) {
      sum += add_bytes(all, bucket);
      continue;
    }
    all.buckets.push_back(elements);
    sum += bytes_of(elements.numel(), size_of(all.type));
  }
  if (all.buckets.empty() && all.bytes.empty()) reject("no bucket of its kind lies in its range");
  if (sum != op().bytes) reject(fmt::format("says {} bytes, but its buckets have {}", op().bytes.value, sum.value));
  return all;
}

/// A bucket of a parameter buffer with quantised ones: where it lies depends on all before it, so it is named by bytes.
/// MXFP8's column-wise copies lie in the same order, quantised buckets alone.
Bytes ProgramCompiler::add_bytes(BucketCollective& all, const PlanBucket& bucket) const {
  const std::int64_t size = bucket.quantized ? 1 : size_of(plan_.precision.params);
  const Bytes bytes = bytes_of(bucket.numel(), size);
  all.bytes.push_back({program_.params, parameters_.at(bucket.begin.value), bytes});
  const Quantized& quantized = *program_.quantized;
  if (!bucket.quantized || quantized.recipe != Fp8Recipe::mxfp8 || !quantized.columns.valid()) return bytes;
  live(quantized.columns, "column-wise copies");
  Bytes at{0};
  for (const PlanBucket& other : plan_.buckets)
    if (other.quantized && other.begin < bucket.begin) at += bytes_of(other.numel(), 1);
  all.bytes.push_back({quantized.columns, at, bytes});
  return bytes * 2;
}

}  // namespace ebb::replay
