# SPDX-License-Identifier: Apache-2.0
# What runs on a device of OpenCL: PoCL on any CPU, or what SWAPMM_DEVICE names.

swapmm_add_tests(opencl)
target_link_libraries(swapmm_opencl_tests PRIVATE swapmm::opencl ${CMAKE_DL_LIBS})
# Libraries that the program uses call the API through it, too.
set_target_properties(swapmm_opencl_tests PROPERTIES ENABLE_EXPORTS ON)
# The example larger_than_memory is also a test.
set(examples ${PROJECT_SOURCE_DIR}/examples)
target_sources(swapmm_opencl_tests PRIVATE
  ${examples}/larger_than_memory/raw_opencl.cpp
  ${examples}/larger_than_memory/wave.cpp
  ${examples}/larger_than_memory/with_swapmm.cpp)
target_include_directories(swapmm_opencl_tests PRIVATE ${examples})
swapmm_keep_apart(opencl bindings budget kernel_header)
set_source_files_properties(${examples}/larger_than_memory/raw_opencl.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# What the driver does where drivers differ. It has one answer on every device here: that everything was asked.
add_executable(swapmm_opencl_driver ${PROJECT_SOURCE_DIR}/tests/opencl_driver/main.cpp)
target_link_libraries(swapmm_opencl_driver PRIVATE OpenCL::OpenCL)
target_compile_features(swapmm_opencl_driver PRIVATE cxx_std_20)
swapmm_warnings_for(swapmm_opencl_driver)
add_test(NAME opencl.driver COMMAND swapmm_opencl_driver)
set_tests_properties(opencl.driver PROPERTIES LABELS opencl TIMEOUT 300 PASS_REGULAR_EXPRESSION "[0-9]+ questions asked"
  FAIL_REGULAR_EXPRESSION "ENDED by signal;STALE;MADE")

# LeakSanitizer reports what drivers keep until the process ends. Our own objects are counted instead: see api_calls.hpp.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  get_property(all DIRECTORY PROPERTY TESTS)
  list(FILTER all INCLUDE REGEX "^opencl\\.")
  set_tests_properties(${all} PROPERTIES ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1:handle_sigill=1")
  return()
endif()

# The examples check their own results.
if(TARGET host_view)
  add_test(NAME opencl.host_view_example COMMAND host_view)
  set_tests_properties(opencl.host_view_example PROPERTIES LABELS opencl TIMEOUT 300)
endif()
if(TARGET custom_kernel)
  add_test(NAME opencl.custom_kernel COMMAND custom_kernel)
  add_test(NAME opencl.larger_than_memory COMMAND larger_than_memory --shots 4 --size 40)
  set_tests_properties(opencl.custom_kernel opencl.larger_than_memory PROPERTIES LABELS opencl TIMEOUT 300)
endif()

# Another language decodes what the codec encoded, from its documentation.
include(PythonWith.cmake)
swapmm_python_with(SWAPMM_PYTHON_WITH_NUMPY numpy)
if(SWAPMM_PYTHON_WITH_NUMPY)
  add_test(NAME opencl.zero_codec_files COMMAND bash -c "folder=$(mktemp -d) || exit 1
SWAPMM_ZERO_CODEC_FOLDER=$folder $<TARGET_FILE:swapmm_opencl_tests> --no-skip '--test-case=files: encoded*' &&
${SWAPMM_PYTHON_WITH_NUMPY} ${CMAKE_CURRENT_SOURCE_DIR}/opencl/zero_codec.py $folder
status=$?; rm -rf $folder; exit $status")
else()
  add_test(NAME opencl.zero_codec_files COMMAND ${CMAKE_COMMAND} -E echo "skipped: no Python 3 with NumPy")
endif()
set_tests_properties(opencl.zero_codec_files PROPERTIES LABELS opencl TIMEOUT 300 SKIP_REGULAR_EXPRESSION "^skipped: ")
# Two devices in one context: one is the other's neighbour. Other tests of neighbours have one device that is its own.
add_test(NAME opencl.two_devices COMMAND swapmm_opencl_tests --source-file=*/opencl/conformance_test.cpp,*/opencl/joint_plans_test.cpp,*/opencl/neighbour_test.cpp
  "--test-case=neighbours:*,*neighbour*,joint plans:*")
set_tests_properties(opencl.two_devices PROPERTIES FAIL_REGULAR_EXPRESSION "test cases: +0 "
  ENVIRONMENT "POCL_DEVICES=pthread pthread;SWAPMM_DEVICE=0" LABELS opencl TIMEOUT 300)

# The same conformance on a device that watches each access of a kernel: out of bounds, or racing. Oclgrind
# exits with success whatever it saw, so its report is read. Reads of what nobody wrote it tells of too, but it does not
# see what is written to sub-buffers, so this is asked of a program that has whole buffers.
find_file(SWAPMM_OCLGRIND_DRIVER liboclgrind-rt-icd.so PATHS /usr/lib/oclgrind /usr/local/lib/oclgrind)
if(SWAPMM_OCLGRIND_DRIVER)
  set(vendors ${CMAKE_CURRENT_BINARY_DIR}/oclgrind)
  file(WRITE ${vendors}/oclgrind.icd ${SWAPMM_OCLGRIND_DRIVER})
  set(on_oclgrind "OCL_ICD_VENDORS=${vendors};OCLGRIND_DATA_RACES=1;OCLGRIND_CHECK_API=1;OCLGRIND_GLOBAL_MEM_SIZE=33554432")
  set(report "Invalid (read|write)|[Dd]ata race")
  add_test(NAME opencl.on_oclgrind COMMAND swapmm_opencl_tests --source-file=*/opencl/conformance_test.cpp)
  set_tests_properties(opencl.on_oclgrind PROPERTIES
    FAIL_REGULAR_EXPRESSION "test cases: +0 ;${report}" ENVIRONMENT "${on_oclgrind}" LABELS opencl TIMEOUT 900)
  add_test(NAME opencl.zero_codec_on_oclgrind COMMAND swapmm_opencl_tests --source-file=*/opencl/zero_codec_test.cpp
    "--test-case=elements of every size*,of a damaged*,noise*,an encoded value*")
  set_tests_properties(opencl.zero_codec_on_oclgrind PROPERTIES
    FAIL_REGULAR_EXPRESSION "test cases: +0 ;${report}" ENVIRONMENT "${on_oclgrind}" LABELS opencl TIMEOUT 900)
  set(uninitialized "${on_oclgrind};OCLGRIND_UNINITIALIZED=1")
  add_test(NAME opencl.uninitialized COMMAND swapmm_opencl_tests --no-skip "--test-case=uninitialized:*")
  set_tests_properties(opencl.uninitialized PROPERTIES
    FAIL_REGULAR_EXPRESSION "test cases: +0 ;${report};Uninitialized" ENVIRONMENT "${uninitialized}" LABELS opencl
    TIMEOUT 300)
  # And what it is there to see, it sees.
  add_test(NAME opencl.oclgrind_sees COMMAND swapmm_opencl_tests --no-skip "--test-case=planted: a kernel writes*")
  set_tests_properties(opencl.oclgrind_sees PROPERTIES
    PASS_REGULAR_EXPRESSION "Invalid write" ENVIRONMENT "${on_oclgrind}" LABELS opencl TIMEOUT 300)
  add_test(NAME opencl.oclgrind_sees_uninitialized COMMAND swapmm_opencl_tests --no-skip
    "--test-case=planted: a kernel passes on*")
  set_tests_properties(opencl.oclgrind_sees_uninitialized PROPERTIES
    PASS_REGULAR_EXPRESSION "Uninitialized value" ENVIRONMENT "${uninitialized}" LABELS opencl TIMEOUT 300)
else()
  add_test(NAME opencl.on_oclgrind COMMAND ${CMAKE_COMMAND} -E echo "skipped: oclgrind is not installed")
  set_tests_properties(opencl.on_oclgrind PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: " LABELS opencl)
endif()
