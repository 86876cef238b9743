# Plans come from the planner: tests may link both halves.
ebb_test(replay_tests LIBS ebb_replay ebb_planner SOURCES
  replay/engine_parts_test.cpp
  replay/host_adam_test.cpp
  replay/issue_plan_test.cpp
  replay/program_test.cpp
  replay/reference_test.cpp
)
