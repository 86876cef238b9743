# Plans come from the planner: tests may link both halves.
ebb_test(replay_tests LIBS ebb_replay ebb_planner SOURCES
  replay/consequences_test.cpp
  replay/mutation_test.cpp
  replay/oracle_test.cpp
  replay/program_test.cpp
  replay/reference_test.cpp
)
# A textbook's roundings, like the kernels' references: one to each operation.
set_source_files_properties(replay/oracle_test.cpp PROPERTIES COMPILE_OPTIONS "-ffp-contract=off")
