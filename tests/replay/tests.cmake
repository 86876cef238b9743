# Plans come from the planner: tests may link both halves.
ebb_test(replay_tests LIBS ebb_replay ebb_planner SOURCES
  replay/program_test.cpp
  replay/reference_test.cpp
)
