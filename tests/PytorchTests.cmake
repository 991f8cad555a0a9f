# SPDX-License-Identifier: Apache-2.0
# The recorder of PyTorch programs, and the programs that benchmarks are compared with: Python, with PyTorch.

if(NOT SWAPMM_PYTHON_WITH_TORCH)
  foreach(candidate IN ITEMS ${Python3_EXECUTABLE} /usr/bin/python3 python3)
    execute_process(COMMAND ${candidate} -c "import torch" RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status EQUAL 0)
      # Remembered: importing it takes seconds.
      set(SWAPMM_PYTHON_WITH_TORCH ${candidate} CACHE STRING "A Python 3 that has PyTorch")
      mark_as_advanced(SWAPMM_PYTHON_WITH_TORCH)
      break()
    endif()
  endforeach()
endif()
if(NOT SWAPMM_PYTHON_WITH_TORCH)
  add_test(NAME pytorch COMMAND ${CMAKE_COMMAND} -E echo "skipped: no Python 3 with PyTorch (Debian: python3-torch)")
  set_tests_properties(pytorch PROPERTIES LABELS pytorch SKIP_REGULAR_EXPRESSION "^skipped: ")
  return()
endif()

add_executable(swapmm_read_trace_file pytorch/read_trace_file.cpp)
target_link_libraries(swapmm_read_trace_file PRIVATE swapmm::swapmm)
swapmm_warnings_for(swapmm_read_trace_file)

set(environment PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
  SWAPMM_READ_TRACE_FILE=$<TARGET_FILE:swapmm_read_trace_file>)
foreach(name IN ITEMS record models contenders plot)
  add_test(NAME pytorch.${name} COMMAND ${SWAPMM_PYTHON_WITH_TORCH} ${CMAKE_CURRENT_SOURCE_DIR}/pytorch/${name}_test.py)
  set_tests_properties(pytorch.${name} PROPERTIES LABELS pytorch TIMEOUT 300 ENVIRONMENT "${environment}")
  # What finds no test to run passes: it must not.
  set_tests_properties(pytorch.${name} PROPERTIES FAIL_REGULAR_EXPRESSION "Ran 0 tests")
endforeach()
