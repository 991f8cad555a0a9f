# SPDX-License-Identifier: Apache-2.0
# How each library of the project is built: its sources once, with every name hidden that does not carry SWAPMM_EXPORT
# or SWAPMM_TEMPLATE_EXPORT. See docs/decisions/0015-public-boundary.md.

# What the sources of each library and of the tests need to include the core's headers. Not exported.
add_library(swapmm_headers INTERFACE)
target_include_directories(swapmm_headers INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_compile_features(swapmm_headers INTERFACE cxx_std_20)

# swapmm_add_objects(TARGET SOURCE...): an object library, compiled as a part of a library of the project.
function(swapmm_add_objects target)
  add_library(${target} OBJECT ${ARGN})
  target_link_libraries(${target} PUBLIC swapmm_headers)
  target_compile_definitions(${target} PRIVATE SWAPMM_BUILDING_LIBRARY)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    UNITY_BUILD ${SWAPMM_UNITY_BUILD}
    UNITY_BUILD_BATCH_SIZE 64)
  # The templates of a manager take as long as all else: on another core.
  set(instances ${ARGN})
  list(FILTER instances INCLUDE REGEX "instances\\.cpp$")
  set_source_files_properties(${instances} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  swapmm_warnings_for(${target})
  if(PROJECT_IS_TOP_LEVEL) # swapmm_warnings_for() leaves it out of unity builds, where the tests' names shadow each other
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wshadow>)
  endif()
endfunction()

# swapmm_add_library(TARGET EXPORT_NAME SOURCES... HEADERS... BASE FOLDER): makes
#   TARGET            the library, static or shared as BUILD_SHARED_LIBS says; an alias swapmm::EXPORT_NAME;
#   TARGET_objects    its objects;
#   TARGET_internals  a static library of the same objects, whose hidden names tests, and the command, can use; not
#                     exported. Of a static library it is the library itself.
# Dependencies: swapmm_library_needs().
function(swapmm_add_library target export_name)
  cmake_parse_arguments(library "" "BASE" "SOURCES;HEADERS" ${ARGN})
  swapmm_add_objects(${target}_objects ${library_SOURCES})

  add_library(${target} $<TARGET_OBJECTS:${target}_objects>)
  add_library(swapmm::${export_name} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${library_BASE} FILES ${library_HEADERS})
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${export_name}
    LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}) # while major is 0, minor versions break

  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    target_compile_definitions(${target}_objects PRIVATE SWAPMM_SHARED)
    target_compile_definitions(${target} INTERFACE SWAPMM_SHARED)
    add_library(${target}_internals STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${target}_objects>)
    set_target_properties(${target}_internals PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(${target}_internals PUBLIC swapmm_headers)
    target_include_directories(${target}_internals PUBLIC ${library_BASE})
  else()
    add_library(${target}_internals ALIAS ${target})
  endif()
endfunction()

# swapmm_library_needs(TARGET [PUBLIC TARGET...] [PRIVATE TARGET...]): other projects' targets. Those of swapmm:
# swapmm_library_builds_on().
function(swapmm_library_needs target)
  target_link_libraries(${target}_objects ${ARGN})
  target_link_libraries(${target} ${ARGN})
  get_target_property(aliased ${target}_internals ALIASED_TARGET)
  if(NOT aliased)
    target_link_libraries(${target}_internals ${ARGN})
  endif()
endfunction()

# The core, by its exported names alone.
function(swapmm_library_builds_on_core target)
  target_link_libraries(${target} PUBLIC swapmm::swapmm)
  get_target_property(aliased ${target}_internals ALIASED_TARGET)
  if(NOT aliased)
    target_link_libraries(${target}_internals PUBLIC swapmm_internals)
  endif()
endfunction()
