// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions of the loader's table that tell of an error: they return it, or store it through their last parameter.

#define WATCH_FUNCTIONS(X)                                                                                                   \
  X(clGetPlatformInfo)                                                                                                       \
  X(clGetDeviceIDs)                                                                                                          \
  X(clGetDeviceInfo)                                                                                                         \
  X(clCreateContext)                                                                                                         \
  X(clCreateContextFromType) X(clRetainContext) X(clReleaseContext) X(clGetContextInfo) X(clCreateCommandQueue) X(           \
      clRetainCommandQueue) X(clReleaseCommandQueue) X(clGetCommandQueueInfo) X(clSetCommandQueueProperty)                   \
      X(clCreateBuffer) X(clCreateImage2D) X(clCreateImage3D) X(clRetainMemObject) X(clReleaseMemObject) X(                  \
          clGetSupportedImageFormats) X(clGetMemObjectInfo) X(clGetImageInfo) X(clCreateSampler) X(clRetainSampler)          \
          X(clReleaseSampler) X(clGetSamplerInfo) X(clCreateProgramWithSource) X(clCreateProgramWithBinary) X(               \
              clRetainProgram) X(clReleaseProgram) X(clBuildProgram) X(clUnloadCompiler) X(clGetProgramInfo)                 \
              X(clGetProgramBuildInfo) X(clCreateKernel) X(clCreateKernelsInProgram) X(clRetainKernel) X(                    \
                  clReleaseKernel) X(clSetKernelArg) X(clGetKernelInfo) X(clGetKernelWorkGroupInfo) X(clWaitForEvents)       \
                  X(clGetEventInfo) X(clRetainEvent) X(clReleaseEvent) X(clGetEventProfilingInfo) X(clFlush) X(              \
                      clFinish) X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) X(clEnqueueCopyBuffer)                        \
                      X(clEnqueueReadImage) X(clEnqueueWriteImage) X(clEnqueueCopyImage) X(                                  \
                          clEnqueueCopyImageToBuffer) X(clEnqueueCopyBufferToImage) X(clEnqueueMapBuffer)                    \
                          X(clEnqueueMapImage) X(clEnqueueUnmapMemObject) X(clEnqueueNDRangeKernel) X(clEnqueueTask) X(      \
                              clEnqueueNativeKernel) X(clEnqueueMarker) X(clEnqueueWaitForEvents) X(clEnqueueBarrier)        \
                              X(clCreateFromGLBuffer) X(clCreateFromGLTexture2D) X(clCreateFromGLTexture3D) X(               \
                                  clCreateFromGLRenderbuffer) X(clGetGLObjectInfo) X(clGetGLTextureInfo)                     \
                                  X(clEnqueueAcquireGLObjects) X(clEnqueueReleaseGLObjects) X(clGetGLContextInfoKHR) X(      \
                                      clSetEventCallback) X(clCreateSubBuffer) X(clSetMemObjectDestructorCallback)           \
                                      X(clCreateUserEvent) X(clSetUserEventStatus) X(clEnqueueReadBufferRect) X(             \
                                          clEnqueueWriteBufferRect) X(clEnqueueCopyBufferRect) X(clCreateSubDevicesEXT)      \
                                          X(clRetainDeviceEXT) X(clReleaseDeviceEXT) X(clCreateEventFromGLsyncKHR) X(        \
                                              clCreateSubDevices) X(clRetainDevice) X(clReleaseDevice)                       \
                                              X(clCreateImage) X(clCreateProgramWithBuiltInKernels) X(                       \
                                                  clCompileProgram) X(clLinkProgram) X(clUnloadPlatformCompiler)             \
                                                  X(clGetKernelArgInfo) X(clEnqueueFillBuffer) X(clEnqueueFillImage) X(      \
                                                      clEnqueueMigrateMemObjects) X(clEnqueueMarkerWithWaitList)             \
                                                      X(clEnqueueBarrierWithWaitList) X(clCreateFromGLTexture) X(            \
                                                          clCreateFromEGLImageKHR) X(clEnqueueAcquireEGLObjectsKHR)          \
                                                          X(clEnqueueReleaseEGLObjectsKHR) X(clCreateEventFromEGLSyncKHR) X( \
                                                              clCreateCommandQueueWithProperties) X(clCreatePipe)            \
                                                              X(clGetPipeInfo) X(clEnqueueSVMFree) X(clEnqueueSVMMemcpy) X(  \
                                                                  clEnqueueSVMMemFill) X(clEnqueueSVMMap)                    \
                                                                  X(clEnqueueSVMUnmap) X(clCreateSamplerWithProperties) X(   \
                                                                      clSetKernelArgSVMPointer) X(clSetKernelExecInfo)       \
                                                                      X(clGetKernelSubGroupInfoKHR) X(                       \
                                                                          clCloneKernel) X(clCreateProgramWithIL)            \
                                                                          X(clEnqueueSVMMigrateMem) X(                       \
                                                                              clGetDeviceAndHostTimer) X(clGetHostTimer)     \
                                                                              X(clGetKernelSubGroupInfo) X(                  \
                                                                                  clSetDefaultDeviceCommandQueue)            \
                                                                                  X(clSetProgramReleaseCallback) X(          \
                                                                                      clSetProgramSpecializationConstant)    \
                                                                                      X(clCreateBufferWithProperties) X(     \
                                                                                          clCreateImageWithProperties)       \
                                                                                          X(clSetContextDestructorCallback)
