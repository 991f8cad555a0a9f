# SPDX-License-Identifier: Apache-2.0
# The networks of the examples: on a device of OpenCL, on a CUDA device where there is one, and on the host in the place
# of one.

if(NOT SWAPMM_BUILD_EXAMPLES)
  return()
endif()
if(NOT TARGET swapmm_neural)
  add_test(NAME neural COMMAND ${CMAKE_COMMAND} -E echo "skipped: the neural examples are not built; they need zlib, and "
    "OpenCL with CLBlast or CUDA with nvcc and cuBLAS (Debian: zlib1g-dev, libclblast-dev)")
  set_tests_properties(neural PROPERTIES LABELS neural SKIP_REGULAR_EXPRESSION "^skipped: ")
  return()
endif()
swapmm_keep_apart(neural kernels)
get_target_property(apis swapmm_neural INTERFACE_COMPILE_DEFINITIONS)

set(device_tests gradients inference kernels lstm recurrent replicas split training work_area)
if(NEURAL_ON_OPENCL IN_LIST apis)
  swapmm_add_tests(neural)
  # Every buffer that anybody makes is counted, as in tests/opencl.
  target_sources(swapmm_neural_tests PRIVATE opencl/api_calls.cpp)
  set_target_properties(swapmm_neural_tests PROPERTIES ENABLE_EXPORTS ON)
