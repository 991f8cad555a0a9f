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

swapmm_add_library(swapmm_ilp ilp BASE include SOURCES ${SWAPMM_ILP_SOURCES} HEADERS ${SWAPMM_ILP_PUBLIC_HEADERS})
swapmm_library_builds_on_core(swapmm_ilp)
swapmm_library_needs(swapmm_ilp PRIVATE PkgConfig::SWAPMM_CBC)
# It uses planners' internals, pure functions that a shared core hides. Then it has a copy of its own, hidden as well.
# The core comes first on the linker's command line, so that only what is hidden there is taken from the copy.
get_target_property(type swapmm_ilp TYPE)
if(type STREQUAL "SHARED_LIBRARY")
  target_link_libraries(swapmm_ilp PRIVATE swapmm_internals)
  if(NOT APPLE AND NOT WIN32)
    target_link_options(swapmm_ilp PRIVATE -Wl,--exclude-libs,ALL)
  endif()
endif()
swapmm_install_component(ilp swapmm_ilp)
swapmm_installed_headers(PUBLIC ${SWAPMM_ILP_PUBLIC_HEADERS})
