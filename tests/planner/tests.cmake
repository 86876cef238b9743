ebb_test(planner_tests LIBS ebb_planner SOURCES
  planner/activation_levels_test.cpp
  planner/activations_test.cpp
  planner/allocation_trace_test.cpp
  planner/candidates_test.cpp
  planner/chunking_test.cpp
  planner/compute_cuts_test.cpp
  planner/tidal_order_test.cpp
  planner/compute_model_test.cpp
  planner/constraints_test.cpp
  planner/diff_test.cpp
  planner/doctor_test.cpp
  planner/field_reports_test.cpp
  planner/first_step_test.cpp
  planner/flags_test.cpp
  planner/footprint_test.cpp
  planner/host_bytes_test.cpp
  planner/hosts_test.cpp
  planner/html_timeline_test.cpp
  planner/layout_test.cpp
  planner/learn_test.cpp
  planner/life_checkpoint_parts_test.cpp
  planner/life_parts_test.cpp
  planner/life_plans_test.cpp
  planner/life_test.cpp
  planner/lower_test.cpp
  planner/megatron_file_test.cpp
  planner/megatron_job_test.cpp
  planner/newer_state_test.cpp
  planner/optimizer_traffic_test.cpp
  planner/parameters_test.cpp
  planner/quantization_test.cpp
  planner/prediction_test.cpp
  planner/recommend_test.cpp
  planner/recorded_peaks_test.cpp
  planner/reserved_test.cpp
  planner/verify_memory_test.cpp
  planner/verify_test.cpp
  planner/verify_together_test.cpp
  planner/weight_bytes_test.cpp
  planner/windowed_loop_test.cpp
  planner/rule_breakers_offload.cpp
  planner/rule_breakers_run.cpp
  planner/rule_breakers_sizes.cpp
  planner/rules_test.cpp
  planner/whole_state_test.cpp
  planner/score_test.cpp
  planner/search_test.cpp
  planner/training_log_test.cpp
  planner/uneven_pipeline_test.cpp
)
target_link_libraries(planner_tests PRIVATE nlohmann_json::nlohmann_json)

# Apart: every explanation searches a job several times.
ebb_test(explain_tests LIBS ebb_planner SOURCES
  planner/explain_test.cpp
  planner/explain_tide_test.cpp
  planner/paste_forms_test.cpp
)

# The search beyond one recommendation: fronts, objectives, limits and ranges.
ebb_test(search_tests LIBS ebb_planner SOURCES
  planner/fit_test.cpp
  planner/front_test.cpp
  planner/one_number_test.cpp
  planner/robust_test.cpp
  planner/set_value_test.cpp
  planner/sweep_test.cpp
)

# The tidal placement alone: it depends on nothing but units.
ebb_test(tide_tests LIBS ebb_planner SOURCES
  planner/tide_executor.cpp
  planner/tide_exhaustive.cpp
  planner/tide_property_test.cpp
  planner/tide_schedule_test.cpp
)
