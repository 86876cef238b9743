# Checkpoints: what is written, what is refused, what a failing disk or a kill leaves.
ebb_test(checkpoint_tests LIBS ebb_checkpoint ${CMAKE_DL_LIBS} SOURCES
  replay/checkpoint_faults_test.cpp
  replay/checkpoint_leftovers_test.cpp
  replay/checkpoint_refusal_test.cpp
  replay/checkpoint_safetensors_test.cpp
  replay/checkpoint_test.cpp
)

# A few kills here; by hand a thousand: tests/checkpoint-kills BIN/checkpoint_kill_driver 1000.
add_executable(checkpoint_kill_driver replay/checkpoint_kill_driver.cpp)
target_link_libraries(checkpoint_kill_driver PRIVATE ebb_checkpoint)
add_test(NAME checkpoint_kills
  COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/checkpoint-kills" $<TARGET_FILE:checkpoint_kill_driver> 20)

find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME checkpoint_other_reader
    COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/replay/checkpoint_read.py"
            $<TARGET_FILE:checkpoint_kill_driver>)
endif()

# By hand: how near a save comes to the disk's speed.
add_executable(checkpoint_bench replay/checkpoint_bench.cpp)
target_link_libraries(checkpoint_bench PRIVATE ebb_checkpoint fmt::fmt)
