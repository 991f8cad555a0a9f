# SPDX-License-Identifier: Apache-2.0
# Of what ./dev gpu runs, the parts that need no GPU: the stack of transformer blocks on the simulated device, the
# statistics of the benchmarks, and the runner of the checks.

if(SWAPMM_BUILD_EXAMPLES)
  swapmm_add_tests(transformer)
  target_include_directories(swapmm_transformer_tests PRIVATE ${PROJECT_SOURCE_DIR}/examples)
  swapmm_add_tests(gpu_bench)
  target_include_directories(swapmm_gpu_bench_tests PRIVATE ${PROJECT_SOURCE_DIR}/examples)
endif()

# And the part that needs one.
if(TARGET swapmm_transformer)
  swapmm_add_tests(transformer_cuda)
  target_link_libraries(swapmm_transformer_cuda_tests PRIVATE swapmm_transformer)
  set_tests_properties(transformer_cuda.cuda_math transformer_cuda.others PROPERTIES
    LABELS "transformer;gpu" SKIP_REGULAR_EXPRESSION "skipped: ")
endif()
if(TARGET swapmm_bench_gpu_networks)
  # The programs, small: they compare their own results, and fail where those differ.
  set(small --layers 2 --width 64 --heads 4 --sequence 64 --batch 2)
  add_test(NAME transformer_cuda.program COMMAND transformer ${small} --steps 2 --budget 0.99)
  add_test(NAME gpu_bench.networks COMMAND swapmm_bench_gpu_networks ${small} --k 1)
  add_test(NAME gpu_bench.cnn COMMAND swapmm_bench_gpu_networks --network cnn --batch 64 --channels 8 --k 1,2
    --ways copies,recompute,compress)
  add_test(NAME gpu_bench.overhead COMMAND swapmm_bench_gpu_overhead --pairs 30 --layers 4 --width 256)
  set_tests_properties(transformer_cuda.program gpu_bench.networks gpu_bench.cnn gpu_bench.overhead PROPERTIES
    LABELS gpu TIMEOUT 300 SKIP_REGULAR_EXPRESSION "^skipped: ")
endif()

# The runner itself, with programs that need no GPU.
find_program(SWAPMM_PYTHON python3)
mark_as_advanced(SWAPMM_PYTHON)
if(SWAPMM_PYTHON AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  add_test(NAME gpu.runner COMMAND ${SWAPMM_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/gpu/run_test.py)
  set_tests_properties(gpu.runner PROPERTIES LABELS gpu TIMEOUT 300 FAIL_REGULAR_EXPRESSION "Ran 0 tests")
endif()

# All programs of ./dev gpu, as far as this machine can build them. Their targets are made later.
function(swapmm_gather_gpu_programs)
  add_custom_target(swapmm_gpu)
  foreach(program IN ITEMS swapmm_cuda_tests swapmm_neural_cuda_tests swapmm_transformer_cuda_tests fashion_mnist sequence
      inference transformer cuda_custom_kernel cuda_graph swapmm_gpu_devices swapmm_bench_gpu_codec
      swapmm_bench_gpu_links swapmm_bench_gpu_overhead swapmm_bench_gpu_networks swapmm_bench_replicas)
    if(TARGET ${program})
      add_dependencies(swapmm_gpu ${program})
    endif()
  endforeach()
endfunction()
cmake_language(DEFER CALL swapmm_gather_gpu_programs)
