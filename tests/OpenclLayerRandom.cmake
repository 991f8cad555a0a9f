# SPDX-License-Identifier: Apache-2.0
# Random OpenCL programs: against a model of the host, and the same bytes with the layer beneath them.

file(GLOB sources CONFIGURE_DEPENDS opencl_layer/random/*.cpp)
add_executable(swapmm_random_opencl ${sources})
target_link_libraries(swapmm_random_opencl PRIVATE OpenCL::OpenCL Threads::Threads)
target_compile_definitions(swapmm_random_opencl PRIVATE CL_TARGET_OPENCL_VERSION=300
  CL_USE_DEPRECATED_OPENCL_1_1_APIS CL_USE_DEPRECATED_OPENCL_1_2_APIS)
target_compile_features(swapmm_random_opencl PRIVATE cxx_std_20)
set_target_properties(swapmm_random_opencl PROPERTIES UNITY_BUILD OFF) # its files have helpers of the same names
swapmm_warnings_for(swapmm_random_opencl)
swapmm_runs_long(swapmm_random_opencl)
