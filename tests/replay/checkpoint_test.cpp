// What is saved is what is read: whatever the ranks, types, order of writes, sizes of blocks.
#include <set>

#include "kernels/types.hpp"
#include "models/errors.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"
#include "tests/replay/checkpoint_cases.hpp"

namespace ebb::test {

namespace fs = std::filesystem;

namespace {

Case bf16_moments() {
  Case c;
  c.precision.exp_avg = Dtype::bf16;
  c.precision.exp_avg_sq = Dtype::bf16;
  return c;
}

std::set<std::string> names_in(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename().string());
  return names;
}

}  // namespace

TEST_CASE("a checkpoint of any number of ranks hands out the bits that were saved") {
  for (const Case& c : {Case{}, bf16_moments()})
    for (const std::int64_t ranks : {1, 2, 3, 7}) {
      const FakeRoot root;
      const std::string path = save(root.path(), c, ranks, 120);
      CHECK(path == root.path() + "/step-00000120");
      CHECK(names_in(root.path()) == std::set<std::string>{"step-00000120"});
      CHECK(names_in(path).size() == static_cast<std::size_t>(ranks) + 1);
      const ck::Reader reader(root.path());
      CHECK(reader.path() == path);
      CHECK(holds(reader, c, 120));
      CHECK_FALSE(holds(reader, c, 121));
    }
}

TEST_CASE("any range is assembled from the pieces of several ranks") {
  const FakeRoot root;
  const Case c = bf16_moments();
  save(root.path(), c, 5, 3);
  const ck::Reader reader(root.path());
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t p = random() % c.parameters.size();
    const StateBits state = kStates[random() % 4];
    const std::int64_t all = count_of(c.parameters[p]);
    const std::int64_t offset = static_cast<std::int64_t>(random()) % all;
    const std::int64_t numel = static_cast<std::int64_t>(random()) % (all - offset + 1);
    const auto expected = bytes_of_range(c, p, state, offset, numel, 3);
    std::vector<std::byte> got(expected.size());
    reader.read(c.parameters[p].name, state, {offset}, {numel}, saved_type(c.precision, state), got.data());
    REQUIRE(got == expected);
  }
}

TEST_CASE("content follows its definition and does not depend on how ranks share the elements") {
  const Case c = bf16_moments();
  for (const std::int64_t ranks : {1, 2, 5}) {
    const FakeRoot root;
    const ck::Reader reader(save(root.path(), c, ranks, 9));
    for (const StateBits state : kStates) CHECK(reader.content(state) == naive_content(c, state, 9));
  }
}

