#include "replay/reference_collectives.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/access_ref.hpp"
#include "replay/quantized_reference.hpp"

namespace ebb::replay {

namespace {

void gather(std::span<const Member> members, const std::vector<std::byte*>& data, ElementRange bucket,
            std::int64_t size) {
  const std::int64_t part = bucket.numel().value / static_cast<std::int64_t>(members.size());
  for (std::size_t owner = 0; owner < members.size(); ++owner) {
    const std::int64_t at = (bucket.begin + static_cast<std::int64_t>(owner) * part) * size;
    for (std::size_t to = 0; to < members.size(); ++to)
      if (to != owner) std::memcpy(data[to] + at, data[owner] + at, static_cast<std::size_t>(part * size));
  }
}

void reduce(const std::vector<std::byte*>& data, ElementRange bucket, Dtype dtype, bool scatter) {
  const kernels::Type type = kernel_type(dtype);
  const auto members = static_cast<std::int64_t>(data.size());
  const std::int64_t part = ceil_div(bucket.numel().value, members);
  for (std::int64_t i = 0; i < bucket.numel().value; ++i) {
    const std::int64_t at = (bucket.begin + i) * size_of(dtype);
    const std::int64_t owner = i / part;
    const auto of = [&](std::int64_t member) {
      return reinterpret_cast<char*>(data[static_cast<std::size_t>(member % members)] + at);
    };
    float sum = kernels::read_value(type, of(owner + 1));
    for (std::int64_t hop = 2; hop <= members; ++hop) {
      sum = kernels::canonical(sum + kernels::read_value(type, of(owner + hop)));
      if (type == kernels::Type::bf16) sum = kernels::fp32_from_bf16(kernels::bf16_from_fp32(sum));
    }
    for (std::int64_t to = 0; to < members; ++to)
      if (!scatter || to == owner) kernels::write_value(type, of(to), sum);
  }
}

}  // namespace

bool same_collective(const Action& a, const Action& b) {
  if (a.index() != b.index()) return false;
  const auto* left = std::get_if<BucketCollective>(&a);
  const auto* right = std::get_if<BucketCollective>(&b);
  if (const auto* largest = std::get_if<LargestCollective>(&a))
    return largest->numel == std::get<LargestCollective>(b).numel;
  if (left == nullptr) return std::holds_alternative<NormCollective>(a);
  const auto same_part = [](const BucketCollective::Part& x, const BucketCollective::Part& y) {
    return x.at == y.at && x.bytes == y.bytes;
  };
  return left->work == right->work && left->type == right->type && left->buckets == right->buckets &&
         std::equal(left->bytes.begin(), left->bytes.end(), right->bytes.begin(), right->bytes.end(), same_part);
}

void exchange(std::span<const Member> members) {
  std::vector<std::byte*> data;
  const Action& action = members.front().rank->action(members.front().op);
  if (std::holds_alternative<NormCollective>(action)) {
    for (const Member& member : members)
      data.push_back(member.rank->data(std::get<NormCollective>(member.rank->action(member.op)).norm));
    return reduce(data, {0, 1}, Dtype::fp32, false);
  }
  if (const auto* largest = std::get_if<LargestCollective>(&action)) {
    std::vector<float*> values;
    for (const Member& member : members)
      values.push_back(reinterpret_cast<float*>(
          member.rank->data(std::get<LargestCollective>(member.rank->action(member.op)).largest)));
    return largest_maximum_ref(values, largest->numel);
  }
  const auto& what = std::get<BucketCollective>(action);
  for (std::size_t p = 0; p < what.bytes.size(); ++p) {
    std::vector<std::byte*> parts;
    for (const Member& member : members)
      parts.push_back(member.rank->data(std::get<BucketCollective>(member.rank->action(member.op)).bytes[p].buffer));
    const std::int64_t at = what.bytes[p].at.value;
    gather(members, parts, {at, at + what.bytes[p].bytes.value}, 1);
  }
  for (const Member& member : members)
    data.push_back(member.rank->data(std::get<BucketCollective>(member.rank->action(member.op)).buffer));
  for (const ElementRange& bucket : what.buckets) {
    if (what.work == Work::all_gather)
      gather(members, data, bucket, size_of(what.type));
    else
      reduce(data, bucket, what.type, what.work == Work::reduce_scatter);
  }
}

}  // namespace ebb::replay
