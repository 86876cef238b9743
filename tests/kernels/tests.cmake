ebb_test(kernels_tests LIBS ebb_kernels_ref SOURCES
  kernels/adamw_test.cpp
  kernels/digest_test.cpp
  kernels/elementwise_test.cpp
  kernels/gemm_test.cpp
  kernels/norm_test.cpp
  kernels/objective_test.cpp
  kernels/quantize_pieces_test.cpp
  kernels/quantize_test.cpp
  kernels/quick_division_test.cpp
  kernels/types_test.cpp
)
# The tests compute what they expect themselves, with the references' rounding.
target_compile_options(kernels_tests PRIVATE -ffp-contract=off)
if(EBB_HAVE_CUDA)
  target_sources(kernels_tests PRIVATE kernels/run_table_test.cpp)  # host code, but of a header that names CUDA's types
  target_include_directories(kernels_tests SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  # Need a GPU to run, so they are no ctests: run bin/kernels_gpu_check and bin/kernels_bench by hand.
  add_executable(kernels_gpu_check
    kernels/gpu/check_adamw.cpp
    kernels/gpu/check_division.cpp
    kernels/gpu/check_elementwise.cpp
    kernels/gpu/check_large.cpp
    kernels/gpu/check_others.cpp
    kernels/gpu/check_quantize.cpp
    kernels/gpu/check_sums.cpp
    kernels/gpu/divide.cu
    kernels/gpu/kernels_gpu_check.cpp
  )
  target_link_libraries(kernels_gpu_check PRIVATE ebb_kernels ebb_kernels_ref ebb_cuda_options CUDA::cudart_static)
  add_executable(kernels_bench
    kernels/gpu/bench_adamw.cpp
    kernels/gpu/bench_quantize.cpp
    kernels/gpu/bench_report.cpp
    kernels/gpu/kernels_bench.cpp
  )
  target_link_libraries(kernels_bench PRIVATE ebb_kernels ebb_kernels_ref CUDA::cudart_static)
endif()
