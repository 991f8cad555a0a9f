# SPDX-License-Identifier: Apache-2.0
# The recorder of PyTorch programs, and the programs that benchmarks are compared with: Python, with PyTorch.

include(PythonWith.cmake)
swapmm_python_with(SWAPMM_PYTHON_WITH_TORCH torch)
if(NOT SWAPMM_PYTHON_WITH_TORCH)
  add_test(NAME pytorch COMMAND ${CMAKE_COMMAND} -E echo "skipped: no Python 3 with PyTorch (Debian: python3-torch)")
  set_tests_properties(pytorch PROPERTIES LABELS pytorch SKIP_REGULAR_EXPRESSION "^skipped: ")
  return()
endif()

set(environment PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=${CMAKE_CURRENT_BINARY_DIR}/pycache OMP_NUM_THREADS=1)
function(swapmm_pytorch_test name)
  add_test(NAME pytorch.${name} COMMAND ${ARGN})
  # What finds no test to run passes: it must not.
  set_tests_properties(pytorch.${name} PROPERTIES LABELS pytorch TIMEOUT 300 ENVIRONMENT "${environment}"
    FAIL_REGULAR_EXPRESSION "Ran 0 tests" SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()

foreach(name IN ITEMS contenders plot)
  swapmm_pytorch_test(${name} ${SWAPMM_PYTHON_WITH_TORCH} ${CMAKE_CURRENT_SOURCE_DIR}/pytorch/${name}_test.py)
endforeach()

# The recorder is a part of the Python package: from its sources, on the library of this build.
if(NOT TARGET swapmm_python_native)
  swapmm_pytorch_test(recorder ${CMAKE_COMMAND} -E echo "skipped: the libraries of the Python package are not built")
  return()
endif()
list(APPEND environment PYTHONPATH=${PROJECT_SOURCE_DIR}/backends/python/src
  SWAPMM_PYTHON_LIBRARY=$<TARGET_FILE_DIR:swapmm_python_native>)
set(SWAPMM_PYTHON_WITH_TORCH_2 ${PROJECT_SOURCE_DIR}/build/pytorch/bin/python CACHE FILEPATH "A Python 3 that has PyTorch 2.4 or newer")
foreach(name IN ITEMS record models)
  set(file ${CMAKE_CURRENT_SOURCE_DIR}/pytorch/${name}_test.py)
  swapmm_pytorch_test(${name} ${SWAPMM_PYTHON_WITH_TORCH} ${file})
  # Debian's PyTorch is 1.13: with PyTorch 2, too, in ./dev pytorch.
  swapmm_pytorch_test(${name}_2 sh ${CMAKE_CURRENT_SOURCE_DIR}/torch/run.sh --everything ${SWAPMM_PYTHON_WITH_TORCH_2} ${file})
endforeach()
