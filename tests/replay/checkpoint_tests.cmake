# Checkpoints: what is written, what is refused, what a failing disk or a kill leaves.
ebb_test(checkpoint_tests LIBS ebb_checkpoint SOURCES
  replay/checkpoint_refusal_test.cpp
  replay/checkpoint_safetensors_test.cpp
  replay/checkpoint_test.cpp
)
# By hand: how near a save comes to the disk's speed.
add_executable(checkpoint_bench replay/checkpoint_bench.cpp)
target_link_libraries(checkpoint_bench PRIVATE ebb_checkpoint fmt::fmt)