else()
  # What needs no device.
  file(GLOB sources CONFIGURE_DEPENDS neural/*_test.cpp)
  list(JOIN device_tests "|" names)
  list(FILTER sources EXCLUDE REGEX "/(${names})_test\\.cpp$")
  add_executable(swapmm_neural_tests ${sources})
  target_link_libraries(swapmm_neural_tests PRIVATE swapmm_test_support)
  swapmm_warnings_for(swapmm_neural_tests)
  add_test(NAME neural.without_device COMMAND swapmm_neural_tests)
  set_tests_properties(neural.without_device PROPERTIES LABELS neural TIMEOUT 300)
endif()
set(demo ${PROJECT_SOURCE_DIR}/examples/fashion_mnist)
target_sources(swapmm_neural_tests PRIVATE ${demo}/arguments.cpp ${demo}/results.cpp)
swapmm_runs_long(swapmm_neural_tests)
target_link_libraries(swapmm_neural_tests PRIVATE swapmm_neural ZLIB::ZLIB ${CMAKE_DL_LIBS})

# Those that need a device, for CUDA: compiled once, and linked twice.
if(NEURAL_ON_CUDA IN_LIST apis)
  list(TRANSFORM device_tests REPLACE "(.+)" "neural/\\1_test.cpp" OUTPUT_VARIABLE sources)
  add_library(swapmm_neural_cuda_objects OBJECT ${sources} neural/raw_network.cpp neural/recurrent_reference.cpp)
  target_compile_definitions(swapmm_neural_cuda_objects PUBLIC SWAPMM_TEST_ON_CUDA)
  target_include_directories(swapmm_neural_cuda_objects PUBLIC ${PROJECT_SOURCE_DIR}/examples)
  target_link_libraries(swapmm_neural_cuda_objects PUBLIC swapmm_test_support swapmm_cuda_objects)
  swapmm_warnings_for(swapmm_neural_cuda_objects)
  swapmm_runs_long(swapmm_neural_cuda_objects)

  # On a GPU.
  add_executable(swapmm_neural_cuda_tests $<TARGET_OBJECTS:swapmm_neural_cuda_objects> neural/cuda/main.cpp)
  target_link_libraries(swapmm_neural_cuda_tests PRIVATE swapmm_test_support swapmm_neural)
  swapmm_warnings_for(swapmm_neural_cuda_tests)
  foreach(name IN LISTS device_tests)
    add_test(NAME neural_cuda.${name} COMMAND swapmm_neural_cuda_tests --source-file=*/neural/${name}_test.cpp)
    set_tests_properties(neural_cuda.${name} PROPERTIES LABELS "neural;gpu" TIMEOUT 900
      SKIP_REGULAR_EXPRESSION "^skipped: " FAIL_REGULAR_EXPRESSION "test cases: +0 ")
  endforeach()

  # And on the host, by a runtime and libraries of the test's own: with the same launches and calls.
  get_target_property(includes swapmm_cublas INTERFACE_SYSTEM_INCLUDE_DIRECTORIES)
  find_path(SWAPMM_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(SWAPMM_CUDNN_INCLUDE)
    set(neural ${PROJECT_SOURCE_DIR}/examples/neural)
    add_executable(swapmm_neural_host_tests $<TARGET_OBJECTS:swapmm_neural_cuda_objects>
      neural/cuda/host_libraries.cpp neural/cuda/host_runtime.cpp neural/cuda/libraries_test.cpp
      ${neural}/cublas.cpp ${neural}/cuda_math.cpp ${neural}/cudnn.cpp)
    target_link_libraries(swapmm_neural_host_tests PRIVATE swapmm_test_support swapmm_cuda_objects swapmm_cuda_codec_objects swapmm_cuda_no_kernels)
    target_compile_definitions(swapmm_neural_host_tests PRIVATE SWAPMM_TEST_ON_CUDA)
    target_include_directories(swapmm_neural_host_tests PRIVATE ${PROJECT_SOURCE_DIR}/examples)
    target_include_directories(swapmm_neural_host_tests SYSTEM PRIVATE ${includes} ${SWAPMM_CUDNN_INCLUDE})
    target_compile_options(swapmm_neural_host_tests PRIVATE -O2) # plain loops in the place of libraries
    swapmm_warnings_for(swapmm_neural_host_tests)
    foreach(name IN LISTS device_tests ITEMS libraries)
      add_test(NAME neural_host.${name} COMMAND swapmm_neural_host_tests --source-file=*/${name}_test.cpp)
      set_tests_properties(neural_host.${name} PROPERTIES LABELS neural TIMEOUT 900
        FAIL_REGULAR_EXPRESSION "test cases: +0 |skipped: ")
    endforeach()
  endif()
endif()

# The kernels' text is CUDA C++, too. Where there is no compiler for it, headers.kernel_in_cuda says so.
if(SWAPMM_NVCC)
  file(CONFIGURE OUTPUT neural_kernels.cu CONTENT "#include \"neural/kernels.h\"\n")
  add_test(NAME neural.kernels_in_cuda COMMAND ${SWAPMM_NVCC} -std=c++20 -Werror all-warnings
    -Xcompiler=-Wall,-Wextra,-Werror -I ${PROJECT_SOURCE_DIR}/include -I ${PROJECT_SOURCE_DIR}/examples
    -c ${CMAKE_CURRENT_BINARY_DIR}/neural_kernels.cu -o ${CMAKE_CURRENT_BINARY_DIR}/neural_kernels.o)
  set_tests_properties(neural.kernels_in_cuda PROPERTIES LABELS neural TIMEOUT 300)
endif()

# The programs themselves, small: they compare their own results bit for bit, and fail where those differ.
set(sequence_small --steps 30 --batch 33 --hidden 20 --budget 0.3)
set(inference_small --layers 3 --width 100 --batch 1 --budget 0.6)
if(NEURAL_ON_OPENCL IN_LIST apis)
  add_test(NAME neural.sequence_program COMMAND sequence --device opencl ${sequence_small})
  add_test(NAME neural.inference_program COMMAND inference --device opencl ${inference_small})
  if(TARGET swapmm::file)
    add_test(NAME neural.inference_from_file COMMAND inference --device opencl ${inference_small}
      --weights ${CMAKE_CURRENT_BINARY_DIR}/inference.safetensors)
    set_tests_properties(neural.inference_from_file PROPERTIES LABELS neural TIMEOUT 300
      PASS_REGULAR_EXPRESSION "from the file .* equal" FAIL_REGULAR_EXPRESSION DIFFERENT)
  endif()
  # Interrupted, the demo ends by itself and leaves no file.
  add_test(NAME neural.demo_interrupted COMMAND bash -c "folder=$(mktemp -d) && cd $folder || exit 1
timeout --preserve-status --signal INT --kill-after 200 6 $<TARGET_FILE:fashion_mnist> --device opencl; status=$?
left=$(ls -A); rm -rf $folder; echo status $status, files: $left; [[ $status == 130 && -z $left ]]")
  # Replicas of the demo on two devices, on one, and in two processes: with the bits of one device.
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(pictures ${CMAKE_CURRENT_BINARY_DIR}/few_pictures)
  add_test(NAME neural.few_pictures COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/neural/few_pictures.py ${pictures} 128 16)
  set(replicas_small $<TARGET_FILE:fashion_mnist> --device opencl --batch 32 --epochs 1)
  add_test(NAME neural.demo_two_devices COMMAND ${replicas_small} --replicas 2 --chunk 3 --budget 50% --share-links 1GB/s)
  add_test(NAME neural.demo_one_device COMMAND ${replicas_small} --replicas 2 --budget 50% --planner belady)
  set(demos neural.demo_two_devices neural.demo_one_device)
  if(TARGET swapmm::mpi AND MPIEXEC_EXECUTABLE)
    add_test(NAME neural.demo_processes COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 2 ${replicas_small} --chunk 2)
    list(APPEND demos neural.demo_processes)
  endif()
  # Values that are encoded on their way: with the bits of a run without a limit.
  set(with_codec ${CMAKE_CURRENT_BINARY_DIR}/demo_codec)
  file(MAKE_DIRECTORY ${with_codec})
  add_test(NAME neural.demo_codec COMMAND fashion_mnist --device opencl --batch 4 --epochs 1 --budget 110% --codec 25%
    --report ${with_codec}/report.json)
  set_tests_properties(neural.demo_codec PROPERTIES LABELS neural TIMEOUT 300 FIXTURES_REQUIRED few_pictures
    PASS_REGULAR_EXPRESSION "MB were encoded on their way" FAIL_REGULAR_EXPRESSION DIFFERENT)
  # Operations that run again, because a copy would take longer by far.
  set(with_replays ${CMAKE_CURRENT_BINARY_DIR}/demo_recompute)
  file(MAKE_DIRECTORY ${with_replays})
  add_test(NAME neural.demo_recompute COMMAND fashion_mnist --device opencl --batch 4 --epochs 1 --budget 75%
    --ways swap,recompute --link 1MB/s --report ${with_replays}/report.json)
  set_tests_properties(neural.demo_recompute PROPERTIES LABELS neural TIMEOUT 300 FIXTURES_REQUIRED few_pictures
    PASS_REGULAR_EXPRESSION "operations run again instead of copies" FAIL_REGULAR_EXPRESSION DIFFERENT)
  set_tests_properties(neural.few_pictures PROPERTIES LABELS neural FIXTURES_SETUP few_pictures)
  set_tests_properties(${demos} PROPERTIES LABELS neural TIMEOUT 300 PROCESSORS 2 FIXTURES_REQUIRED few_pictures
    PASS_REGULAR_EXPRESSION "adds up in the same order: identical after 4 iterations" FAIL_REGULAR_EXPRESSION DIFFERENT)
  set(environment ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1:handle_sigill=1 SWAPMM_FASHION_MNIST=${pictures} OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1)
  set_tests_properties(${demos} neural.demo_codec neural.demo_recompute PROPERTIES ENVIRONMENT "${environment}")
  set_property(TEST neural.demo_two_devices APPEND PROPERTY ENVIRONMENT "POCL_DEVICES=pthread pthread")
  set_tests_properties(neural.sequence_program neural.inference_program neural.demo_interrupted PROPERTIES
    LABELS neural TIMEOUT 300)
endif()
if(NEURAL_ON_CUDA IN_LIST apis)
  add_test(NAME neural_cuda.sequence_program COMMAND sequence --device cuda ${sequence_small})
  add_test(NAME neural_cuda.inference_program COMMAND inference --device cuda ${inference_small})
  set_tests_properties(neural_cuda.sequence_program neural_cuda.inference_program PROPERTIES
    LABELS "neural;gpu" TIMEOUT 300 SKIP_REGULAR_EXPRESSION "There is no CUDA device")
endif()
if(TARGET cuda_custom_kernel)
  add_test(NAME neural_cuda.custom_kernel COMMAND cuda_custom_kernel)
  set_tests_properties(neural_cuda.custom_kernel PROPERTIES
    LABELS "neural;gpu" TIMEOUT 300 SKIP_REGULAR_EXPRESSION "^no CUDA device: ")
endif()
