ebb_test(planner_tests LIBS ebb_planner SOURCES
  planner/activations_test.cpp
  planner/compute_model_test.cpp
  planner/footprint_test.cpp
  planner/layout_test.cpp
)
