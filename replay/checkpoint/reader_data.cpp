// What a Reader hands out once it has looked at the checkpoint, and what a job may demand of it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/types.hpp"
#include "models/errors.hpp"
#include "replay/checkpoint/parallel_names.hpp"
#include "replay/checkpoint/reader_state.hpp"

namespace ebb::replay::checkpoint {

namespace {

constexpr std::size_t kLarge = std::size_t{1} << 20;  // from here on past the page cache

Dtype type_of(const Precision& precision, StateBits state) {
  switch (state) {
    case kExpAvg:
      return precision.exp_avg;
    case kExpAvgSq:
      return precision.exp_avg_sq;
    case kMaster:
      return precision.master;
    default:
      return precision.params;
  }
}

}  // namespace

const std::vector<Found>& Reader::State::pieces(const std::string& parameter, StateBits state) const {
  const auto found = index.find(parameter);
  if (found == index.end())
    throw InputError({path}, fmt::format("it has no parameter \"{}\"", parameter), "it is of another model");
  const std::vector<Found>& pieces = places[found->second][index_of(state)];
  if (pieces.empty())
    throw InputError({path}, fmt::format("it has no {} of \"{}\"", name_of_state(state), parameter),
                     "it was saved before the first step, or by a job that keeps none");
  return pieces;
}

void Reader::State::read_piece(const Found& found, std::int64_t at, std::span<std::byte> to) const {
  const std::string file_path = path_of(found.file);
  const bool large = to.size() >= kLarge;
  const File file = File::open(file_path, large);
  if (file.stamp() != stamps[found.file])
    throw InputError({file_path}, "it has changed since it was checked", "is another save writing there?");
  const auto need = [&](std::int64_t got, std::int64_t wanted) {
    if (got < wanted) throw IoError(file_path + ": it ends before its data does");
  };
  if (!large) return need(file.read(at, to), static_cast<std::int64_t>(to.size()));
  const AlignedBytes buffer(kLarge * 8);
  for (std::size_t done = 0; done < to.size();) {
    const std::int64_t begin = (at + static_cast<std::int64_t>(done)) / kAlignment * kAlignment;
    const auto skip = static_cast<std::size_t>(at + static_cast<std::int64_t>(done) - begin);
    const std::size_t wanted = std::min(to.size() - done, kLarge * 8 - skip);
    const std::int64_t padded = round_up(static_cast<std::int64_t>(skip + wanted), kAlignment);
    need(file.read(begin, {buffer.data(), static_cast<std::size_t>(padded)}), static_cast<std::int64_t>(skip + wanted));
    std::memcpy(to.data() + done, buffer.data() + skip, wanted);
    done += wanted;
  }
}

void Reader::require(std::span<const Parameter> parameters, std::uint8_t states, const Precision& precision) const {
  for (const Parameter& parameter : parameters) {
    const auto found = state_->index.find(parameter.name);
    if (found == state_->index.end()) {
      const std::string size = other_parallel_size(parameter.name, state_->manifest.parameters);
      throw InputError({state_->path}, fmt::format("it has no parameter \"{}\"", parameter.name),
                       size.empty() ? "it is of another model"
                                    : size + ": only the number of data-parallel ranks and of stages may change");
    }
    const Parameter& saved = state_->manifest.parameters[found->second];
    if (saved.shape != parameter.shape)
      throw InputError({state_->path},
                       fmt::format("\"{}\" has the shape [{}], not [{}]", parameter.name, fmt::join(saved.shape, ", "),
                                   fmt::join(parameter.shape, ", ")),
                       "it is of another model");
    for (const StateBits state : kSavedStates) {
      if ((states & state) == 0 || numel_of(parameter) == 0) continue;
      const Dtype type = state_->pieces(parameter.name, state)[0].piece.type;
      const Dtype wanted = type_of(precision, state);
      if (type != wanted)
        throw InputError({state_->path},
                         fmt::format("{} of \"{}\" is saved in {}, not in {}", name_of_state(state), parameter.name,
                                     ebb::name_of(type), ebb::name_of(wanted)),
                         "it is of a job with another precision");
    }
  }
}

void Reader::require_none_left(std::string_view taken) const {
  EBB_ASSERT(taken.size() == state_->manifest.parameters.size());
  for (std::size_t p = 0; p < taken.size(); ++p) {
    if (taken[p] == '1') continue;
    const std::string& name = state_->manifest.parameters[p].name;
    for (const std::vector<Found>& of_state : state_->places[p]) {
      if (of_state.empty()) continue;
      throw InputError(
          {state_->path_of(of_state[0].file)},
          fmt::format("it has \"{}\", and the job has no parameter \"{}\"", tensor_name(of_state[0].piece, name), name),
          "the checkpoint is of a larger model");
    }
  }
}

void Reader::read(const std::string& parameter, StateBits state, Numel offset, Numel numel, Dtype type,
                  std::byte* data) const {
  if (numel.value == 0) return;
  const std::vector<Found>& pieces = state_->pieces(parameter, state);
  if (pieces[0].piece.type != type)
    throw InputError({state_->path},
                     fmt::format("{} of \"{}\" is saved in {}, not in {}", name_of_state(state), parameter,
                                 ebb::name_of(pieces[0].piece.type), ebb::name_of(type)),
                     "it is of a job with another precision");
  const std::int64_t all = (pieces.back().piece.offset + pieces.back().piece.numel).value;
  if (offset.value < 0 || numel.value < 0 || numel.value > all - offset.value)
    throw InputError(
        {state_->path},
        fmt::format("\"{}\" has {} elements; asked for are {} from {} on", parameter, all, numel.value, offset.value),
        "it is of another model");
  const std::int64_t size = size_of(type);
  auto found = std::upper_bound(pieces.begin(), pieces.end(), offset,
                                [](Numel at, const Found& f) { return at < f.piece.offset; });
  for (--found; numel.value > 0; ++found) {
    const Numel within = offset - found->piece.offset;
    const Numel count = std::min(numel, found->piece.numel - within);
    const auto bytes = static_cast<std::size_t>(count.value * size);
    state_->read_piece(*found, found->at + within.value * size, {data, bytes});
    data += bytes;
    offset += count;
    numel -= count;
  }
}

void Reader::read_params_as_fp32(const std::string& parameter, Numel offset, Numel numel, float* data) const {
  if (numel.value == 0) return;
  const Dtype type = state_->pieces(parameter, kParams)[0].piece.type;
  if (type == Dtype::fp32) return read(parameter, kParams, offset, numel, type, reinterpret_cast<std::byte*>(data));
  if (type == Dtype::fp8)
    throw InputError({state_->path}, fmt::format("param of \"{}\" is saved in fp8 without scales", parameter), kOther);
  constexpr std::int64_t kAtOnce = std::int64_t{1} << 22;
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(std::min(numel.value, kAtOnce)));
  for (std::int64_t done = 0; done < numel.value;) {
    const std::int64_t count = std::min(numel.value - done, kAtOnce);
    read(parameter, kParams, offset + Numel{done}, {count}, type, reinterpret_cast<std::byte*>(bits.data()));
    for (std::int64_t i = 0; i < count; ++i)
      data[done + i] = type == Dtype::bf16 ? kernels::fp32_from_bf16(bits[static_cast<std::size_t>(i)])
                                           : kernels::fp32_from_fp16(bits[static_cast<std::size_t>(i)]);
    done += count;
  }
}

}  // namespace ebb::replay::checkpoint
