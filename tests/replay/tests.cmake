# Plans come from the planner: tests may link both halves.
ebb_test(replay_tests LIBS ebb_replay_command ebb_planner SOURCES
  replay/consequences_test.cpp
  replay/equivalence_test.cpp
  replay/mutation_test.cpp
  replay/oracle_test.cpp
  replay/program_fuzz_test.cpp
  replay/program_test.cpp
  replay/reference_test.cpp
)
target_link_libraries(replay_tests PRIVATE nlohmann_json::nlohmann_json)
target_compile_definitions(replay_tests PRIVATE EBB_REPLAY_BINARY="$<TARGET_FILE:ebb-replay>")
add_dependencies(replay_tests ebb-replay ebb)  # which runs the ebb beside it
# A textbook's roundings, like the kernels' references: one to each operation.
set_source_files_properties(replay/oracle_test.cpp PROPERTIES COMPILE_OPTIONS "-ffp-contract=off")
