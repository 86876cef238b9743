# Runs the built program, over every job of the library.
ebb_test(cli_tests LIBS fmt::fmt nlohmann_json::nlohmann_json ebb_command ebb_schema_validator SOURCES
  cli/check_test.cpp
  cli/cli_test.cpp
  cli/completion_test.cpp
  cli/diff_test.cpp
  cli/doctor_test.cpp
  cli/fit_test.cpp
  cli/learn_test.cpp
  cli/library_test.cpp
  cli/progress_test.cpp
  cli/report_test.cpp
  cli/schema_test.cpp
  cli/screen_test.cpp
  cli/whole_job_test.cpp
)

# Runs what help texts and documents show.
ebb_test(example_tests LIBS ebb_command ebb_replay_options SOURCES
  cli/doc_commands.cpp
  cli/examples_test.cpp
)

foreach(name cli_tests example_tests)
  target_compile_definitions(${name} PRIVATE EBB_BINARY="$<TARGET_FILE:ebb>"
                                             EBB_REPLAY_BINARY="$<TARGET_FILE:ebb-replay>")
  add_dependencies(${name} ebb ebb-replay)
endforeach()

# Traces, read by Google's protoc. Without it the test is skipped; where EBB_REQUIRE_TOOLS is set (CI), it fails.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME trace_other_reader
    COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/cli/read_trace.py" $<TARGET_FILE:ebb>
            "${PROJECT_SOURCE_DIR}")
  set_tests_properties(trace_other_reader PROPERTIES SKIP_RETURN_CODE 77)
endif()
