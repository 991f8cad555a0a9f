# SPDX-License-Identifier: Apache-2.0
# The network of the examples, on a device of OpenCL.

if(NOT SWAPMM_BUILD_EXAMPLES)
  return()
endif()
if(NOT TARGET swapmm_neural)
  add_test(NAME neural COMMAND ${CMAKE_COMMAND} -E echo
    "skipped: the neural examples are not built; they need CLBlast and zlib (Debian: libclblast-dev, zlib1g-dev)")
  set_tests_properties(neural PROPERTIES LABELS neural SKIP_REGULAR_EXPRESSION "^skipped: ")
  return()
endif()

swapmm_add_tests(neural)
# Every buffer that anybody makes is counted, as in tests/opencl.
set(demo ${PROJECT_SOURCE_DIR}/examples/fashion_mnist)
target_sources(swapmm_neural_tests PRIVATE opencl/api_calls.cpp ${demo}/arguments.cpp ${demo}/results.cpp)
target_link_libraries(swapmm_neural_tests PRIVATE swapmm_neural ZLIB::ZLIB ${CMAKE_DL_LIBS})
set_target_properties(swapmm_neural_tests PROPERTIES ENABLE_EXPORTS ON)

# The kernels' text is CUDA C++, too. Where there is no compiler for it, headers.kernel_in_cuda says so.
if(SWAPMM_NVCC)
  file(CONFIGURE OUTPUT neural_kernels.cu CONTENT "#include \"neural/kernels.h\"\n")
  add_test(NAME neural.kernels_in_cuda COMMAND ${SWAPMM_NVCC} -std=c++20 -Werror all-warnings
    -Xcompiler=-Wall,-Wextra,-Werror -I ${PROJECT_SOURCE_DIR}/include -I ${PROJECT_SOURCE_DIR}/examples
    -c ${CMAKE_CURRENT_BINARY_DIR}/neural_kernels.cu -o ${CMAKE_CURRENT_BINARY_DIR}/neural_kernels.o)
  set_tests_properties(neural.kernels_in_cuda PROPERTIES LABELS neural TIMEOUT 300)
endif()

# The programs themselves, small: they compare their own results bit for bit, and fail where those differ.
add_test(NAME neural.sequence_program COMMAND sequence --steps 30 --batch 33 --hidden 20 --budget 0.3)
add_test(NAME neural.inference_program COMMAND inference --layers 3 --width 100 --batch 1 --budget 0.6)
set_tests_properties(neural.sequence_program neural.inference_program PROPERTIES LABELS neural TIMEOUT 300)
# Interrupted, the demo ends by itself and leaves no file.
add_test(NAME neural.demo_interrupted COMMAND bash -c "folder=$(mktemp -d) && cd $folder || exit 1
timeout --preserve-status --signal INT --kill-after 200 6 $<TARGET_FILE:fashion_mnist>; status=$?
left=$(ls -A); rm -rf $folder; echo status $status, files: $left; [[ $status == 130 && -z $left ]]")
set_tests_properties(neural.demo_interrupted PROPERTIES LABELS neural TIMEOUT 300)