TEST_CASE("content sees swapped elements, a moved element, another parameter and another state") {
  std::vector<std::uint32_t> data(1000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = bits_of(0, kMaster, static_cast<std::int64_t>(i % 37), 0);
  const auto content = [&](std::string_view name, StateBits state, std::int64_t first) {
    return ck::content_of(ck::content_key(name, state), first, Dtype::fp32, std::as_bytes(std::span(data)));
  };
  const std::uint64_t before = content("a", kMaster, 0);
  CHECK(content("b", kMaster, 0) != before);
  CHECK(content("a", kExpAvg, 0) != before);
  CHECK(content("a", kMaster, 1) != before);
  CHECK(content("a", kMaster, std::int64_t{1} << 32) != before);
  std::set<std::uint64_t> seen = {before};
  for (std::size_t i = 0; i + 1 < data.size(); ++i) {
    if (data[i] == data[i + 1]) continue;
    std::swap(data[i], data[i + 1]);
    CHECK(seen.insert(content("a", kMaster, 0)).second);
    std::swap(data[i], data[i + 1]);
  }
  for (std::size_t i = 0; i < data.size(); ++i)
    for (int bit = 0; bit < 32; ++bit) {
      data[i] ^= 1U << bit;
      CHECK(seen.insert(content("a", kMaster, 0)).second);
      data[i] ^= 1U << bit;
    }
}

TEST_CASE("content of unaligned bytes and of ranges across 2^32 elements adds up") {
  std::vector<std::byte> bytes(4 * 40'000 + 1);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(bits_of(1, kMaster, static_cast<std::int64_t>(i), 2));
  std::vector<std::byte> shifted(bytes.begin() + 1, bytes.end());
  const std::uint64_t key = ck::content_key("a", kMaster);
  const std::int64_t first = (std::int64_t{1} << 32) - 20'000;
  const std::uint64_t whole = ck::content_of(key, first, Dtype::fp32, shifted);
  CHECK(ck::content_of(key, first, Dtype::fp32, std::span(bytes).subspan(1)) == whole);
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < 40'000; i += 7'000) {
    const std::int64_t numel = std::min<std::int64_t>(7'000, 40'000 - i);
    sum = ck::add_content(sum, ck::content_of(key, first + i, Dtype::fp32,
                                              std::span(shifted).subspan(static_cast<std::size_t>(i) * 4,
                                                                         static_cast<std::size_t>(numel) * 4)));
  }
  CHECK(sum == whole);
}

TEST_CASE("the order and size of writes make no difference to any byte") {
  const Case c = bf16_moments();
  const FakeRoot root;
  const std::string expected = slurp(save(root.path() + "/a", c, 1, 4) + "/rank-00000.safetensors");
  std::mt19937 random(11);
  for (const bool direct : {true, false})
    for (int round = 0; round < 6; ++round) {
      // 4096-byte blocks: some 25 of them, all begun before any is complete, which is more than there are buffers for.
      const auto pieces = pieces_of(c, 0, 1);
      struct Write {
        std::size_t piece;
        std::int64_t first, numel;
      };
      std::vector<Write> writes;
      for (std::size_t i = 0; i < pieces.size(); ++i)
        for (std::int64_t first = 0; first < pieces[i].numel.value;) {
          const std::int64_t numel = std::min<std::int64_t>(1 + random() % 200, pieces[i].numel.value - first);
          writes.push_back({i, first, numel});
          first += numel;
        }
      std::shuffle(writes.begin(), writes.end(), random);
      const std::string directory = root.path() + "/b" + std::to_string(round) + (direct ? "d" : "");
      const ck::Description what = description_of(c, 1, 4);
      ck::RankWriter writer(directory, what, 0, c.parameters, pieces, {.threads = 3, .direct = direct, .block = 4_KiB});
      for (const Write& w : writes) write_piece(writer, c, pieces, w.piece, w.first, w.numel, 4);
      CHECK(writer.finish().bytes.value == static_cast<std::int64_t>(expected.size()));
      const std::string path = ck::commit(directory, what, 1);
      CHECK((slurp(path + "/rank-00000.safetensors") == expected));
      const ck::Reader reader(path);
      CHECK(holds(reader, c, 4));
      for (const StateBits state : kStates) CHECK(reader.content(state) == naive_content(c, state, 4));
    }
}

TEST_CASE("the same state makes the same bytes, manifest included") {
  const FakeRoot root;
  const Case c;
  const std::string a = save(root.path() + "/a", c, 2, 4);
  const std::string b = save(root.path() + "/b", c, 2, 4);
  for (const std::string& name : names_in(a)) CHECK((slurp(a + "/" + name) == slurp(b + "/" + name)));
}

TEST_CASE("where a run stands and its precision come back exactly") {
  const FakeRoot root;
  Case c;
  c.precision.params = Dtype::fp16;
  c.precision.precision_aware = false;
  c.precision.fp8 = Fp8Recipe::blockwise;
  c.precision.fp8_param_gather = true;
  c.job = "quoted \"job\" \\ \xc3\xa9";
  ck::Description what = description_of(c, 1, 77);
  what.place.loss_scale = 0.1F;
  what.origin = {.seed = 0x8000000000000001ULL,
                 .scaling = {.on = true, .initial = 1024.0F, .least = 0.5F, .interval = 7, .hysteresis = 3}};
  const auto pieces = pieces_of(c, 0, 1);
  ck::RankWriter writer(root.path(), what, 0, c.parameters, pieces);
  for (std::size_t i = 0; i < pieces.size(); ++i) write_piece(writer, c, pieces, i, 0, pieces[i].numel.value, 77);
  writer.finish();
  const ck::Reader reader(ck::commit(root.path(), what, 0));
  CHECK(reader.description().job == what.job);
  CHECK(reader.description().ranks == 1);
  CHECK(reader.description().place == what.place);
  CHECK(reader.description().origin == what.origin);
  CHECK(reader.description().precision == what.precision);
  CHECK(reader.parameters() == c.parameters);
  CHECK(reader.type(kParams) == Dtype::fp16);
}

TEST_CASE("saved parameters are read as fp32") {
  for (const Dtype type : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
    const FakeRoot root;
    Case c;
    c.precision.params = type;
    const ck::Reader reader(save(root.path(), c, 3, 1));
    for (std::size_t p = 0; p < c.parameters.size(); ++p) {
      std::vector<float> got(static_cast<std::size_t>(count_of(c.parameters[p])));
      reader.read_params_as_fp32(c.parameters[p].name, {0}, {count_of(c.parameters[p])}, got.data());
      for (std::size_t i = 0; i < got.size(); ++i) {
        const std::uint32_t bits = bits_of(p, kParams, static_cast<std::int64_t>(i), 1);
        float expected = 0;
        if (type == Dtype::fp32) std::memcpy(&expected, &bits, 4);
        if (type == Dtype::bf16) expected = kernels::fp32_from_bf16(static_cast<std::uint16_t>(bits));
        if (type == Dtype::fp16) expected = kernels::fp32_from_fp16(static_cast<std::uint16_t>(bits));
        CHECK(std::memcmp(&got[i], &expected, 4) == 0);
      }
    }
  }
}

TEST_CASE("as many checkpoints stay as asked, and the newest counts") {
  const FakeRoot root;
  const Case c;
  for (std::int64_t step = 1; step <= 5; ++step) save(root.path(), c, 2, step, 2);
  CHECK(names_in(root.path()) == std::set<std::string>{"step-00000004", "step-00000005"});
  CHECK(ck::list(root.path()) ==
        std::vector<std::string>{root.path() + "/step-00000004", root.path() + "/step-00000005"});
  CHECK(holds(ck::Reader(root.path()), c, 5));
  CHECK(holds(ck::Reader(root.path() + "/step-00000004/"), c, 4));
  save(root.path(), c, 2, 3, 2);  // after a resume from an older one
  CHECK(names_in(root.path()) == std::set<std::string>{"step-00000003", "step-00000004", "step-00000005"});
}

TEST_CASE("a save of a step that is there already replaces it") {
  const FakeRoot root;
  Case c;
  save(root.path(), c, 2, 5);
  c.job = "another";
  save(root.path(), c, 3, 5);
  CHECK(names_in(root.path()) == std::set<std::string>{"step-00000005"});
  const ck::Reader reader(root.path());
  CHECK(reader.description().ranks == 3);
  CHECK(holds(reader, c, 5));
}

TEST_CASE("what stands under a step's name without a manifest does not stop the save of that step") {
  const FakeRoot root;
  const Case c;
  save(root.path(), c, 2, 5);
  fs::remove(root.path() + "/step-00000005/manifest.json");
  save(root.path(), c, 1, 5);
  CHECK(names_in(root.path()) == std::set<std::string>{"step-00000005"});
  CHECK(holds(ck::Reader(root.path()), c, 5));
}

TEST_CASE("a checkpoint that cannot be looked at is an error and none that is missing") {
  const FakeRoot root;
  const Case c;
  save(root.path(), c, 1, 5);
  fs::create_symlink("step-00000006", root.path() + "/step-00000006");  // points at itself: ELOOP, whoever asks
  CHECK_THROWS_AS(ck::list(root.path()), IoError);
  CHECK_THROWS_AS(ck::Reader(root.path()), IoError);
}

TEST_CASE("where names cannot be exchanged, a kill between two renames still leaves a checkpoint") {
  const FakeRoot root;
  const Case c;
  save(root.path(), c, 2, 5);
  fs::rename(root.path() + "/step-00000005", root.path() + "/step-00000005.old");
  CHECK(holds(ck::Reader(root.path()), c, 5));
  save(root.path(), c, 1, 5);
  CHECK(ck::Reader(root.path()).description().ranks == 1);
  save(root.path(), c, 1, 6);
  CHECK(names_in(root.path()) == std::set<std::string>{"step-00000005", "step-00000006"});
}

TEST_CASE("the next save removes what a killed one has left, also of more ranks and of its own step") {
  const FakeRoot root;
  const Case c;
  fs::create_directories(root.path() + "/step-00000003.partial");
  spill(root.path() + "/step-00000003.partial/rank-00000.safetensors", "half");
  fs::create_directories(root.path() + "/step-00000004.partial");
  spill(root.path() + "/step-00000004.partial/rank-00000.json", "{}");
  spill(root.path() + "/step-00000004.partial/rank-00007.safetensors", "half");
  spill(root.path() + "/notes.txt", "the user's");
  const std::string path = save(root.path(), c, 2, 4);
  CHECK(names_in(root.path()) == std::set<std::string>{"notes.txt", "step-00000004"});
  CHECK(names_in(path) == std::set<std::string>{"manifest.json", "rank-00000.safetensors", "rank-00001.safetensors"});
}

TEST_CASE("a second save of a step is refused while the first goes on, and leaves other steps alone") {
  const FakeRoot root;
  const Case c;
  const ck::Description what = description_of(c, 1, 8);
  const auto pieces = pieces_of(c, 0, 1);
  ck::RankWriter first(root.path(), what, 0, c.parameters, pieces);
  CHECK(io_error_of([&] {
          ck::RankWriter(root.path(), what, 0, c.parameters, pieces);
        }).find("another save is writing") != std::string::npos);
  save(root.path(), c, 1, 9, 1);
  for (std::size_t i = 0; i < pieces.size(); ++i) write_piece(first, c, pieces, i, 0, pieces[i].numel.value, 8);
  first.finish();
  CHECK(holds(ck::Reader(ck::commit(root.path(), what, 0)), c, 8));
}

TEST_CASE("a writer that is given up leaves nothing") {
  const FakeRoot root;
  const Case c;
  {
    const auto pieces = pieces_of(c, 0, 1);
    ck::RankWriter writer(root.path() + "/new", description_of(c, 1, 8), 0, c.parameters, pieces);
    write_piece(writer, c, pieces, 0, 0, 3, 8);
  }
  CHECK(names_in(root.path() + "/new").empty());
}

TEST_CASE("commit refuses what is not each parameter once, and nothing becomes visible") {
  const FakeRoot root;
  const Case c;
  const ck::Description what = description_of(c, 2, 8);
  const auto pieces = pieces_of(c, 0, 2);
  std::vector<ck::RankWriter> writers;
  for (std::int64_t rank = 0; rank < 2; ++rank) {  // both the first half
    writers.emplace_back(root.path(), what, rank, c.parameters, pieces);
    for (std::size_t i = 0; i < pieces.size(); ++i)
      write_piece(writers.back(), c, pieces, i, 0, pieces[i].numel.value, 8);
    if (rank == 0) CHECK_THROWS_AS(ck::commit(root.path(), what, 0), IoError);  // rank 0's is not even there
    writers.back().finish();
    if (rank == 0)
      CHECK(io_error_of([&] { ck::commit(root.path(), what, 0); }).find("rank 1 has not finished") !=
            std::string::npos);
  }
  CHECK(error_of([&] { ck::commit(root.path(), what, 0); }).find("two pieces have element 0") != std::string::npos);
  CHECK(ck::list(root.path()).empty());
}

}  // namespace ebb::test
