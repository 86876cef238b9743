// What is not exactly the checkpoint that was saved is refused, with the file and the reason.
#include "replay/checkpoint/manifest.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"
#include "tests/models/mutate.hpp"
#include "tests/replay/checkpoint_cases.hpp"

namespace ebb::test {

namespace fs = std::filesystem;

namespace {

Case small() {
  Case c;
  c.parameters = {{"a", {13}}, {"b", {3, 5}}};
  return c;
}

std::string refusal(const std::string& path, bool hashes = true) {
  return error_of([&] { const ck::Reader reader(path, hashes, 1); });
}

bool says(const std::string& message, std::string_view file, std::string_view reason) {
  INFO(message);
  CHECK(message.find(file) != std::string::npos);
  CHECK(message.find(reason) != std::string::npos);
  return message.find(file) != std::string::npos && message.find(reason) != std::string::npos;
}

/// The manifest after `change`, with a hash that fits it.
template <class Change>
void reseal(const std::string& path, const Change& change) {
  std::string text = slurp(path + "/manifest.json");
  text.resize(text.rfind(",\n\"hash\":"));
  change(text);
  text += ",\n\"hash\":\"" + ck::hash_of(text).text() + "\"}\n";
  spill(path + "/manifest.json", text);
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("any changed byte of any file is found") {
  const FakeRoot root(memory());
  const std::string path = save(root.path(), small(), 2, 1, 0, {.threads = 1, .block = 4_KiB});
  REQUIRE(refusal(path).empty());
  for (const std::string name : {"manifest.json", "rank-00000.safetensors", "rank-00001.safetensors"}) {
    const std::string file = path + "/" + name;
    const std::string whole = slurp(file);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
      spill(file, changed);
      const std::string message = refusal(path);
      INFO(name << " at " << at << ": " << message);
      REQUIRE(message.find(name) != std::string::npos);
    }
    spill(file, whole);
  }
  CHECK(refusal(path).empty());
}

TEST_CASE("a file of any other length is found, also without hashes") {
  const FakeRoot root(memory());
  const std::string path = save(root.path(), small(), 2, 1);
  for (const std::string name : {"manifest.json", "rank-00000.safetensors", "rank-00001.safetensors"}) {
    const std::string file = path + "/" + name;
    const std::string whole = slurp(file);
    for (std::size_t size = 0; size < whole.size(); size += 1 + size / 50) {
      spill(file, whole.substr(0, size));
      REQUIRE(refusal(path, false).find(name) != std::string::npos);
    }
    spill(file, whole + std::string(1, '\0'));
    CHECK(refusal(path, false).find(name) != std::string::npos);
    fs::remove(file);
    CHECK(!refusal(path, false).empty());
    spill(file, whole);
  }
  CHECK(refusal(path).empty());
}

TEST_CASE("files of two saves are not one checkpoint") {
  const FakeRoot root;
  const Case c = small();
  const std::string a = save(root.path() + "/a", c, 2, 1);
  const std::string b = save(root.path() + "/b", c, 2, 2);
  Case other = c;
  other.job = "Made-up";
  const std::string d = save(root.path() + "/d", other, 2, 1);
  const std::string file = "/rank-00001.safetensors";
  const std::string whole = slurp(a + file);
  for (const std::string& from : {b, d}) {
    spill(a + file, slurp(from + file));
    CHECK(says(refusal(a, false), "rank-00001.safetensors", "belongs to another save"));
  }
  spill(a + file, whole);
  REQUIRE(refusal(a).empty());
  spill(a + file, slurp(a + "/rank-00000.safetensors"));
  CHECK(!refusal(a, false).empty());
  spill(a + file, whole);
  spill(a + "/manifest.json", slurp(b + "/manifest.json"));
  CHECK(says(refusal(a, false), "rank-00000.safetensors", "belongs to another save"));
}

TEST_CASE("the same header over other data is found by hashes") {
  const FakeRoot root;
  const Case c = small();
  const std::string a = save(root.path() + "/a", c, 1, 1);
  std::string text = slurp(a + "/rank-00000.safetensors");
  std::string data = slurp(save(root.path() + "/b", c, 1, 2) + "/rank-00000.safetensors").substr(4096);
  spill(a + "/rank-00000.safetensors", text.substr(0, 4096) + data);
  CHECK(refusal(a, false).empty());  // sizes and headers are right
  CHECK(says(refusal(a), "rank-00000.safetensors", "not those that were saved"));
}

TEST_CASE("what is no checkpoint is refused by name") {
  const FakeRoot root;
  const std::string path = save(root.path(), small(), 1, 1);
  CHECK(says(refusal(root.path() + "/none"), "none", "no such checkpoint"));
  CHECK(says(refusal(path + "/manifest.json"), "manifest.json", "no checkpoint"));
  fs::create_directories(root.path() + "/empty");
  CHECK(says(refusal(root.path() + "/empty"), "empty", "no checkpoint in this directory"));
  fs::rename(path, path + ".partial");
  CHECK(says(refusal(path + ".partial"), ".partial", "never ended"));
  CHECK(says(refusal(root.path()), root.path(), "no checkpoint in this directory"));
}

TEST_CASE("a manifest that is sealed and wrong all the same is refused") {
  const FakeRoot root;
  const std::string path = save(root.path(), small(), 2, 1);
  const std::string whole = slurp(path + "/manifest.json");
  struct Change {
    std::string_view from, to, reason;
  };
  for (const Change& change : std::vector<Change>{
           {R"("version":2)", R"("version":3)", "version 3"},
           {R"("format":"ebb-checkpoint")", R"("format":"other")", "no checkpoint of Ebb's"},
           {R"("name":"b")", R"("name":"a")", "twice"},
           {R"("shape":[13])", R"("shape":[14])", "nothing has element 13"},
           {R"("shape":[13])", R"("shape":[12])", "expected a whole number"},
           {R"("shape":[13])", R"("shape":[4294967296,4294967296,4294967296])", "expected a whole number"},
           {R"("ranks":2)", R"("ranks":3)", "2 files for 3 ranks"},
           {R"("name":"rank-00001.safetensors")", R"("name":"../rank-00001.safetensors")", "file 1 should be"},
           {R"("state":"master")", R"("state":"grads")", "unknown state"},
           {R"("type":"fp32")", R"("type":"bf16")", "the type changes"},
           {R"("block":8192)", R"("block":8193)", "no multiple of 4096"},
           {R"("loss_scale":65536.0)", R"("loss_scale":1e300)", "finite"},
           {R"("place":)", R"("pl":)", "place"}}) {
    reseal(path, [&](std::string& text) { replace(text, change.from, change.to); });
    CHECK(says(refusal(path), "manifest.json", change.reason));
    spill(path + "/manifest.json", whole);
  }
  reseal(path, [](std::string& text) {
    const std::size_t at = text.find("\"master\":\"", text.find("\"content\":")) + 10;
    text[at] = text[at] == '0' ? '1' : '0';
  });
  CHECK(says(refusal(path), "manifest.json", "content of master"));
}

TEST_CASE("random damage under a fitting hash never passes with changed data and never crashes") {
  const FakeRoot root(memory());
  const Case c = small();
  const std::string path = save(root.path(), c, 2, 1);
  const std::string manifest = slurp(path + "/manifest.json");
  std::mt19937 random(3);
  int passed = 0;
  for (int i = 0; i < 3000; ++i) {
    reseal(path, [&](std::string& text) { text = mutate(text, random); });
    try {
      const ck::Reader reader(path, true, 1);
      ++passed;  // another name of a parameter, another seed: what only the manifest knows
      for (const ck::Parameter& parameter : reader.parameters()) CHECK(parameter.shape.size() <= 2);
    } catch (const InputError& error) {
      CHECK(std::string(error.what()).find(path) != std::string::npos);
    }
    spill(path + "/manifest.json", manifest);
  }
  CHECK(passed < 300);
}

TEST_CASE("a job asks for its own parameters, shapes, states and types") {
  const FakeRoot root;
  const Case c = small();
  const ck::Reader reader(save(root.path(), c, 2, 1));
  constexpr std::uint8_t kAll = kAllState | kParams;
  const auto refused = [&](const std::vector<ck::Parameter>& parameters, const Precision& precision) {
    return error_of([&] { reader.require(parameters, kAll, precision); });
  };
  CHECK(refused(c.parameters, c.precision).empty());
  CHECK(refused({c.parameters[1]}, c.precision).empty());  // of one pipeline stage
  CHECK(says(refused({{"c", {3}}}, c.precision), "step-00000001", "no parameter \"c\""));
  CHECK(says(refused({{"b", {5, 3}}}, c.precision), "step-00000001", "has the shape [3, 5], not [5, 3]"));
  Precision precision = c.precision;
  precision.exp_avg = Dtype::bf16;
  CHECK(says(refused(c.parameters, precision), "exp_avg of \"a\"", "saved in fp32, not in bf16"));
  std::vector<std::byte> data(100);
  const auto reading = [&](const std::string& name, StateBits state, std::int64_t offset, std::int64_t numel,
                           Dtype type) {
    return error_of([&] { reader.read(name, state, {offset}, {numel}, type, data.data()); });
  };
  CHECK(reading("a", kMaster, 3, 10, Dtype::fp32).empty());
  CHECK(says(reading("a", kMaster, 3, 11, Dtype::fp32), "\"a\"", "has 13 elements"));
  CHECK(says(reading("a", kMaster, 3, 1, Dtype::fp16), "\"a\"", "saved in fp32"));
  CHECK(says(reading("x", kMaster, 3, 1, Dtype::fp32), "\"x\"", "no parameter"));
}

TEST_CASE("a parameter that the job has not is left over") {
  const FakeRoot root;
  const Case c = small();
  const ck::Reader reader(save(root.path(), c, 2, 1));
  CHECK(error_of([&] { reader.require_none_left("11"); }).empty());
  const std::string message = error_of([&] { reader.require_none_left("10"); });
  CHECK(says(message, "step-00000001/rank-00000.safetensors", "\"exp_avg/b@0\""));
  CHECK(says(message, "", "larger model"));
}

TEST_CASE("another parallel size is called by its name") {
  const FakeRoot root;
  Case c;
  c.parameters = {{"fc1 [tp 0/2]", {4}},
                  {"fc1 [tp 1/2]", {4}},
                  {"expert [etp 0/2] [ep 0/4]", {4}},
                  {"word [tp 0/2] [pp 0/2]", {4}},
                  {"odd [1]", {4}}};
  const ck::Reader reader(save(root.path(), c, 1, 1));
  const auto refused = [&](const std::string& name) {
    return error_of([&] { reader.require(std::vector<ck::Parameter>{{name, {4}}}, kMaster, c.precision); });
  };
  CHECK(refused("fc1 [tp 1/2]").empty());
  CHECK(refused("odd [1]").empty());
  CHECK(says(refused("fc1"), "step-00000001", "tensor parallel size 2, the job of 1"));
  CHECK(says(refused("fc1 [tp 3/4]"), "step-00000001", "tensor parallel size 2, the job of 4"));
  CHECK(says(refused("expert [etp 0/2] [ep 0/2]"), "step-00000001", "of expert parallel size 4, the job of 2"));
  CHECK(refused("expert [etp 0/2] [ep 0/2]").find("tensor") == std::string::npos);
  CHECK(says(refused("expert"), "", "expert tensor parallel size 2, the job of 1; of"));
  CHECK(says(refused("word [tp 0/2]"), "", "pipeline parallel size 2, the job of 1"));
  CHECK(says(refused("fc2 [tp 0/2]"), "", "another model"));
  CHECK(says(refused("odd [2]"), "", "another model"));
}

TEST_CASE("a directory that is called after another step is refused") {
  const FakeRoot root;
  const std::string path = save(root.path(), small(), 2, 20);
  fs::copy(path, root.path() + "/step-00000040");
  CHECK(says(refusal(root.path() + "/step-00000040", false), "step-00000040/manifest.json", "it is of step 20"));
  CHECK(says(refusal(root.path(), false), "step-00000040", "it is of step 20"));  // the newest by name
  fs::rename(root.path() + "/step-00000040", root.path() + "/best");              // a name that says nothing
  CHECK(refusal(root.path() + "/best").empty());
}

TEST_CASE("a later checkpoint of another run is in the way of a save") {
  const FakeRoot root;
  CHECK(error_of([&] { ck::require_newest(root.path() + "/none", 0); }).empty());
  save(root.path(), small(), 1, 20);
  save(root.path(), small(), 1, 40);
  CHECK(error_of([&] { ck::require_newest(root.path(), 40); }).empty());
  CHECK(says(error_of([&] { ck::require_newest(root.path(), 20); }), "step-00000040", "later step than 20"));
  CHECK(says(error_of([&] { ck::require_newest(root.path(), 0); }), "step-00000040", "--resume"));
}

TEST_CASE("a damaged manifest is a damaged manifest, whatever byte it begins to be wrong at") {
  const FakeRoot root;
  const std::string path = save(root.path(), small(), 1, 1);
  const std::string file = path + "/manifest.json";
  const std::string whole = slurp(file);
  for (const std::string& bytes : {std::string("\0", 1), std::string("\x01"), std::string("\xff\xfe")}) {
    spill(file, whole.substr(0, 30) + bytes + whole.substr(30 + bytes.size()));
    CHECK(says(refusal(path), "manifest.json", "its text and its hash disagree"));
  }
  spill(file, "");
  CHECK(says(refusal(path), "manifest.json", "truncated"));
  fs::remove(file);
  fs::create_directory(file);
  CHECK(says(refusal(path), "manifest.json", "this is no file"));
}

TEST_CASE("data files that have changed places are found") {
  const FakeRoot root;
  const std::string path = save(root.path(), small(), 2, 1);
  fs::rename(path + "/rank-00000.safetensors", path + "/x");
  fs::rename(path + "/rank-00001.safetensors", path + "/rank-00000.safetensors");
  fs::rename(path + "/x", path + "/rank-00001.safetensors");
  CHECK(says(refusal(path, false), "rank-00000.safetensors", ""));
}

TEST_CASE("a state that nobody saved is not there") {
  const FakeRoot root;
  const Case c = small();
  const ck::Description what = description_of(c, 1, 1);
  auto pieces = pieces_of(c, 0, 1);
  std::erase_if(pieces, [](const ck::Piece& piece) { return (piece.state & kMoments) != 0; });
  ck::RankWriter writer(root.path(), what, 0, c.parameters, pieces);
  for (std::size_t i = 0; i < pieces.size(); ++i) write_piece(writer, c, pieces, i, 0, pieces[i].numel.value, 1);
  writer.finish();
  const ck::Reader reader(ck::commit(root.path(), what, 0));
  CHECK_FALSE(reader.type(kExpAvg).has_value());
  CHECK(reader.content(kExpAvg) == 0);
  reader.require(c.parameters, kMaster | kParams, c.precision);
  CHECK(says(error_of([&] { reader.require(c.parameters, kAllState, c.precision); }), "exp_avg of \"a\"", "has no"));
}

TEST_CASE("a file that changes after it was checked is noticed") {
  const FakeRoot root;
  const Case c = small();
  const std::string path = save(root.path(), c, 1, 1);
  const ck::Reader reader(path);
  const std::string file = path + "/rank-00000.safetensors";
  spill(file + ".new", slurp(file));
  fs::rename(file + ".new", file);
  std::vector<std::byte> data(4);
  CHECK(says(error_of([&] { reader.read("a", kMaster, {0}, {1}, Dtype::fp32, data.data()); }), "rank-00000.safetensors",
             "changed since"));
}

}  // namespace ebb::test
