// `ebb-replay train` and `ebb-replay equivalence --life` as commands: exit codes, messages that name the cure, options
// that make no sense together, and that a run which is cut into pieces prints the numbers of one that is not.
#include "tests/replay/life_workplace.hpp"

using namespace ebb;
using namespace ebb::test;

namespace {

namespace fs = std::filesystem;

const std::string kTiny = "'" EBB_TEST_DATA "/replay/tiny.yaml' ";

}  // namespace

TEST_CASE("train in pieces, from its newest checkpoint, gives the numbers of one run") {
  const Workplace place;
  const std::string cpu = "train life.json --device cpu --inject 3:1:inf ";
  const nlohmann::json whole = place.json(cpu + "--steps 7");
  const nlohmann::json first = place.json(cpu + "--steps 5 --checkpoint saves --save-every 2");
  CHECK(first["saves"] == nlohmann::json({2, 4, 5}));
  CHECK(first["checkpoints"].size() == 3);
  CHECK(std::distance(fs::directory_iterator(place.path() / "saves"), fs::directory_iterator()) == 2);  // --keep 2
  const nlohmann::json second = place.json(cpu + "--steps 7 --checkpoint saves --resume");
  CHECK(second["first"] == 5);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const nlohmann::json& steps = whole["ranks"][rank]["steps"];
    REQUIRE(steps.size() == 7);
    CHECK(steps[2]["skipped"] == true);
    CHECK(steps[2]["sum_of_squares"].is_null());
    for (std::size_t i = 0; i < 5; ++i) CHECK(first["ranks"][rank]["steps"][i] == steps[i]);
    for (std::size_t i = 5; i < 7; ++i) CHECK(second["ranks"][rank]["steps"][i - 5] == steps[i]);
    CHECK(second["ranks"][rank]["final_state"] == whole["ranks"][rank]["final_state"]);
    CHECK(second["ranks"][rank]["place"] == whole["ranks"][rank]["place"]);
    for (const nlohmann::json& peak : whole["ranks"][rank]["peaks"]) CHECK(peak["live"] == peak["planned"]);
  }
  const nlohmann::json fresh = place.json("train life.json --device cpu --steps 1 --load-params saves");
  CHECK(fresh["first"] == 0);
  CHECK(fresh["ranks"][0]["steps"][0]["loss"] != whole["ranks"][0]["steps"][0]["loss"]);
}

TEST_CASE("train says how fast a save was, beside plain large writes to the same disk") {
  const Workplace place;
  const Outcome outcome =
      place.run("train life.json --device cpu --steps 1 --checkpoint saves --storage-reference --loss-scale");
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("saved to") != std::string::npos);
  CHECK(outcome.out.find("before the last save") != std::string::npos);
  CHECK(outcome.out.find("% of their mean") != std::string::npos);
  CHECK(std::distance(fs::directory_iterator(place.path() / "saves"), fs::directory_iterator()) == 1);
}

TEST_CASE("train refuses what cannot be meant, and names the cure") {
  const Workplace place;
  place.refuses("train life.json --device cpu", "--steps 20");
  place.refuses("train life.json --device cpu --steps 3 --save-every 2", "--checkpoint DIR");
  place.refuses("train life.json --device cpu --steps 3 --keep 2", "--checkpoint DIR");
  place.refuses("train life.json --device cpu --steps 3 --resume", "--checkpoint DIR");
  place.refuses("train life.json --device cpu --steps 3 --storage-reference", "--checkpoint DIR");
  place.refuses("train life.json --device cpu --steps 3 --load a --load-params b", "one of --resume, --load");
  place.refuses("train life.json --device cpu --steps 3 --checkpoint d --resume --load a", "one of --resume, --load");
  place.refuses("train life.json --device cpu --steps 3 --devices 0", "--device gpu");
  place.refuses("train life.json --device cpu --steps 3 --inject 4:0:inf", "a step of 1 to 3");
  place.refuses("train life.json --device cpu --steps 3 --inject 2:7:inf", "ranks 0 to 1");
  place.refuses("train life.json --device cpu --steps 3 --inject 2:1:1.5", "inf, -inf or nan");
  place.refuses("train life.json --device cpu --steps 3 --inject 2", "STEP:RANK:VALUE");
  place.refuses("train life.json --device cpu --steps 3 --initial-loss-scale 1000", "power of two");
  place.refuses("train life.json --device cpu --steps 3 --load nowhere", "nowhere");
  place.refuses("train nothing.json --device cpu --steps 3", "nothing.json");
  place.refuses("train", "LIFE");
  place.refuses("tarin life.json", "did you mean \"train\"");
  CHECK(place.run("train life.json --device cpu --steps 2 --checkpoint saves").code == 0);
  place.refuses("train life.json --device cpu --steps 2 --load saves", "raise --steps");
  // A plan of the step alone is no life.
  std::ofstream(place.path() / "step.json") << to_json(host_plans(tiny_job(), {.policy = Policy::resident}).plans);
  place.refuses("train step.json --device cpu --steps 2", "--life");
}

