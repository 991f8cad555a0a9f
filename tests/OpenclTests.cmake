# SPDX-License-Identifier: Apache-2.0
# What runs on a device of OpenCL: PoCL on any CPU, or what SWAPMM_DEVICE names.

swapmm_add_tests(opencl)
target_link_libraries(swapmm_opencl_tests PRIVATE swapmm::opencl ${CMAKE_DL_LIBS})
# Libraries that the program uses call the API through it, too.
set_target_properties(swapmm_opencl_tests PROPERTIES ENABLE_EXPORTS ON)
