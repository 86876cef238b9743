# Schemas are read by valijson, compiled once.
find_path(EBB_VALIJSON_INCLUDE_DIR valijson/validator.hpp REQUIRED)
add_library(ebb_schema_validator STATIC schema_validator.cpp)
target_include_directories(ebb_schema_validator SYSTEM PRIVATE "${EBB_VALIJSON_INCLUDE_DIR}")
# GCC 12 reports a false -Wrestrict in string::replace.
target_compile_options(ebb_schema_validator PRIVATE -Wno-restrict)
target_link_libraries(ebb_schema_validator PUBLIC ebb_options nlohmann_json::nlohmann_json)

ebb_test(models_tests LIBS ebb_models ebb_schema_validator nlohmann_json::nlohmann_json SOURCES
  models/timeline_test.cpp
  models/cluster_write_test.cpp
  models/timeline_file_test.cpp
  models/cluster_yaml_test.cpp
  models/hf_config_test.cpp
  models/job_yaml_test.cpp
  models/library_test.cpp
  models/memory/arena_test.cpp
  models/memory/arena_tidal_test.cpp
  models/memory/caching_allocator_test.cpp
  models/memory/caching_allocator_trace_test.cpp
  models/memory/driver_addresses_test.cpp
  models/memory/free_list_test.cpp
  models/memory/torch_allocator_test.cpp
  models/model_totals_test.cpp
  models/model_yaml_test.cpp
  models/nearest_test.cpp
  models/plan_json_test.cpp
  models/quantity_text_test.cpp
  models/run_settings_yaml_test.cpp
  models/schema_json_test.cpp
  models/schema_yaml_test.cpp
  models/text_file_test.cpp
  models/units_test.cpp
  models/yaml_fuzz_test.cpp
  models/yaml_tree_test.cpp
)
