// Saves synthetic states of step 1, 2, 3 ... for ever, until somebody kills it: two ranks, a thread each, as a training
// run would. tests/checkpoint-kills starts and kills it.
//
//   checkpoint_kill_driver run DIRECTORY       goes on behind the newest checkpoint; prints "committed N" after each
//   checkpoint_kill_driver check DIRECTORY     the newest checkpoint is whole and is the state of its step, bit by bit
//                                              (computed anew, and its content too): prints "holds N", 0 where there is
//                                              none; exit 1 with the reason otherwise
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "models/errors.hpp"
#include "tests/replay/checkpoint_cases.hpp"

namespace {

using namespace ebb;
using namespace ebb::test;

constexpr std::int64_t kRanks = 2;

Case the_case() {
  Case c;
  c.parameters = {{"embedding", {257, 64}}, {"layers.0.fc1", {128, 513}}, {"layers.0.norm", {129}}, {"head", {31, 67}}};
  c.precision.exp_avg = Dtype::bf16;
  return c;
}

std::int64_t newest_step(const std::string& directory) {
  const std::vector<std::string> all = ck::list(directory);
  return all.empty() ? 0 : std::stoll(all.back().substr(all.back().rfind("step-") + 5));
}

void save_once(const std::string& directory, const Case& c, std::int64_t step) {
  const ck::Description what = description_of(c, kRanks, step);
  std::vector<ck::RankWriter> writers;
  for (std::int64_t rank = 0; rank < kRanks; ++rank)
    writers.emplace_back(directory, what, rank, c.parameters, pieces_of(c, rank, kRanks),
                         ck::WriteOptions{.threads = 2, .block = 64_KiB});
  {
    std::vector<std::jthread> ranks;
    for (std::int64_t rank = 0; rank < kRanks; ++rank)
      ranks.emplace_back([&, rank] {
        const auto pieces = pieces_of(c, rank, kRanks);
        ck::RankWriter& writer = writers[static_cast<std::size_t>(rank)];
        for (std::size_t i = 0; i < pieces.size(); ++i)
          write_piece(writer, c, pieces, i, 0, pieces[i].numel.value, step);
        writer.finish();
      });
  }
  ck::commit(directory, what, 2);
  std::printf("committed %lld\n", static_cast<long long>(step));
  std::fflush(stdout);
}

int check(const std::string& directory, const Case& c) {
  const std::int64_t step = newest_step(directory);
  if (step > 0) {
    const ck::Reader reader(directory);
    EBB_ASSERT(reader.description().place == description_of(c, kRanks, step).place);
    EBB_ASSERT(holds(reader, c, step));
    for (const StateBits state : kStates) EBB_ASSERT(reader.content(state) == naive_content(c, state, step));
  }
  std::printf("holds %lld\n", static_cast<long long>(step));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc == 3 ? argv[1] : "";
  if (command != "run" && command != "check") return 2;
  try {
    const Case c = the_case();
    if (command == "check") return check(argv[2], c);
    for (std::int64_t step = newest_step(argv[2]) + 1;; ++step) save_once(argv[2], c, step);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "checkpoint_kill_driver: %s\n", error.what());
    return 1;
  }
}
