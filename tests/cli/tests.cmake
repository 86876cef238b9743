# Runs the built program, over every job of the library.
ebb_test(cli_tests LIBS fmt::fmt nlohmann_json::nlohmann_json ebb_planner SOURCES
  cli/check_test.cpp
  cli/cli_test.cpp
  cli/diff_test.cpp
  cli/fit_test.cpp
  cli/whole_job_test.cpp
)
target_compile_definitions(cli_tests PRIVATE EBB_BINARY="$<TARGET_FILE:ebb>")
add_dependencies(cli_tests ebb)
