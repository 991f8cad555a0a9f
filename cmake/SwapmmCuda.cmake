# SPDX-License-Identifier: Apache-2.0
# Kernels for the codec of the CUDA backend, for examples, tests and benchmarks. nvcc is called as it is: the project and its consumers need no CUDA in
# their CMake (whose 3.25 drops C++20 for it without a word).

find_program(SWAPMM_NVCC nvcc
  HINTS ${CUDAToolkit_BIN_DIR} ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
mark_as_advanced(SWAPMM_NVCC)

if(SWAPMM_NVCC AND NOT DEFINED SWAPMM_NVCC_VERSION)
  execute_process(COMMAND ${SWAPMM_NVCC} --version OUTPUT_VARIABLE nvcc_says)
  string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" unused "${nvcc_says}")
  set(SWAPMM_NVCC_VERSION ${CMAKE_MATCH_1} CACHE INTERNAL "of nvcc")
endif()

# Code for recent GPUs, and an intermediate form that the driver compiles for all others from the oldest one that this
# nvcc knows.
set(SWAPMM_CUDA_CODE "" CACHE STRING "nvcc's -gencode options for kernels; empty: Hopper, and PTX for all others")
set(cuda_code ${SWAPMM_CUDA_CODE})
if(NOT cuda_code AND SWAPMM_NVCC)
  set(oldest 60)
  if(SWAPMM_NVCC_VERSION VERSION_GREATER_EQUAL 13.0)
    set(oldest 75)
  endif()
  set(cuda_code -gencode arch=compute_${oldest},code=compute_${oldest})
  if(SWAPMM_NVCC_VERSION VERSION_GREATER_EQUAL 11.8)
    list(APPEND cuda_code -gencode arch=compute_90,code=sm_90)
  endif()
endif()

# clang++ warns of functions in CUDA's own headers.
set(swapmm_nvcc_quiet)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(swapmm_nvcc_quiet -Xcompiler=-Wno-unused-function)
endif()

# swapmm_cuda_kernels(TARGET SOURCE.cu...): compiled by nvcc, and linked into the target. Sources may include what lies in
# include/, backends/, examples/ and tests/. Their names are hidden, as those of the library are. Without line tables compute-sanitizer names no lines: they are there.
function(swapmm_cuda_kernels target)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source NORMALIZE OUTPUT_VARIABLE path)
    cmake_path(GET source STEM name)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}_${name}.cu.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${path} DEPFILE ${object}.d VERBATIM
      COMMENT "Compiling kernels of ${target}: ${source}"
      COMMAND ${SWAPMM_CCACHE} ${SWAPMM_NVCC} -std=c++17 -O3 -lineinfo ${cuda_code} -Werror all-warnings
        -Xcompiler=-Wall,-Wextra,-fPIC,-fvisibility=hidden ${swapmm_nvcc_quiet} -ccbin ${CMAKE_CXX_COMPILER} -MD -MF ${object}.d
        -I ${PROJECT_SOURCE_DIR}/include -I ${PROJECT_SOURCE_DIR}/backends -I ${PROJECT_SOURCE_DIR}/backends/cuda
        -I ${PROJECT_SOURCE_DIR}/examples -I ${PROJECT_SOURCE_DIR}/tests
        -c ${path} -o ${object})
    target_sources(${target} PRIVATE ${object})
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  endforeach()
endfunction()
