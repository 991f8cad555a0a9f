# SPDX-License-Identifier: Apache-2.0
# The Python package, from its sources, on the libraries of this build: with Python 3, and with each other CPython that is
# found.

if(NOT TARGET swapmm_python_native)
  add_test(NAME python COMMAND ${CMAKE_COMMAND} -E echo "skipped: the libraries of the Python package are not built")
  set_tests_properties(python PROPERTIES LABELS python SKIP_REGULAR_EXPRESSION "^skipped: ")
  return()
endif()
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

set(package ${PROJECT_SOURCE_DIR}/backends/python)
set(environment PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=${CMAKE_CURRENT_BINARY_DIR}/pycache PYTHONPATH=${package}/src
  SWAPMM_TEST_TRACES=${PROJECT_SOURCE_DIR}/tests/data/traces SWAPMM_PYTHON_LIBRARY=$<TARGET_FILE_DIR:swapmm_python_native>)
if(TARGET swapmm_cli)
  list(APPEND environment SWAPMM_CLI=$<TARGET_FILE:swapmm_cli>)
endif()

# NumPy is Debian's, which /usr/bin/python3 has.
include(PythonWith.cmake)
swapmm_python_with(SWAPMM_PYTHON_WITH_NUMPY numpy)
if(NOT SWAPMM_PYTHON_WITH_NUMPY)
  set(SWAPMM_PYTHON_WITH_NUMPY ${Python3_EXECUTABLE})
endif()

