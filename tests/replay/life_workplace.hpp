// A directory with the plans of a tiny life, in which a test runs `ebb-replay` as a user would.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "models/plan_json.hpp"
#include "tests/catch.hpp"
#include "tests/replay/life_pairs.hpp"
#include "tests/text_of_file.hpp"

namespace ebb::test {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

/// A directory of this test's own with the plans of a chunked life on two ranks.
class Workplace {
 public:
  Workplace() : path_(std::filesystem::temp_directory_path() / ("ebb_life_command_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
    std::ofstream(path_ / "life.json") << to_json(
        life_plans(tiny_job(), {.policy = Policy::chunked, .chunk_numel = {4000}}, 2));
  }
  ~Workplace() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Outcome run(const std::string& arguments) const {
    const std::string command =
        "cd '" + path_.string() + "' && '" EBB_REPLAY_BINARY "' " + arguments + " >out 2>err </dev/null";
    const int status = std::system(command.c_str());
    REQUIRE(WIFEXITED(status));
    return {WEXITSTATUS(status), text_of_file(path_ / "out"), text_of_file(path_ / "err")};
  }
  nlohmann::json json(const std::string& arguments) const {
    const Outcome outcome = run(arguments + " --json");
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return nlohmann::json::parse(outcome.out);
  }
  /// Refused with exit 2, and a message with `words` in it.
  void refuses(const std::string& arguments, const std::string& words) const {
    const Outcome outcome = run(arguments);
    INFO(arguments << "\n" << outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.err.find(words) != std::string::npos);
    CHECK(outcome.out.empty());
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ebb::test
