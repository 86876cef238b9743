# SimGrid beside Ebb, on request only (-D EBB_SIMGRID=ON; Debian: libsimgrid-dev). The ctest compares makespans, not
# times; the table of speeds is printed by hand: bin/simgrid_bench.
find_path(EBB_SIMGRID_INCLUDE simgrid/s4u.hpp REQUIRED)
find_library(EBB_SIMGRID_LIBRARY simgrid REQUIRED)

add_executable(simgrid_bench bench/simgrid_bench.cpp bench/simgrid_host.cpp)
target_include_directories(simgrid_bench SYSTEM PRIVATE "${EBB_SIMGRID_INCLUDE}")
target_link_libraries(simgrid_bench PRIVATE ebb_sim fmt::fmt "${EBB_SIMGRID_LIBRARY}")
add_test(NAME simgrid_makespans COMMAND simgrid_bench --check)
