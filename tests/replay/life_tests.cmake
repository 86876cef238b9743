# Lives: their scripts, comparison and command line.
ebb_test(life_tests LIBS ebb_replay_command ebb_planner SOURCES
  replay/life_compare_test.cpp
  replay/life_parts_test.cpp
  replay/life_script_test.cpp
)
target_compile_definitions(life_tests PRIVATE EBB_REPLAY_BINARY="$<TARGET_FILE:ebb-replay>")
target_link_libraries(life_tests PRIVATE fmt::fmt)
