// Checkpoints of made-up states for tests: parameters of awkward sizes, bits that follow from (parameter, state,
// element, step), ranks that share the elements however a test asks.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "models/errors.hpp"
#include "replay/checkpoint/checkpoint.hpp"
#include "replay/checkpoint/hashes.hpp"
#include "tests/replay/fake_root.hpp"

namespace ebb::test {

namespace ck = replay::checkpoint;

inline constexpr StateBits kStates[] = {kExpAvg, kExpAvgSq, kMaster, kParams};

struct Case {
  std::vector<ck::Parameter> parameters = {{"embedding.word", {7, 11}},
                                           {"layers.0.norm", {5}},
                                           {"layers.0.fc1", {64, 33}},
                                           {"output \"q\"/@1", {1}},
                                           {"layers.1.fc1", {1021}}};
  Precision precision;
  std::string job = "made-up";
};

inline std::int64_t count_of(const ck::Parameter& parameter) {
  std::int64_t numel = 1;
  for (const std::int64_t extent : parameter.shape) numel *= extent;
  return numel;
}

inline Dtype saved_type(const Precision& precision, StateBits state) {
  return state == kExpAvg     ? precision.exp_avg
         : state == kExpAvgSq ? precision.exp_avg_sq
         : state == kMaster   ? precision.master
                              : precision.params;
}

/// Any bits: nothing here computes with them.
inline std::uint32_t bits_of(std::size_t parameter, StateBits state, std::int64_t element, std::int64_t step) {
  std::uint64_t x = static_cast<std::uint64_t>(element) * 0x2545f4914f6cdd1dULL + parameter * 1000003U +
                    static_cast<std::uint64_t>(state) * 7919U + static_cast<std::uint64_t>(step) * 104729U;
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15ULL;
  return static_cast<std::uint32_t>(x >> 32);
}

/// Elements [offset, offset + numel) as bytes.
inline std::vector<std::byte> bytes_of_range(const Case& c, std::size_t parameter, StateBits state, std::int64_t offset,
                                             std::int64_t numel, std::int64_t step) {
  const auto size = static_cast<std::size_t>(size_of(saved_type(c.precision, state)));
  std::vector<std::byte> bytes(static_cast<std::size_t>(numel) * size);
  for (std::int64_t i = 0; i < numel; ++i) {
    const std::uint32_t bits = bits_of(parameter, state, offset + i, step);
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * size, &bits, size);
  }
  return bytes;
}

/// The definition in hashes.hpp once more, element by element, with the textbook's operations.
inline std::uint64_t naive_content(const Case& c, StateBits state, std::int64_t step) {
  std::uint32_t sum_x = 0;
  std::uint32_t sum_y = 0;
  const std::int64_t size = size_of(saved_type(c.precision, state));
  for (std::size_t p = 0; p < c.parameters.size(); ++p) {
    const std::uint64_t key = ck::content_key(c.parameters[p].name, state);
    std::uint64_t mixed = key;  // element numbers here stay below 2^32
    mixed = (mixed ^ (mixed >> 33)) * 0xff51afd7ed558ccdULL;
    mixed = (mixed ^ (mixed >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    mixed ^= mixed >> 33;
    for (std::int64_t i = 0; i < count_of(c.parameters[p]); ++i) {
      std::uint32_t bits = bits_of(p, state, i, step);
      if (size == 2) bits &= 0xffffU;
      std::uint32_t x = bits ^ (static_cast<std::uint32_t>(mixed) + static_cast<std::uint32_t>(i) * 0x9e3779b1U);
      x *= 0x85ebca6bU;
      x ^= x >> 15;
      x *= 0xc2b2ae35U;
      x ^= x >> 16;
      std::uint32_t y = static_cast<std::uint32_t>(mixed >> 32) + static_cast<std::uint32_t>(i) * 0x27d4eb2fU;
      y = (x ^ y) * 0x165667b1U;
      y ^= y >> 15;
      sum_x += x;
      sum_y += y;
    }
  }
  return static_cast<std::uint64_t>(sum_y) << 32 | sum_x;
}

inline ck::Description description_of(const Case& c, std::int64_t ranks, std::int64_t step) {
  return {.job = c.job,
          .ranks = ranks,
          .place = {.steps = step,
                    .adam_steps = step - 1,
                    .seed = 0xfedcba9876543210ULL + static_cast<std::uint64_t>(step),
                    .loss_scale = 65536.0F,
                    .good_steps = 3,
                    .hysteresis = 1},
          .origin = {.seed = 11, .scaling = {.on = true, .initial = 65536.0F}},
          .precision = c.precision};
}

/// Rank `rank`'s of `ranks` equal parts of every parameter.
inline std::vector<ck::Piece> pieces_of(const Case& c, std::int64_t rank, std::int64_t ranks) {
  std::vector<ck::Piece> pieces;
  for (std::size_t p = 0; p < c.parameters.size(); ++p) {
    const std::int64_t numel = count_of(c.parameters[p]);
    const std::int64_t begin = rank * numel / ranks;
    const std::int64_t end = (rank + 1) * numel / ranks;
    for (const StateBits state : kStates)
      pieces.push_back({.parameter = static_cast<std::uint32_t>(p),
                        .state = state,
                        .offset = {begin},
                        .numel = {end - begin},
                        .type = saved_type(c.precision, state)});
  }
  return pieces;
}

inline void write_piece(ck::RankWriter& writer, const Case& c, const std::vector<ck::Piece>& pieces, std::size_t i,
                        std::int64_t first, std::int64_t numel, std::int64_t step) {
  const auto bytes =
      bytes_of_range(c, pieces[i].parameter, pieces[i].state, pieces[i].offset.value + first, numel, step);
  writer.write(i, {first}, {numel}, bytes.data());
}

/// All ranks, one after another; the writers live until all have finished.
inline std::string save(const std::string& directory, const Case& c, std::int64_t ranks, std::int64_t step,
                        std::size_t keep = 0, ck::WriteOptions options = {.threads = 2, .block = 8_KiB}) {
  const ck::Description what = description_of(c, ranks, step);
  std::vector<ck::RankWriter> writers;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const auto pieces = pieces_of(c, rank, ranks);
    writers.emplace_back(directory, what, rank, c.parameters, pieces, options);
    for (std::size_t i = 0; i < pieces.size(); ++i)
      write_piece(writers.back(), c, pieces, i, 0, pieces[i].numel.value, step);
    writers.back().finish();
  }
  return ck::commit(directory, what, keep);
}

/// Whether the reader hands out exactly the bits of `step`.
inline bool holds(const ck::Reader& reader, const Case& c, std::int64_t step) {
  for (std::size_t p = 0; p < c.parameters.size(); ++p)
    for (const StateBits state : kStates) {
      const std::int64_t numel = count_of(c.parameters[p]);
      const auto expected = bytes_of_range(c, p, state, 0, numel, step);
      std::vector<std::byte> got(expected.size());
      reader.read(c.parameters[p].name, state, {0}, {numel}, saved_type(c.precision, state), got.data());
      if (got != expected) return false;
    }
  return true;
}

/// Where thousands of small files are written in no time.
inline std::filesystem::path memory() {
  std::error_code ignored;
  return std::filesystem::is_directory("/dev/shm", ignored) ? "/dev/shm" : std::filesystem::temp_directory_path();
}

/// The message of the IoError that `call` throws; "" when it throws nothing.
template <class Call>
std::string io_error_of(const Call& call) {
  try {
    call();
  } catch (const IoError& error) {
    return error.what();
  }
  return "";
}

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void spill(const std::filesystem::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace ebb::test
