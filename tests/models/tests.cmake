ebb_test(models_tests LIBS ebb_models SOURCES
  models/timeline_test.cpp
  models/cluster_yaml_test.cpp
  models/hf_config_test.cpp
  models/job_yaml_test.cpp
  models/library_test.cpp
  models/model_totals_test.cpp
  models/model_yaml_test.cpp
  models/nearest_test.cpp
  models/plan_json_test.cpp
  models/quantity_text_test.cpp
  models/run_settings_yaml_test.cpp
  models/text_file_test.cpp
  models/units_test.cpp
  models/yaml_fuzz_test.cpp
  models/yaml_tree_test.cpp
)
