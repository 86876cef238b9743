# `ebb-replay calibrate`: the fits go where anything can use and test them; ebb_calibrate is the command, which measures
# where there is CUDA and otherwise says that it cannot.
target_sources(ebb_replay PRIVATE calibrate_checks.cpp calibrate_data.cpp calibrate_figures.cpp calibrate_fit.cpp)
target_link_libraries(ebb_replay PRIVATE Eigen3::Eigen nlohmann_json::nlohmann_json)

add_library(ebb_calibrate STATIC calibrate.cpp)
target_link_libraries(ebb_calibrate PUBLIC ebb_replay PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
if(EBB_HAVE_CUDA)
  target_sources(ebb_calibrate PRIVATE
    calibrate_bench.cpp
    calibrate_calls.cpp
    calibrate_collectives.cpp
    calibrate_copies.cpp
    calibrate_kernels.cpp
    calibrate_measure.cpp
  )
  target_link_libraries(ebb_calibrate PRIVATE ebb_replay_gpu ebb_kernels CUDA::cudart_static Threads::Threads)
else()
  target_sources(ebb_calibrate PRIVATE calibrate_no_gpu.cpp)
endif()
