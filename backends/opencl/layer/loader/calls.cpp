// SPDX-License-Identifier: Apache-2.0
// The functions of the API that swapmm's OpenCL backend calls, for the backend within the layer: they go to the
// functions below the layer. In a library of its own the backend is linked with the loader, and calls the same names
// there.

#include "table.hpp"

using swapmm::opencl::layer::down;  // NOLINT(google-global-names-in-headers): this is no header

// The header declares them as exported functions; the layer's version script hides them.
extern "C" {
cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint num_devices, const cl_device_id* device_list,
                                  const char* options,
                                  void(CL_CALLBACK* pfn_notify)(cl_program program, void* user_data), void* user_data) {
  return down.clBuildProgram(program, num_devices, device_list, options, pfn_notify, user_data);
}
cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void* host_ptr,
                                  cl_int* errcode_ret) {
  return down.clCreateBuffer(context, flags, size, host_ptr, errcode_ret);
}
cl_command_queue CL_API_CALL clCreateCommandQueue(cl_context context, cl_device_id device,
                                                  cl_command_queue_properties properties, cl_int* errcode_ret) {
  return down.clCreateCommandQueue(context, device, properties, errcode_ret);
}
cl_context CL_API_CALL clCreateContext(const cl_context_properties* properties, cl_uint num_devices,
                                       const cl_device_id* devices,
                                       void(CL_CALLBACK* pfn_notify)(const char* errinfo, const void* private_info,
                                                                     size_t cb, void* user_data),
                                       void* user_data, cl_int* errcode_ret) {
  return down.clCreateContext(properties, num_devices, devices, pfn_notify, user_data, errcode_ret);
}
cl_kernel CL_API_CALL clCreateKernel(cl_program program, const char* kernel_name, cl_int* errcode_ret) {
  return down.clCreateKernel(program, kernel_name, errcode_ret);
}
cl_program CL_API_CALL clCreateProgramWithSource(cl_context context, cl_uint count, const char** strings,
                                                 const size_t* lengths, cl_int* errcode_ret) {
  return down.clCreateProgramWithSource(context, count, strings, lengths, errcode_ret);
}
cl_mem CL_API_CALL clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type buffer_create_type,
                                     const void* buffer_create_info, cl_int* errcode_ret) {
  return down.clCreateSubBuffer(buffer, flags, buffer_create_type, buffer_create_info, errcode_ret);
}
cl_int CL_API_CALL clEnqueueBarrierWithWaitList(cl_command_queue command_queue, cl_uint num_events_in_wait_list,
                                                const cl_event* event_wait_list, cl_event* event) {
  return down.clEnqueueBarrierWithWaitList(command_queue, num_events_in_wait_list, event_wait_list, event);
}
cl_int CL_API_CALL clEnqueueCopyBuffer(cl_command_queue command_queue, cl_mem src_buffer, cl_mem dst_buffer,
                                       size_t src_offset, size_t dst_offset, size_t size,
                                       cl_uint num_events_in_wait_list, const cl_event* event_wait_list,
                                       cl_event* event) {
  return down.clEnqueueCopyBuffer(command_queue, src_buffer, dst_buffer, src_offset, dst_offset, size,
                                  num_events_in_wait_list, event_wait_list, event);
}
cl_int CL_API_CALL clEnqueueFillBuffer(cl_command_queue command_queue, cl_mem buffer, const void* pattern,
                                       size_t pattern_size, size_t offset, size_t size, cl_uint num_events_in_wait_list,
                                       const cl_event* event_wait_list, cl_event* event) {
  return down.clEnqueueFillBuffer(command_queue, buffer, pattern, pattern_size, offset, size, num_events_in_wait_list,
                                  event_wait_list, event);
}
void* CL_API_CALL clEnqueueMapBuffer(cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_map,
                                     cl_map_flags map_flags, size_t offset, size_t size,
                                     cl_uint num_events_in_wait_list, const cl_event* event_wait_list, cl_event* event,
                                     cl_int* errcode_ret) {
  return down.clEnqueueMapBuffer(command_queue, buffer, blocking_map, map_flags, offset, size, num_events_in_wait_list,
                                 event_wait_list, event, errcode_ret);
}
cl_int CL_API_CALL clEnqueueMarkerWithWaitList(cl_command_queue command_queue, cl_uint num_events_in_wait_list,
                                               const cl_event* event_wait_list, cl_event* event) {
  return down.clEnqueueMarkerWithWaitList(command_queue, num_events_in_wait_list, event_wait_list, event);
}
cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue command_queue, cl_kernel kernel, cl_uint work_dim,
                                          const size_t* global_work_offset, const size_t* global_work_size,
                                          const size_t* local_work_size, cl_uint num_events_in_wait_list,
                                          const cl_event* event_wait_list, cl_event* event) {
  return down.clEnqueueNDRangeKernel(command_queue, kernel, work_dim, global_work_offset, global_work_size,
                                     local_work_size, num_events_in_wait_list, event_wait_list, event);
}
cl_int CL_API_CALL clEnqueueReadBuffer(cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_read,
                                       size_t offset, size_t size, void* ptr, cl_uint num_events_in_wait_list,
                                       const cl_event* event_wait_list, cl_event* event) {
  return down.clEnqueueReadBuffer(command_queue, buffer, blocking_read, offset, size, ptr, num_events_in_wait_list,
                                  event_wait_list, event);
}
cl_int CL_API_CALL clEnqueueUnmapMemObject(cl_command_queue command_queue, cl_mem memobj, void* mapped_ptr,
                                           cl_uint num_events_in_wait_list, const cl_event* event_wait_list,
                                           cl_event* event) {
  return down.clEnqueueUnmapMemObject(command_queue, memobj, mapped_ptr, num_events_in_wait_list, event_wait_list,
                                      event);
}
cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_write,
                                        size_t offset, size_t size, const void* ptr, cl_uint num_events_in_wait_list,
                                        const cl_event* event_wait_list, cl_event* event) {
  return down.clEnqueueWriteBuffer(command_queue, buffer, blocking_write, offset, size, ptr, num_events_in_wait_list,
                                   event_wait_list, event);
}
cl_int CL_API_CALL clFinish(cl_command_queue command_queue) { return down.clFinish(command_queue); }
cl_int CL_API_CALL clFlush(cl_command_queue command_queue) { return down.clFlush(command_queue); }
cl_int CL_API_CALL clGetCommandQueueInfo(cl_command_queue command_queue, cl_command_queue_info param_name,
                                         size_t param_value_size, void* param_value, size_t* param_value_size_ret) {
  return down.clGetCommandQueueInfo(command_queue, param_name, param_value_size, param_value, param_value_size_ret);
}
cl_int CL_API_CALL clGetContextInfo(cl_context context, cl_context_info param_name, size_t param_value_size,
                                    void* param_value, size_t* param_value_size_ret) {
  return down.clGetContextInfo(context, param_name, param_value_size, param_value, param_value_size_ret);
}
cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id platform, cl_device_type device_type, cl_uint num_entries,
                                  cl_device_id* devices, cl_uint* num_devices) {
  return down.clGetDeviceIDs(platform, device_type, num_entries, devices, num_devices);
}
cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info param_name, size_t param_value_size,
                                   void* param_value, size_t* param_value_size_ret) {
  return down.clGetDeviceInfo(device, param_name, param_value_size, param_value, param_value_size_ret);
}
cl_int CL_API_CALL clGetEventInfo(cl_event event, cl_event_info param_name, size_t param_value_size, void* param_value,
                                  size_t* param_value_size_ret) {
  return down.clGetEventInfo(event, param_name, param_value_size, param_value, param_value_size_ret);
}
cl_int CL_API_CALL clGetEventProfilingInfo(cl_event event, cl_profiling_info param_name, size_t param_value_size,
                                           void* param_value, size_t* param_value_size_ret) {
  return down.clGetEventProfilingInfo(event, param_name, param_value_size, param_value, param_value_size_ret);
}
cl_int CL_API_CALL clGetKernelInfo(cl_kernel kernel, cl_kernel_info param_name, size_t param_value_size,
                                   void* param_value, size_t* param_value_size_ret) {
  return down.clGetKernelInfo(kernel, param_name, param_value_size, param_value, param_value_size_ret);
}
cl_int CL_API_CALL clGetPlatformIDs(cl_uint num_entries, cl_platform_id* platforms, cl_uint* num_platforms) {
  return down.clGetPlatformIDs(num_entries, platforms, num_platforms);
}
cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform, cl_platform_info param_name, size_t param_value_size,
                                     void* param_value, size_t* param_value_size_ret) {
  return down.clGetPlatformInfo(platform, param_name, param_value_size, param_value, param_value_size_ret);
}
cl_int CL_API_CALL clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_program_build_info param_name,
                                         size_t param_value_size, void* param_value, size_t* param_value_size_ret) {
  return down.clGetProgramBuildInfo(program, device, param_name, param_value_size, param_value, param_value_size_ret);
}
cl_int CL_API_CALL clReleaseCommandQueue(cl_command_queue command_queue) {
  return down.clReleaseCommandQueue(command_queue);
}
cl_int CL_API_CALL clReleaseContext(cl_context context) { return down.clReleaseContext(context); }
cl_int CL_API_CALL clReleaseEvent(cl_event event) { return down.clReleaseEvent(event); }
cl_int CL_API_CALL clReleaseKernel(cl_kernel kernel) { return down.clReleaseKernel(kernel); }
cl_int CL_API_CALL clReleaseMemObject(cl_mem memobj) { return down.clReleaseMemObject(memobj); }
cl_int CL_API_CALL clReleaseProgram(cl_program program) { return down.clReleaseProgram(program); }
cl_int CL_API_CALL clRetainCommandQueue(cl_command_queue command_queue) {
  return down.clRetainCommandQueue(command_queue);
}
cl_int CL_API_CALL clRetainContext(cl_context context) { return down.clRetainContext(context); }
cl_event CL_API_CALL clCreateUserEvent(cl_context context, cl_int* errcode_ret) {
  return down.clCreateUserEvent(context, errcode_ret);
}
cl_int CL_API_CALL clSetUserEventStatus(cl_event event, cl_int execution_status) {
  return down.clSetUserEventStatus(event, execution_status);
}
cl_int CL_API_CALL clRetainEvent(cl_event event) { return down.clRetainEvent(event); }
cl_int CL_API_CALL clRetainMemObject(cl_mem memobj) { return down.clRetainMemObject(memobj); }
cl_int CL_API_CALL clSetMemObjectDestructorCallback(cl_mem memobj,
                                                    void(CL_CALLBACK* pfn_notify)(cl_mem memobj, void* user_data),
                                                    void* user_data) {
  return down.clSetMemObjectDestructorCallback(memobj, pfn_notify, user_data);
}
cl_int CL_API_CALL clWaitForEvents(cl_uint num_events, const cl_event* event_list) {
  return down.clWaitForEvents(num_events, event_list);
}
}
