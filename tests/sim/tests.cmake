ebb_test(sim_tests LIBS ebb_sim nlohmann_json::nlohmann_json SOURCES
  sim/allocation_test.cpp
  sim/closed_forms_test.cpp
  sim/collective_cost_test.cpp
  sim/collective_measured_test.cpp
  sim/host_test.cpp
  sim/hostile_test.cpp
  sim/max_min_test.cpp
  sim/measured_test.cpp
  sim/naive_simulator.cpp
  sim/op_cost_test.cpp
  sim/pinned_memory_test.cpp
  sim/simulate_property_test.cpp
  sim/simulate_test.cpp
)
