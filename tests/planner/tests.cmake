ebb_test(planner_tests LIBS ebb_planner SOURCES
  planner/activations_test.cpp
  planner/allocation_trace_test.cpp
  planner/candidates_test.cpp
  planner/chunking_test.cpp
  planner/compute_model_test.cpp
  planner/constraints_test.cpp
  planner/first_step_test.cpp
  planner/flags_test.cpp
  planner/footprint_test.cpp
  planner/host_bytes_test.cpp
  planner/hosts_test.cpp
  planner/layout_test.cpp
  planner/life_test.cpp
  planner/lower_test.cpp
  planner/megatron_job_test.cpp
  planner/parameters_test.cpp
  planner/recommend_test.cpp
  planner/reserved_test.cpp
  planner/verify_memory_test.cpp
  planner/verify_test.cpp
  planner/verify_together_test.cpp
  planner/windowed_loop_test.cpp
  planner/rules_test.cpp
  planner/search_test.cpp
)
target_link_libraries(planner_tests PRIVATE nlohmann_json::nlohmann_json)
