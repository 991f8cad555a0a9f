# SPDX-License-Identifier: Apache-2.0
# The component `ilp`: the planner that COIN-OR Cbc solves. The core does not need it.

set(SWAPMM_BUILD_ILP AUTO CACHE STRING "Build the planner ilp, which needs COIN-OR Cbc: AUTO, ON or OFF")
set_property(CACHE SWAPMM_BUILD_ILP PROPERTY STRINGS AUTO ON OFF)

if(SWAPMM_BUILD_ILP STREQUAL "OFF")
  return()
endif()
if(SWAPMM_BUILD_ILP STREQUAL "AUTO")
  find_package(PkgConfig QUIET)
else()
  find_package(PkgConfig REQUIRED)
  set(cbc_required REQUIRED)
endif()
if(PkgConfig_FOUND)
  pkg_check_modules(SWAPMM_CBC QUIET ${cbc_required} IMPORTED_TARGET GLOBAL cbc)
endif()
if(NOT SWAPMM_CBC_FOUND)
  message(STATUS "swapmm: no COIN-OR Cbc (Debian: coinor-libcbc-dev pkg-config): the planner ilp is not built")
  return()
endif()

add_library(swapmm_ilp ${SWAPMM_ILP_SOURCES})
add_library(swapmm::ilp ALIAS swapmm_ilp)
target_sources(swapmm_ilp PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${SWAPMM_ILP_HEADERS})
set_target_properties(swapmm_ilp PROPERTIES
  EXPORT_NAME ilp
  CXX_EXTENSIONS OFF
  POSITION_INDEPENDENT_CODE ON
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_link_libraries(swapmm_ilp PUBLIC swapmm::swapmm PRIVATE PkgConfig::SWAPMM_CBC)
swapmm_warnings_for(swapmm_ilp)
swapmm_install_component(ilp swapmm_ilp)
