# Checkpoints: what is written, what is refused, what a failing disk or a kill leaves.
ebb_test(checkpoint_tests LIBS ebb_checkpoint SOURCES
  replay/checkpoint_refusal_test.cpp
  replay/checkpoint_safetensors_test.cpp
  replay/checkpoint_test.cpp
)
