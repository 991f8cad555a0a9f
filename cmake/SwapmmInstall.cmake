# SPDX-License-Identifier: Apache-2.0
# The package: find_package(swapmm) works on an installation and on a build folder alike. Each component is a target
# with an export of its own, so that a consumer's find_package looks for the dependencies of what it asked for alone.

include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/swapmm)

# Which headers of a component are for programs, and which are there because templates need them; paths from the root.
function(swapmm_installed_headers)
  cmake_parse_arguments(arg "" "FOLDER" "PUBLIC;TEMPLATE" ${ARGN})
  foreach(kind IN ITEMS PUBLIC TEMPLATE)
    if(arg_FOLDER)
      list(TRANSFORM arg_${kind} PREPEND "${arg_FOLDER}/")
    endif()
    set_property(GLOBAL APPEND PROPERTY SWAPMM_ALL_${kind}_HEADERS ${arg_${kind}})
  endforeach()
endfunction()

macro(swapmm_install_component name target)
  set(export swapmm-${name}-targets)
  install(TARGETS ${target} EXPORT ${export} FILE_SET HEADERS)
  install(EXPORT ${export} NAMESPACE swapmm:: DESTINATION ${package_folder})
  export(EXPORT ${export} NAMESPACE swapmm:: FILE ${swapmm_BINARY_DIR}/${export}.cmake)
  set_property(GLOBAL APPEND PROPERTY SWAPMM_COMPONENTS ${name})
endmacro()

# Once all components are known.
function(swapmm_install_package)
  get_property(components GLOBAL PROPERTY SWAPMM_COMPONENTS)
  # A static library leaves the linking of its dependencies to whoever links it; a shared one has done it.
  get_target_property(library_type swapmm TYPE)
  if(library_type STREQUAL "STATIC_LIBRARY")
    set(SWAPMM_CONSUMERS_LINK_DEPENDENCIES TRUE)
  else()
    set(SWAPMM_CONSUMERS_LINK_DEPENDENCIES FALSE)
  endif()
  configure_package_config_file(cmake/swapmmConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/swapmmConfig.cmake
    INSTALL_DESTINATION ${package_folder} NO_SET_AND_CHECK_MACRO)
  # While the major version is 0, each minor version may break what the one before promised.
  write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/swapmmConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES
    ${CMAKE_CURRENT_BINARY_DIR}/swapmmConfig.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/swapmmConfigVersion.cmake
    DESTINATION ${package_folder})
  install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endfunction()
