// How near a save comes to the disk's own speed: the same bytes once as plain large O_DIRECT writes, as
// `dd bs=16M oflag=direct conv=fsync` does them, from one thread a file and from four, and once as a checkpoint, in
// turn on the same file system: plain writes of all its bytes right before each save and right after it, by as many
// threads a file as a trial of both found faster. Every number is from the first byte to the end of fsync.
//
//   checkpoint_bench DIRECTORY [GIB] [RANKS] [ROUNDS]        default 4 GiB, 2 ranks, 3 rounds
//
// Prints each round with the save's share of the mean of both plain writes, then the medians.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "replay/checkpoint/checkpoint.hpp"
#include "replay/checkpoint/file.hpp"

namespace {

namespace ck = ebb::replay::checkpoint;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kPattern = std::int64_t{64} << 20;
constexpr std::int64_t kWrite = std::int64_t{16} << 20;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Bytes that no storage compresses.
ck::AlignedBytes pattern() {
  ck::AlignedBytes bytes(kPattern);
  std::uint64_t x = 88172645463325252ULL;
  for (std::int64_t i = 0; i < kPattern / 8; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    reinterpret_cast<std::uint64_t*>(bytes.data())[i] = x;
  }
  return bytes;
}

/// `share` bytes into each of `ranks` files, `threads` a file.
double plain_writes(const std::string& directory, std::int64_t share, int ranks, int threads, const std::byte* data) {
  std::filesystem::create_directories(directory);
  std::vector<ck::File> files;
  for (int rank = 0; rank < ranks; ++rank)
    files.push_back(ck::File::create(fmt::format("{}/plain-{}", directory, rank), true));
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> ranks_at_work;
    for (ck::File& file : files)
      ranks_at_work.emplace_back([&file, share, threads, data] {
        {
          std::vector<std::jthread> writers;
          for (int t = 0; t < threads; ++t)
            writers.emplace_back([&file, share, threads, data, t] {
              for (std::int64_t at = t * kWrite; at < share; at += threads * kWrite)
                file.write(at, {data + at % kPattern, static_cast<std::size_t>(std::min(kWrite, share - at))});
            });
        }
        file.sync();
      });
  }
  const double seconds = seconds_since(begin);
  std::filesystem::remove_all(directory);
  return seconds;
}

double save(const std::string& directory, std::int64_t share, int ranks, const std::byte* data) {
  const std::int64_t numel = share / 16;  // fp32 of exp_avg, exp_avg_sq, master; and 4 bytes of parameters
  const ck::Description what{.job = "bench", .ranks = ranks, .place = {.steps = 1}, .origin = {}, .precision = {}};
  std::vector<ck::RankWriter> writers;
  const auto begin = Clock::now();
  const ebb::StateBits states[] = {ebb::kExpAvg, ebb::kExpAvgSq, ebb::kMaster, ebb::kParams};
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<ck::Piece> pieces;
    for (const ebb::StateBits state : states) pieces.push_back({.state = state, .numel = {numel}});
    writers.emplace_back(directory, what, rank, std::vector<ck::Parameter>{{fmt::format("of {}", rank), {numel}}},
                         pieces);
  }
  {
    std::vector<std::jthread> ranks_at_work;
    for (ck::RankWriter& writer : writers)
      ranks_at_work.emplace_back([&writer, numel, data] {
        constexpr std::int64_t kWindow = kPattern / 4;  // elements
        for (std::int64_t first = 0; first < numel; first += kWindow)
          for (std::size_t piece = 0; piece < 4; ++piece)
            writer.write(piece, {first}, {std::min(kWindow, numel - first)}, data);
        writer.finish();
      });
  }
  ck::commit(directory, what, 1);
  const double seconds = seconds_since(begin);
  const auto checked = Clock::now();
  const ck::Reader reader(directory);
  std::printf("  (reading and checking it: %.2f GB/s)\n",
              static_cast<double>(reader.bytes().value) * 1e-9 / seconds_since(checked));
  std::filesystem::remove_all(directory);
  return seconds;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("checkpoint_bench DIRECTORY [GIB] [RANKS] [ROUNDS]\n", stderr), 2;
  const std::string directory = std::string(argv[1]) + "/checkpoint_bench";
  const std::int64_t bytes = static_cast<std::int64_t>((argc > 2 ? std::atof(argv[2]) : 4.0) * (1 << 30));
  const int ranks = argc > 3 ? std::atoi(argv[3]) : 2;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 3;
  const std::int64_t share = bytes / ranks / kWrite * kWrite;
  const ck::AlignedBytes data = pattern();
  const double gigabytes = static_cast<double>(share * ranks) * 1e-9;
  const auto plain = [&](std::int64_t bytes_each, int threads) {
    return static_cast<double>(bytes_each * ranks) * 1e-9 /
           plain_writes(directory, bytes_each, ranks, threads, data.data());
  };
  const std::int64_t trial =
      std::min(share, std::max<std::int64_t>(kWrite, (std::int64_t{1} << 30) / ranks / kWrite * kWrite));
  const int threads = plain(trial, 1) >= plain(trial, 4) ? 1 : 4;
  std::vector<double> references, saved, shares;
  for (int round = 0; round < rounds; ++round) {
    const double before = plain(share, threads);
    saved.push_back(gigabytes / save(directory, share, ranks, data.data()));
    const double after = plain(share, threads);
    references.push_back((before + after) / 2);
    shares.push_back(saved.back() / references.back());
    std::printf("plain %.3f GB/s before, save %.3f, plain %.3f after: %.3f of their mean\n", before, saved.back(),
                after, shares.back());
  }
  std::printf("%.1f GB, %d ranks, %d threads a plain file: plain %.3f GB/s, save %.3f GB/s, share %.3f (medians)\n",
              gigabytes, ranks, threads, median(references), median(saved), median(shares));
  return 0;
}
