# SPDX-License-Identifier: Apache-2.0
# Runs one package test; tests/package/CMakeLists.txt defines the variables.

cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${folder})

if(case STREQUAL "subdirectory")
  set(compiler ${other_compiler})
endif()
# Without a build type, and so without optimization and debug information: what compiles fastest.
set(configure ${CMAKE_COMMAND} -G ${generator}
  -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher}
  -D CMAKE_CXX_FLAGS=${flags} -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)

# All programs of that consumer must build and run.
function(expect_consumer_works consumer programs)
  set(build ${folder}/build)
  execute_process(COMMAND ${configure} ${ARGN} -S ${CMAKE_CURRENT_LIST_DIR}/${consumer} -B ${build}
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${build} COMMAND_ERROR_IS_FATAL ANY)
  foreach(program IN LISTS programs)
    execute_process(COMMAND ${build}/${program} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endfunction()

# find_package must fail in that build folder, and its message must hold each of the texts.
function(expect_refused swapmm arguments)
  execute_process(COMMAND ${configure} -D swapmm_DIR=${swapmm} "-Dfind_arguments=${arguments}"
    -S ${CMAKE_CURRENT_LIST_DIR}/refused -B ${folder}/refused
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(result EQUAL 0)
    message(FATAL_ERROR "find_package(swapmm ${arguments}) was not refused:\n${output}")
  endif()
  foreach(text IN LISTS ARGN)
    string(FIND "${output}" "${text}" position)
    if(position EQUAL -1)
      message(FATAL_ERROR "find_package(swapmm ${arguments}) does not say '${text}':\n${output}")
    endif()
  endforeach()
endfunction()

set(programs first second)
set(consumer consumer)
set(components)
foreach(component IN ITEMS opencl cuda ilp file mpi)
  if(has_${component})
    list(APPEND components ${component})
  endif()
endforeach()
# Compiling all of them once more takes minutes.
set(optional -D SWAPMM_BUILD_ILP=AUTO)
if(NOT long_tests AND case MATCHES "^(subdirectory|shared_install)$")
  set(components)
  set(optional -D SWAPMM_OPENCL=OFF -D SWAPMM_CUDA=OFF -D SWAPMM_BUILD_ILP=OFF -D SWAPMM_FILE=OFF -D SWAPMM_MPI=OFF)
  message(STATUS "the core alone; its components too with SWAPMM_LONG_TESTS=ON (./dev test --all)")
endif()
set(backends ${components})
list(REMOVE_ITEM backends ilp file mpi)
list(JOIN components "," components) # a list would become several arguments
set(choice)
if(case MATCHES "^(opencl|cuda)_")
  set(choice -D backend=${CMAKE_MATCH_1})
  set(programs ${CMAKE_MATCH_1}_consumer)
  set(consumer backend_consumer)
endif()

if(case STREQUAL "c_build_tree")
  # The libraries are static and C++, so the project has both languages. Its own program is C.
  expect_consumer_works(c_consumer c_program -D languages=C,CXX -D swapmm_DIR=${swapmm_build})
elseif(case MATCHES "build_tree$")
  expect_consumer_works(${consumer} "${programs}" ${choice} -D way=package -D swapmm_DIR=${swapmm_build})
elseif(case MATCHES "install_tree$")
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${swapmm_build} --prefix ${folder}/installed
    COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
  # The installation must not lean on where it was first put.
  file(RENAME ${folder}/installed ${folder}/moved)
  if(has_command)
    execute_process(COMMAND ${folder}/moved/bin/swapmm --version OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
    if(NOT output STREQUAL "swapmm ${swapmm_version}\n")
      message(FATAL_ERROR "bin/swapmm --version says '${output}', not 'swapmm ${swapmm_version}'")
    endif()
  endif()
  expect_consumer_works(${consumer} "${programs}" ${choice} -D way=package -D CMAKE_PREFIX_PATH=${folder}/moved)
elseif(case STREQUAL "subdirectory")
  # Shared libraries, as a part of another project, compiled by the other compiler.
  foreach(backend IN LISTS backends)
    list(APPEND programs ${backend}_consumer)
  endforeach()
  list(JOIN backends "," backends)
  expect_consumer_works(consumer "${programs}" -D way=subdirectory -D backends=${backends} ${optional}
    -D BUILD_SHARED_LIBS=ON -D SWAPMM_UNITY_BUILD=ON
    -D swapmm_source=${swapmm_source} -D swapmm_DIR=${swapmm_build})
elseif(case STREQUAL "shared_install")
  # The shared libraries of that project, installed: exceptions are caught by type across their boundary, and each
  # component links.
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${folder}/../subdirectory/build --prefix ${folder}/installed
    COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
  file(GLOB_RECURSE archives ${folder}/installed/*.a)
  if(archives)
    message(FATAL_ERROR "a shared build installs static libraries: ${archives}")
  endif()
  expect_consumer_works(boundary_consumer boundary -D components=${components} -D CMAKE_PREFIX_PATH=${folder}/installed)
  # A project in C alone.
  file(REMOVE_RECURSE ${folder}/build)
  expect_consumer_works(c_consumer c_program -D languages=C -D CMAKE_PREFIX_PATH=${folder}/installed)
elseif(case STREQUAL "static_install")
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${swapmm_build} --prefix ${folder}/installed
    COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
  separate_arguments(flags)
  set(alone)
  if(long_tests)
    set(alone ${compiler} ${flags} ${api_include})
  endif()
  execute_process(COMMAND ${python} ${swapmm_source}/tests/structure/installed.py ${folder}/installed/include
    ${swapmm_build}/tests/structure/installed_headers.txt ${alone} COMMAND_ERROR_IS_FATAL ANY)
  expect_consumer_works(boundary_consumer boundary -D components=${components} -D CMAKE_PREFIX_PATH=${folder}/installed)
elseif(case STREQUAL "refusals")
  expect_refused(${swapmm_build} "REQUIRED COMPONENTS core teleport"
    "swapmm ${swapmm_version} has no component 'teleport'" "It has: core")
  expect_refused(${swapmm_build} "99 REQUIRED" "requested version \"99\""
    "swapmmConfig.cmake, version: ${swapmm_version}")
  # One that could be built, and was not.
  execute_process(COMMAND ${configure} -D SWAPMM_OPENCL=OFF -D SWAPMM_CUDA=OFF -D SWAPMM_BUILD_ILP=OFF -D SWAPMM_FILE=OFF -D SWAPMM_MPI=OFF -D SWAPMM_BUILD_TESTS=OFF
    -D SWAPMM_BUILD_EXAMPLES=OFF -D SWAPMM_BUILD_BENCH=OFF -S ${swapmm_source} -B ${folder}/core_alone COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
  expect_refused(${folder}/core_alone "REQUIRED COMPONENTS opencl"
    "swapmm ${swapmm_version} has no component 'opencl'" "It has: core.")
  expect_refused(${folder}/core_alone "REQUIRED COMPONENTS cuda"
    "swapmm ${swapmm_version} has no component 'cuda'" "It has: core.")
  expect_refused(${folder}/core_alone "REQUIRED COMPONENTS ilp"
    "swapmm ${swapmm_version} has no component 'ilp'" "It has: core.")
  expect_refused(${folder}/core_alone "REQUIRED COMPONENTS mpi"
    "swapmm ${swapmm_version} has no component 'mpi'" "It has: core.")
else()
  message(FATAL_ERROR "no package test is called '${case}'")
endif()
