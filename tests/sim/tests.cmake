ebb_test(sim_tests LIBS ebb_sim SOURCES
  sim/simulate_test.cpp
)
