# Lives: their scripts, comparison and command line; and the whole matrix of recipes, which takes minutes.
ebb_test(life_tests LIBS ebb_replay_command ebb_planner SOURCES
  replay/life_command_test.cpp
  replay/life_compare_test.cpp
  replay/life_equivalence_test.cpp
  replay/life_fuzz_test.cpp
  replay/life_peaks_test.cpp
  replay/life_resume_test.cpp
  replay/life_script_test.cpp
)
target_link_libraries(life_tests PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
target_compile_definitions(life_tests PRIVATE EBB_REPLAY_BINARY="$<TARGET_FILE:ebb-replay>")
add_dependencies(life_tests ebb-replay ebb)
ebb_test(life_matrix_tests LIBS ebb_replay_command ebb_planner SOURCES replay/life_matrix_test.cpp)
add_test(NAME kill_saves COMMAND "${PROJECT_SOURCE_DIR}/tests/kill-saves" "$<TARGET_FILE_DIR:ebb-replay>" 10)
