# The `ebb-replay` command line. Equivalence and reports are of ebb_replay_command, so that tests can link them.
add_library(ebb_replay_command STATIC
  command_checkpoint.cpp
  ebb_program.cpp
  equivalence.cpp
  equivalence_report.cpp
  interrupt.cpp
  life_compare.cpp
  life_equivalence.cpp
  life_equivalence_report.cpp
  life_executors.cpp
  life_files.cpp
  life_parts.cpp
  life_residency.cpp
  life_script.cpp
  plan_files.cpp
  run_report.cpp
  storage_reference.cpp
  train_report.cpp
  train_script.cpp
)
target_link_libraries(ebb_replay_command PUBLIC ebb_replay ebb_replay_gpu PRIVATE ebb_checkpoint ebb_reports fmt::fmt
                                                                                nlohmann_json::nlohmann_json)

# Its options, beside the program: tests ask what it would do with them.
add_library(ebb_replay_options STATIC
  cli_equivalence.cpp
  cli_options.cpp
  cli_train.cpp
  cli_words.cpp
)
target_link_libraries(ebb_replay_options PUBLIC ebb_replay_command ebb_calibrate PRIVATE ebb_command_line ebb_reports
                                                                                      fmt::fmt)
target_compile_definitions(ebb_replay_options PRIVATE EBB_VERSION="${PROJECT_VERSION}")

add_executable(ebb-replay
  command_equivalence.cpp
  command_run.cpp
  command_train.cpp
  main.cpp
)
target_link_libraries(ebb-replay PRIVATE ebb_replay_options ebb_reports fmt::fmt)
target_compile_definitions(ebb-replay PRIVATE EBB_VERSION="${PROJECT_VERSION}")
