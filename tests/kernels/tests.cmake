ebb_test(kernels_tests LIBS ebb_kernels_ref SOURCES
  kernels/adamw_test.cpp
)
if(EBB_HAVE_CUDA)
  # Needs a GPU to run, so it is no ctest: run bin/adamw_gpu_check by hand.
  add_executable(adamw_gpu_check kernels/adamw_gpu_check.cu)
  target_link_libraries(adamw_gpu_check PRIVATE ebb_kernels ebb_kernels_ref ebb_cuda_options)
endif()
