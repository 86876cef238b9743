// What a save that does not end leaves: nothing, whether a call fails, a symbolic link stands in its way, or the
// process is interrupted; and what belongs to somebody else stays.
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "replay/checkpoint/unfinished.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"
#include "tests/replay/checkpoint_cases.hpp"

namespace ebb::test {

namespace fs = std::filesystem;

namespace {

std::set<std::string> names_in(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename().string());
  return names;
}

/// Runs `act` in a process of its own, which is then interrupted.
template <class Act>
void interrupted(const Act& act) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    act();
    ck::remove_unfinished();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

void write_all(ck::RankWriter& writer, const Case& c, const std::vector<ck::Piece>& pieces, std::int64_t step) {
  for (std::size_t i = 0; i < pieces.size(); ++i) write_piece(writer, c, pieces, i, 0, pieces[i].numel.value, step);
}

}  // namespace

TEST_CASE("a symbolic link where a save writes is refused, and what it points to stays") {
  const FakeRoot root;
  const Case c;
  const std::string theirs = root.path() + "/theirs";
  fs::create_directories(theirs);
  spill(theirs + "/rank-00000.safetensors", "somebody's");
  const std::string saves = root.path() + "/saves";
  fs::create_directories(saves);
  fs::create_directory_symlink(theirs, saves + "/step-00000004.partial");
  const std::string message = io_error_of([&] { save(saves, c, 2, 4); });
  INFO(message);
  CHECK(message.find("step-00000004.partial") != std::string::npos);
  CHECK(message.find("symbolic link") != std::string::npos);
  CHECK(slurp(theirs + "/rank-00000.safetensors") == "somebody's");
  save(saves, c, 2, 5);  // and as a leftover of another step it is left alone
  CHECK(fs::is_symlink(saves + "/step-00000004.partial"));
  CHECK(names_in(theirs) == std::set<std::string>{"rank-00000.safetensors"});
  // A link within the directory is not followed either.
  fs::create_directories(saves + "/step-00000006.partial");
  fs::create_symlink(theirs + "/rank-00000.safetensors", saves + "/step-00000006.partial/rank-00000.safetensors");
  CHECK(io_error_of([&] { save(saves, c, 1, 6); }).find("symbolic link") != std::string::npos);
  CHECK(slurp(theirs + "/rank-00000.safetensors") == "somebody's");
}

TEST_CASE("a save of which one rank fails leaves nothing of the others either") {
  const FakeRoot root;
  const Case c;
  save(root.path(), c, 1, 1);
  {
    const ck::Description what = description_of(c, 2, 2);
    std::vector<ck::RankWriter> writers;
    for (std::int64_t rank = 0; rank < 2; ++rank)
      writers.emplace_back(root.path(), what, rank, c.parameters, pieces_of(c, rank, 2));
    write_all(writers[0], c, pieces_of(c, 0, 2), 2);
    writers[0].finish();  // the other one never does
  }
  CHECK(names_in(root.path()) == std::set<std::string>{"step-00000001"});
}

TEST_CASE("an interrupt during a save takes away what was written and leaves the old checkpoint") {
  const Case c;
  for (const int finished : {0, 1, 2}) {
    const FakeRoot root;
    save(root.path(), c, 1, 1);
    const ck::Description what = description_of(c, 2, 2);
    interrupted([&] {
      std::vector<ck::RankWriter> writers;
      for (std::int64_t rank = 0; rank < 2; ++rank) {
        const auto pieces = pieces_of(c, rank, 2);
        writers.emplace_back(root.path(), what, rank, c.parameters, pieces);
        if (rank < finished) {
          write_all(writers.back(), c, pieces, 2);
          writers.back().finish();
        }
      }
      ck::remove_unfinished();
      ::_exit(0);  // as a signal does, before anything is destroyed
    });
    CHECK(names_in(root.path()) == std::set<std::string>{"step-00000001"});
    CHECK(holds(ck::Reader(root.path()), c, 1));
  }
}

TEST_CASE("an interrupt of one process leaves what other processes have of the same save") {
  const FakeRoot root;
  const Case c;
  const ck::Description what = description_of(c, 2, 2);
  const auto pieces = pieces_of(c, 0, 2);
  ck::RankWriter mine(root.path(), what, 0, c.parameters, pieces);
  const std::string partial = root.path() + "/step-00000002.partial";
  for (const bool finish : {false, true}) {
    interrupted([&] {
      ck::forget_unfinished(partial);  // what fork() has copied of the parent's own
      const auto theirs = pieces_of(c, 1, 2);
      ck::RankWriter writer(root.path(), what, 1, c.parameters, theirs);
      if (finish) {
        write_all(writer, c, theirs, 2);
        writer.finish();
      }
      ck::remove_unfinished();
      ::_exit(0);
    });
    // Complete files stay, for the process that commits may be about to give them their name.
    std::set<std::string> expected = {"rank-00000.safetensors"};
    if (finish) expected.insert({"rank-00001.json", "rank-00001.safetensors"});
    CHECK(names_in(partial) == expected);
  }
  write_all(mine, c, pieces, 2);
  mine.finish();
  CHECK(holds(ck::Reader(ck::commit(root.path(), what, 0)), c, 2));
}

TEST_CASE("a checkpoint is nothing that an interrupt takes away") {
  const FakeRoot root;
  const Case c;
  interrupted([&] {
    const ck::Description what = description_of(c, 1, 3);
    const auto pieces = pieces_of(c, 0, 1);
    ck::RankWriter writer(root.path(), what, 0, c.parameters, pieces);
    write_all(writer, c, pieces, 3);
    writer.finish();
    ck::commit(root.path(), what, 0);
    ck::remove_unfinished();
    ::_exit(0);
  });
  CHECK(holds(ck::Reader(root.path()), c, 3));
}

}  // namespace ebb::test