TEST_CASE("equivalence --life: exit 0 for an offload, 1 for none, 2 for what makes no sense") {
  const Workplace place;
  const std::string job = "equivalence " + kTiny;
  const Outcome good = place.run(job + "--policy chunked --chunk-numel 4000 --life --steps 8");
  INFO(good.out + good.err);
  CHECK(good.code == 0);
  CHECK(good.out.find("Equivalent: chunked gives the bits of resident through the whole life") != std::string::npos);
  CHECK(good.out.find("on 1 rank, then on 2") != std::string::npos);
  CHECK(place.run(job + "--policy resident --life --steps 8 --reshard none --no-disturbed").code == 1);
  place.refuses(job + "--policy chunked --chunk-numel 4000 --save-at 3", "--life");
  place.refuses(job + "--policy chunked --chunk-numel 4000 --no-disturbed", "--life");
  place.refuses(job + "--policy chunked --chunk-numel 4000 --life --steps 5", "--steps");
  place.refuses(job + "--policy chunked --chunk-numel 4000 --life --kill-at 6", "--kill-at");
  place.refuses(job + "--policy chunked --chunk-numel 4000 --life --skip-at 99", "--skip-at");
  place.refuses(job + "--policy chunked --chunk-numel 4000 --life --skip-at none --skip-value nan", "--skip-at");
  place.refuses(job + "--policy chunked --chunk-numel 4000 --life --reshard 1", "1 GPUs already");
  place.refuses("equivalence life.json life.json --life --reshard 1", "job file");
}

TEST_CASE("A life's file where a step's is wanted is refused with what runs it") {
  const Workplace place;
  place.refuses("run life.json --device cpu", "ebb-replay train");
  place.refuses("equivalence life.json life.json", "--life");
  // The other way round.
  std::ofstream(place.path() / "step.json") << to_json(host_plans(tiny_job(), {.policy = Policy::resident}).plans);
  place.refuses("equivalence step.json life.json --life", "no plan of the part init");
  place.refuses("equivalence step.json life.json", "whole life");
}

TEST_CASE("A hand-edited life's file is refused with file and place, not by an assertion") {
  const Workplace place;
  const std::string good = text_of_file(place.path() / "life.json");
  const auto refuses = [&](const char* what, auto change, const std::string& words) {
    INFO(what);
    nlohmann::ordered_json life = nlohmann::ordered_json::parse(good);
    change(life["ranks"]);
    std::ofstream(place.path() / "bad.json") << life.dump();
    place.refuses("train bad.json --device cpu --steps 1 --checkpoint saves", words);
  };
  const auto of_part = [](nlohmann::ordered_json& ranks, const char* part) -> nlohmann::ordered_json& {
    for (nlohmann::ordered_json& plan : ranks)
      if (plan.value("part", "step") == part) return plan;
    throw std::logic_error("a life has all parts");
  };
  refuses(
      "half a store",
      [&](auto& ranks) {
        for (auto& op : of_part(ranks, "save")["ops"]) {
          if (op.value("work", "") != "store") continue;
          op["range"][1] =
              op["range"][0].template get<std::int64_t>() +
              (op["range"][1].template get<std::int64_t>() - op["range"][0].template get<std::int64_t>()) / 2;
          op["bytes"] = op["bytes"].template get<std::int64_t>() / 2;
          return;
        }
      },
      "bad.json");
  refuses(
      "a store twice",
      [&](auto& ranks) {
        auto& ops = of_part(ranks, "save")["ops"];
        ops.push_back(ops.back());
      },
      "come twice");
  refuses(
      "a rank that the job has not",
      [](auto& ranks) {
        for (auto& plan : ranks)
          if (plan["rank"] == 1) plan["rank"] = 7;
      },
      "bad.json");
  refuses(
      "a part twice", [](auto& ranks) { ranks.insert(ranks.begin(), ranks[0]); }, "not ascending");
  refuses(
      "no save",
      [&](auto& ranks) {
        for (std::size_t i = ranks.size(); i-- > 0;)
          if (ranks[i].value("part", "step") == "save") ranks.erase(i);
      },
      "no plan of the part save");
  refuses(
      "an unknown buffer", [&](auto& ranks) { of_part(ranks, "init")["ops"][0]["buffer"] = 999; }, "bad.json");
  refuses(
      "a shape",
      [](auto& ranks) {
        for (auto& plan : ranks) plan["parameters"][0]["shape"][0] = 1;
      },
      "does not lie in its parameter");
  refuses(
      "an offset",
      [](auto& ranks) {
        for (auto& plan : ranks) plan["shards"][0]["offset"] = 1;
      },
      "does not lie in its parameter");
}

TEST_CASE("a life stays on its ranks where one host has no more, and says so when another number is asked for") {
  const Workplace place;
  const std::string job =
      "equivalence '" EBB_SOURCE_DIR "/tests/gpu/replay-small.yaml' --policy chunked --chunk-numel 5e5";
  const Outcome alone = place.run(job + " --life --steps 8 --no-disturbed");
  INFO(alone.out + alone.err);
  CHECK(alone.code == 0);
  CHECK(alone.err.find("not resumed on 2 ranks") != std::string::npos);
  place.refuses(job + " --life --steps 8 --reshard 2", "--reshard: the job's cluster has 1 of 2 GPUs on a host");
}
