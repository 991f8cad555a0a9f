# SPDX-License-Identifier: Apache-2.0
# Options, warnings, and the faster tools where they are present.

option(SWAPMM_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(SWAPMM_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(SWAPMM_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(SWAPMM_UNITY_BUILD "Compile each library in a few large pieces: less work where all of it is compiled" OFF)
option(SWAPMM_UNITY_TESTS "The same for the tests, and for the command" OFF)
option(SWAPMM_QUICK_BUILD "Compile all but the core, and what runs long, without optimization" OFF)
set(SWAPMM_SOLVER_OPTIONS "" CACHE STRING "Further options to compile the solver of the relaxed problem with, where planners spend much of their time")
set(SWAPMM_PROGRAMS_COMPILER "" CACHE STRING "Compile tests and examples with this compiler, whose objects go with those of CMAKE_CXX_COMPILER")
option(SWAPMM_LONG_TESTS "Also run tests that take minutes" OFF)
option(SWAPMM_WERROR "Treat warnings as errors" OFF)

# g++ 12 guesses wrongly about moved std::optionals: maybe-uninitialized is shown, and stops nothing. Its -Wrestrict
# sees overlaps in std::string that cannot be (GCC bug 105329).
add_library(swapmm_warnings INTERFACE)
target_compile_options(swapmm_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wdeprecated-copy-dtor
  $<$<BOOL:${SWAPMM_PROGRAMS_COMPILER}>:-Wno-sign-conversion> # which -Wconversion of clang++ has and that of g++ does not
  $<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow> # nor are names of the next file shadowed
  $<$<BOOL:${SWAPMM_WERROR}>:-Werror>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)

# Warnings are for our own compilation alone. Linking swapmm_warnings would make it part of the exported target, so
# its options are copied instead.
function(swapmm_warnings_for target)
  target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:swapmm_warnings,INTERFACE_COMPILE_OPTIONS>)
endfunction()

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_EXTENSIONS OFF)
  find_program(SWAPMM_CCACHE ccache)
  if(SWAPMM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${SWAPMM_CCACHE})
  endif()
  find_program(SWAPMM_MOLD mold)
  include(CheckLinkerFlag)
  if(SWAPMM_MOLD)
    check_linker_flag(CXX -fuse-ld=mold SWAPMM_LINKER_IS_MOLD)
    if(SWAPMM_LINKER_IS_MOLD)
      add_link_options(-fuse-ld=mold)
      # g++ writes empty unwind records for cold parts of functions that are empty, and mold before 2.42.1 lets them hide
      # those of the functions: what is thrown there ends the process (mold's issue 1648).
      if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-reorder-blocks-and-partition>)
      endif()
    endif()
  endif()
endif()
