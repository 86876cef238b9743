# Runs the built program, over every job of the library.
ebb_test(cli_tests LIBS nlohmann_json::nlohmann_json ebb_planner ebb_schema_validator SOURCES
  cli/check_test.cpp
  cli/cli_test.cpp
  cli/diff_test.cpp
  cli/schema_test.cpp
  cli/whole_job_test.cpp
)
target_compile_definitions(cli_tests PRIVATE EBB_BINARY="$<TARGET_FILE:ebb>")
add_dependencies(cli_tests ebb)

# Traces, read by Google's protoc. Without it the test is skipped; where EBB_REQUIRE_TOOLS is set (CI), it fails.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME trace_other_reader
    COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/cli/read_trace.py" $<TARGET_FILE:ebb>
            "${PROJECT_SOURCE_DIR}")
  set_tests_properties(trace_other_reader PROPERTIES SKIP_RETURN_CODE 77)
endif()
