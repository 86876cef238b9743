// What the command-line tests run `ebb` with, from outside.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/text_of_file.hpp"

namespace ebb::test {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

/// A directory of this test's own, removed at the end.
struct Scratch {
  fs::path path = fs::temp_directory_path() / ("ebb_cli_test_" + std::to_string(::getpid()));
  Scratch() { fs::create_directories(path); }
  ~Scratch() { fs::remove_all(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

inline const fs::path& scratch() {
  static const Scratch directory;
  return directory.path;
}

/// `ebb` followed by `arguments` (shell syntax). They may redirect stdout themselves.
inline Outcome run_ebb(const std::string& arguments) {
  const fs::path out = scratch() / "out";
  const fs::path err = scratch() / "err";
  fs::remove(out);
  const std::string command = "cd '" EBB_SOURCE_DIR "' && { '" EBB_BINARY "' " + arguments + "; } >" + out.string() +
                              " 2>" + err.string() + " </dev/null";
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), text_of_file(out), text_of_file(err)};
}

inline fs::path write_job(const std::string& name, const std::string& text) {
  const fs::path path = scratch() / name;
  std::ofstream(path) << text;
  return path;
}

inline std::vector<std::string> library_jobs() {
  std::vector<std::string> jobs;
  for (const auto& entry : fs::directory_iterator(EBB_SOURCE_DIR "/models/jobs"))
    if (entry.path().extension() == ".yaml") jobs.push_back("models/jobs/" + entry.path().filename().string());
  std::sort(jobs.begin(), jobs.end());
  return jobs;
}

inline bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Bad input: nothing on stdout, one line a problem on stderr, and the message among them.
inline void check_rejected(const std::string& arguments, int code, const std::string& message, int problems = 1) {
  const Outcome outcome = run_ebb(arguments);
  INFO("ebb " << arguments << "\nstderr: " << outcome.err);
  CHECK(outcome.code == code);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.rfind("ebb: ", 0) == 0);
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == problems);
  CHECK(holds(outcome.err, message));
}

inline const std::string kMeasured = "models/jobs/measured-1.8b-1xh200.yaml";

}  // namespace ebb::test
