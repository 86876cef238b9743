// The standard life as data: which events each leg has, where they lie, and which lives there cannot be.
#include "replay/life_script.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "models/errors.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::replay;
using Kind = LifeEvent::Kind;

namespace {

const LifeSetting kSetting{{.adam = {}}, "/d", 1, 0};

/// "init load:own steps:3 save:own", so that a whole leg is one comparison.
std::string text_of(const Leg& leg) {
  std::string text;
  for (const LifeEvent& event : leg.script.events) {
    const std::string where = fmt::format(":{}", std::filesystem::path(event.directory).filename().string());
    if (!text.empty()) text += ' ';
    if (event.kind == Kind::init) text += "init";
    if (event.kind == Kind::load) text += "load" + where;
    if (event.kind == Kind::load_params) text += "params" + where;
    if (event.kind == Kind::save) text += "save" + where;
    if (event.kind == Kind::steps) text += fmt::format("steps:{}", event.steps);
  }
  return text;
}

std::vector<std::string> texts_of(const std::vector<Leg>& legs) {
  std::vector<std::string> texts;
  for (const Leg& leg : legs) texts.push_back(fmt::format("{}: {}", name_of(leg.kind), text_of(leg)));
  return texts;
}

}  // namespace

TEST_CASE("The standard life: killed after 8, resumed from 6, resharded at 13; the baseline only changes ranks") {
  const LifeShape shape = standard_life(20);
  const std::vector<Leg> legs = interrupted_life(shape, kSetting);
  CHECK(texts_of(legs) == std::vector<std::string>{"from init: init steps:6 save:own steps:2 load:own steps:2",
                                                   "resumed: init load:own steps:7 save:own",
                                                   "resharded: init load:own save:resharded steps:7",
                                                   "from parameters: init params:own steps:2"});
  CHECK(legs[0].taken == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 7, 8});
  CHECK(legs[1].taken == std::vector<int>{7, 8, 9, 10, 11, 12, 13});
  CHECK(legs[2].taken.front() == 14);
  CHECK(legs[2].taken.back() == 20);
  CHECK(texts_of(uninterrupted_life(shape, kSetting)) ==
        std::vector<std::string>{"from init: init steps:13 save:own", "resharded: init load:own steps:7",
                                 "from parameters: init params:own steps:2"});
}

TEST_CASE("Without another number of ranks the resumed leg goes on to the end") {
  LifeShape shape = standard_life(20);
  shape.reshard = false;
  CHECK(texts_of(interrupted_life(shape, kSetting)) ==
        std::vector<std::string>{"from init: init steps:6 save:own steps:2 load:own steps:2",
                                 "resumed: init load:own steps:7 save:own steps:7 save:own",
                                 "from parameters: init params:own steps:2"});
  CHECK(texts_of(uninterrupted_life(shape, kSetting)) ==
        std::vector<std::string>{"from init: init steps:20 save:own", "from parameters: init params:own steps:2"});
}

TEST_CASE("Every leg but the fresh one spoils the same training steps, on the last rank that it has") {
  LifeShape shape = standard_life(kShortLife);
  shape.skip_value = std::nanf("");
  for (const Leg& leg : interrupted_life(shape, kSetting)) {
    const std::vector<Injection>& injections = leg.script.training.injections;
    if (leg.kind == LegKind::fresh) {
      CHECK(injections.empty());
      continue;
    }
    REQUIRE(injections.size() == 2);
    CHECK(injections[0].step == 1);
    CHECK(injections[1].step == 3);
    CHECK(injections[0].rank == (leg.other_ranks() ? 0 : 1));
    CHECK(std::isnan(injections[0].value));
    CHECK(leg.script.keep == 0);
  }
}

TEST_CASE("A life has room for its save, its lost steps and the resume, or is refused with the option's name") {
  CHECK_NOTHROW(check_shape(standard_life(20)));
  CHECK_NOTHROW(check_shape(standard_life(kShortLife)));
  CHECK_NOTHROW(check_shape(standard_life(19)));
  const auto refused = [](auto change, const char* option) {
    LifeShape shape = standard_life(20);
    change(shape);
    CHECK_THROWS_WITH(check_shape(shape), Catch::Contains(option));
  };
  refused([](LifeShape& shape) { shape.reshard_at = 20; }, "--reshard-at");
  refused([](LifeShape& shape) { shape.steps = 5; }, "--reshard-at");
  refused([](LifeShape& shape) { shape.kill_at = 6; }, "--kill-at");
  refused([](LifeShape& shape) { shape.reshard_at = 7; }, "--reshard-at");
  refused([](LifeShape& shape) { shape.skips = {21}; }, "--skip-at");
  refused([](LifeShape& shape) { shape.skips = {1, 2, 3, 4, 5, 6}; }, "--save-at");
}