set(python_tests)
function(swapmm_python_test name)
  add_test(NAME python.${name} COMMAND ${ARGN})
  set_tests_properties(python.${name} PROPERTIES LABELS python TIMEOUT 600 ENVIRONMENT "${environment}"
    FAIL_REGULAR_EXPRESSION "Ran 0 tests" SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()

file(GLOB files RELATIVE ${package}/tests CONFIGURE_DEPENDS ${package}/tests/test_*.py)
foreach(file IN LISTS files)
  string(REGEX REPLACE "^test_(.*)\\.py$" "\\1" name ${file})
  swapmm_python_test(${name} ${SWAPMM_PYTHON_WITH_NUMPY} ${package}/tests/${file})
endforeach()
# The example of the manual, which is the first piece of Python there.
swapmm_python_test(manual_page ${SWAPMM_PYTHON_WITH_NUMPY} ${package}/tests/manual.py ${PROJECT_SOURCE_DIR}/docs/python.md)

# The source distribution has all that it needs.
if(CMAKE_GENERATOR STREQUAL "Ninja")
  swapmm_python_test(sdist ${SWAPMM_PYTHON_WITH_NUMPY} ${package}/tests/sdist.py)
endif()

# Without NumPy, and with the oldest and the newest of the other versions; without what the command takes.
file(GLOB others $ENV{HOME}/.pyenv/versions/3.*/bin/python3 /usr/bin/python3.[0-9] /usr/bin/python3.[0-9][0-9] /usr/local/bin/python3.[0-9]
  /usr/local/bin/python3.[0-9][0-9])
set(versions)
foreach(other IN LISTS others)
  execute_process(COMMAND ${other} -c "import sys; print('%d.%d' % sys.version_info[:2])" OUTPUT_VARIABLE version
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0 AND version VERSION_GREATER_EQUAL 3.9 AND NOT other STREQUAL SWAPMM_PYTHON_WITH_NUMPY)
    list(APPEND versions ${version})
    set(python_${version} ${other})
  endif()
endforeach()
list(REMOVE_DUPLICATES versions)
list(SORT versions COMPARE NATURAL)
if(NOT versions)
  swapmm_python_test(other ${CMAKE_COMMAND} -E echo "skipped: no other CPython from 3.9 on was found")
else()
  list(GET versions 0 oldest)
  list(GET versions -1 newest)
  set(chosen ${oldest} ${newest})
  list(REMOVE_DUPLICATES chosen)
  foreach(version IN LISTS chosen)
    swapmm_python_test(${version} ${CMAKE_COMMAND} -E env --unset=SWAPMM_CLI ${python_${version}} -m unittest discover -s ${package}/tests)
  endforeach()
endif()

# The adapter of PyTorch, with PyTorch 2 from PyPI, which ./dev pytorch installs.
set(SWAPMM_PYTHON_WITH_TORCH_2 ${PROJECT_SOURCE_DIR}/build/pytorch/bin/python CACHE FILEPATH "A Python 3 that has PyTorch 2.4 or newer")
mark_as_advanced(SWAPMM_PYTHON_WITH_TORCH_2)
file(GLOB files RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/torch CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/torch/*_test.py)
foreach(file IN LISTS files)
  string(REGEX REPLACE "_test\\.py$" "" name ${file})
  swapmm_python_test(torch_${name} sh ${CMAKE_CURRENT_SOURCE_DIR}/torch/run.sh ${SWAPMM_PYTHON_WITH_TORCH_2} ${CMAKE_CURRENT_SOURCE_DIR}/torch/${file})
endforeach()
# They take minutes: no core waits for them at the end.
set_tests_properties(python.torch_compiled PROPERTIES COST 400)
set_tests_properties(python.torch_repeats python.torch_networks PROPERTIES COST 150)

# The stubs are the annotations of the sources.
find_program(SWAPMM_MYPY mypy)
mark_as_advanced(SWAPMM_MYPY)
if(SWAPMM_MYPY)
  swapmm_python_test(types ${SWAPMM_MYPY} --cache-dir=${CMAKE_CURRENT_BINARY_DIR}/mypy --config-file ${package}/pyproject.toml ${package}/src/swapmm)
else()
  swapmm_python_test(types ${CMAKE_COMMAND} -E echo "skipped: no mypy")
endif()

# The CUDA backend on a runtime that records calls.
if(TARGET swapmm_cuda_objects AND TARGET swapmm_cuda_calls_tests)
  set(fake ${CMAKE_CURRENT_BINARY_DIR}/python_fake_cuda)
  add_library(swapmm_python_fake_cuda MODULE
    cuda_calls/fake_runtime.cpp cuda_calls/fake_state.cpp cuda_calls/order_checker.cpp
    ${PROJECT_SOURCE_DIR}/backends/file/swapmm/c/weights.cpp ${PROJECT_SOURCE_DIR}/backends/file/swapmm/file/weights.cpp)
  target_include_directories(swapmm_python_fake_cuda PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/backends/file)
  target_link_libraries(swapmm_python_fake_cuda PRIVATE swapmm_objects swapmm_cuda_objects swapmm_cuda_codec_objects swapmm_cuda_no_kernels)
  set_target_properties(swapmm_python_fake_cuda PROPERTIES OUTPUT_NAME swapmm_python_cuda LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY ${fake} POSITION_INDEPENDENT_CODE ON)
  swapmm_warnings_for(swapmm_python_fake_cuda)
  swapmm_python_test(fake_cuda ${SWAPMM_PYTHON_WITH_NUMPY} ${package}/tests/test_devices.py Cuda)
  file(MAKE_DIRECTORY ${fake})
  file(CREATE_LINK ${PROJECT_BINARY_DIR}/backends/python/libswapmm_python.so ${fake}/libswapmm_python.so SYMBOLIC)
  set_tests_properties(python.fake_cuda PROPERTIES ENVIRONMENT
    "PYTHONDONTWRITEBYTECODE=;PYTHONPYCACHEPREFIX=${CMAKE_CURRENT_BINARY_DIR}/pycache;PYTHONPATH=${package}/src;SWAPMM_FAKE_CUDA=1;SWAPMM_PYTHON_LIBRARY=${fake}" FAIL_REGULAR_EXPRESSION "skipped=")
endif()
