# Fits against known constants, against the simulator that uses them, and against what was measured on real machines.
ebb_test(calibrate_tests LIBS ebb_calibrate ebb_replay ebb_sim ebb_models nlohmann_json::nlohmann_json SOURCES
  replay/calibrate_data_test.cpp
  replay/calibrate_figures_test.cpp
  replay/calibrate_fit_test.cpp
  replay/calibrate_measured_test.cpp
  replay/calibrate_run_test.cpp
)
