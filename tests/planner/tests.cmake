ebb_test(planner_tests LIBS ebb_planner SOURCES
  planner/layout_test.cpp
)
