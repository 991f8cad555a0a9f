# SPDX-License-Identifier: Apache-2.0
# The CUDA backend. cuda_calls needs no GPU: the test program defines the runtime's functions itself, and looks at what
# the backend asks of them. cuda needs one, and says so where there is none.

if(NOT TARGET swapmm::cuda)
  add_test(NAME cuda COMMAND ${CMAKE_COMMAND} -E echo
    "skipped: the CUDA backend is not built; it needs the CUDA toolkit (NVIDIA's, or Debian's nvidia-cuda-toolkit)")
  set_tests_properties(cuda PROPERTIES LABELS cuda SKIP_REGULAR_EXPRESSION "^skipped: ")
  return()
endif()

swapmm_keep_apart(cuda_calls faults manager)
set_source_files_properties(cuda_calls/fake_runtime.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
swapmm_add_tests(cuda_calls)
target_link_libraries(swapmm_cuda_calls_tests PRIVATE swapmm_cuda_objects swapmm_cuda_codec_objects swapmm_cuda_no_kernels)

# Each header compiles alone.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  get_target_property(headers swapmm_cuda HEADER_SET)
  foreach(header IN LISTS headers)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/backends/cuda OUTPUT_VARIABLE included)
    string(REPLACE "/" "_" name ${included})
    set(file ${CMAKE_CURRENT_BINARY_DIR}/cuda_alone/${name}.cpp)
    set(line "#include <${included}>\n")
    file(CONFIGURE OUTPUT ${file} CONTENT "${line}${line}")
    list(APPEND alone ${file})
  endforeach()
  add_library(swapmm_cuda_headers_alone OBJECT ${alone})
  set_target_properties(swapmm_cuda_headers_alone PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(swapmm_cuda_headers_alone PRIVATE swapmm::cuda)
  swapmm_warnings_for(swapmm_cuda_headers_alone)
endif()

# Under a sanitizer they would be compiled and not run: what it can find on a GPU, compute-sanitizer finds.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  return()
endif()
# The codec's kernels as functions of the host, launched as on a GPU. They change stacks, which sanitizers do not follow.
add_executable(swapmm_cuda_codec_host_tests cuda/zero_codec_test.cpp cuda_codec/host_runtime.cpp
  cuda_codec/launches_test.cpp
  ${PROJECT_SOURCE_DIR}/backends/cuda/swapmm/cuda/status.cpp)
target_include_directories(swapmm_cuda_codec_host_tests PRIVATE ${PROJECT_SOURCE_DIR}/backends)
target_link_libraries(swapmm_cuda_codec_host_tests PRIVATE swapmm_test_support swapmm_cuda_codec_objects)
target_compile_options(swapmm_cuda_codec_host_tests PRIVATE -O1)
swapmm_warnings_for(swapmm_cuda_codec_host_tests)
add_test(NAME cuda_codec.on_host COMMAND swapmm_cuda_codec_host_tests)
set_tests_properties(cuda_codec.on_host PROPERTIES LABELS cuda TIMEOUT 300
  FAIL_REGULAR_EXPRESSION "test cases: +0 |skipped: ")

if(NOT SWAPMM_NVCC)
  add_test(NAME cuda COMMAND ${CMAKE_COMMAND} -E echo "skipped: no nvcc for the kernels of the tests on a CUDA device")
  set_tests_properties(cuda PROPERTIES LABELS cuda SKIP_REGULAR_EXPRESSION "^skipped: ")
  return()
endif()
swapmm_add_tests(cuda)
target_link_libraries(swapmm_cuda_tests PRIVATE swapmm::cuda)
swapmm_cuda_kernels(swapmm_cuda_tests cuda/kernels.cu)
get_property(all DIRECTORY PROPERTY TESTS)
list(FILTER all INCLUDE REGEX "^cuda\\.")
set_tests_properties(${all} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: " FAIL_REGULAR_EXPRESSION "test cases: +0 ")
