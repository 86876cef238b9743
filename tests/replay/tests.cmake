# Plans come from the planner: tests may link both halves.
ebb_test(replay_tests LIBS ebb_replay_command ebb_planner SOURCES
  replay/carry_over_test.cpp
  replay/consequences_test.cpp
  replay/device_lives_test.cpp
  replay/engine_parts_test.cpp
  replay/filler_test.cpp
  replay/equivalence_test.cpp
  replay/graph_stretch_test.cpp
  replay/host_adam_test.cpp
  replay/host_limits_test.cpp
  replay/host_region_test.cpp
  replay/issue_plan_test.cpp
  replay/life_parts_test.cpp
  replay/measured_replay_test.cpp
  replay/measured_tidal_test.cpp
  replay/mutation_test.cpp
  replay/oracle_test.cpp
  replay/preflight_test.cpp
  replay/processes_test.cpp
  replay/program_fuzz_test.cpp
  replay/program_life_test.cpp
  replay/program_test.cpp
  replay/quantized_test.cpp
  replay/reference_test.cpp
  replay/run_exchange_test.cpp
  replay/tide_plan_test.cpp
  replay/torch_memory_test.cpp
)
# Whole lives on the reference.
ebb_test(life_reference_tests LIBS ebb_replay ebb_planner SOURCES
  replay/life_drain_test.cpp
  replay/life_mutation_test.cpp
  replay/life_quantized_mutation_test.cpp
  replay/life_quantized_test.cpp
  replay/life_reference_test.cpp
)
target_link_libraries(replay_tests PRIVATE nlohmann_json::nlohmann_json)
target_compile_definitions(replay_tests PRIVATE EBB_REPLAY_BINARY="$<TARGET_FILE:ebb-replay>")
add_dependencies(replay_tests ebb-replay ebb)  # which runs the ebb beside it
if(EBB_HAVE_CUDA)
  # These need GPUs to run, so they are no ctests: run bin/*_gpu_check by hand, execute_gpu_check at the root of the tree.
  add_executable(execute_gpu_check replay/execute_gpu_check.cpp)
  target_link_libraries(execute_gpu_check PRIVATE ebb_replay_gpu ebb_planner fmt::fmt)
  target_compile_definitions(execute_gpu_check PRIVATE EBB_TEST_DATA="tests/data")
  add_executable(life_gpu_check replay/life_gpu_check.cpp)
  target_link_libraries(life_gpu_check PRIVATE ebb_replay_gpu ebb_planner fmt::fmt CUDA::cudart_static)
  target_compile_definitions(life_gpu_check PRIVATE EBB_TEST_DATA="tests/data")
  add_executable(quantized_gpu_check replay/gpu/quantized_gpu_check.cpp)
  target_link_libraries(quantized_gpu_check PRIVATE ebb_replay_gpu CUDA::cudart_static)
  add_executable(store_gpu_check replay/gpu/store_gpu_check.cpp)
  target_link_libraries(store_gpu_check PRIVATE ebb_replay_gpu CUDA::cudart_static)
endif()
# A textbook's roundings, like the kernels' references: one to each operation.
set_source_files_properties(replay/oracle_test.cpp PROPERTIES COMPILE_OPTIONS "-ffp-contract=off")
ebb_test(replay_schema_tests LIBS ebb_replay_command ebb_reports ebb_schema_validator nlohmann_json::nlohmann_json SOURCES
  replay/schema_replay_test.cpp
)
target_compile_definitions(replay_schema_tests PRIVATE EBB_REPLAY_BINARY="$<TARGET_FILE:ebb-replay>"
                                                       EBB_BINARY="$<TARGET_FILE:ebb>")
add_dependencies(replay_schema_tests ebb-replay ebb)
