ebb_test(sim_tests LIBS ebb_sim nlohmann_json::nlohmann_json SOURCES
  sim/allocation_test.cpp
  sim/arena_test.cpp
  sim/caching_allocator_test.cpp
  sim/caching_allocator_trace_test.cpp
  sim/driver_addresses_test.cpp
  sim/hostile_test.cpp
  sim/max_min_test.cpp
  sim/measured_test.cpp
  sim/naive_simulator.cpp
  sim/op_cost_test.cpp
  sim/simulate_property_test.cpp
  sim/simulate_test.cpp
  sim/torch_allocator_test.cpp
)
