# SPDX-License-Identifier: Apache-2.0
# The package: find_package(swapmm) works on an installation and on a build folder alike.

include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/swapmm)

install(TARGETS swapmm EXPORT swapmmTargets FILE_SET HEADERS)
install(EXPORT swapmmTargets NAMESPACE swapmm:: DESTINATION ${package_folder})
export(EXPORT swapmmTargets NAMESPACE swapmm:: FILE ${CMAKE_CURRENT_BINARY_DIR}/swapmmTargets.cmake)

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
