// SPDX-License-Identifier: Apache-2.0
// What objects and devices tell of themselves.

#include "harness.hpp"

#include <cstring>

using namespace cases;

CASE(information, of_buffers) {
  const Setup setup;
  Words words = numbers(1);
  struct Kind {
    cl_mem_flags flags;
    std::size_t bytes;
    void* host;
  };
  const Kind kinds[] = {{CL_MEM_READ_WRITE, 100, nullptr},
                        {CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, 4096, words.data()},
                        {CL_MEM_WRITE_ONLY | CL_MEM_ALLOC_HOST_PTR, 5000, nullptr},
                        {CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, buffer_bytes, words.data()},
                        {CL_MEM_READ_WRITE | CL_MEM_HOST_READ_ONLY | CL_MEM_COPY_HOST_PTR, 64, words.data()},
                        {CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS, 64, nullptr}};
  for (const Kind& kind : kinds) {
    const cl_mem one = setup.buffer(kind.bytes, kind.flags, kind.host);
    say("type %x, flags %llx, size %zu, maps %u, references %u, offset %zu",
        memory_info<cl_mem_object_type>(one, CL_MEM_TYPE),
        static_cast<unsigned long long>(memory_info<cl_mem_flags>(one, CL_MEM_FLAGS)),
        memory_info<std::size_t>(one, CL_MEM_SIZE), memory_info<cl_uint>(one, CL_MEM_MAP_COUNT), references(one),
        memory_info<std::size_t>(one, CL_MEM_OFFSET));
    expect(memory_info<cl_context>(one, CL_MEM_CONTEXT) == setup.context, "the context is told");
    expect(memory_info<cl_mem>(one, CL_MEM_ASSOCIATED_MEMOBJECT) == nullptr, "no root is told");
    if ((kind.flags & CL_MEM_USE_HOST_PTR) != 0)
      expect(memory_info<void*>(one, CL_MEM_HOST_PTR) == kind.host, "the host pointer is told");
    else
      expect(memory_info<void*>(one, CL_MEM_HOST_PTR) == nullptr, "no host pointer is told");
    say("SVM pointer: %u", memory_info<cl_bool>(one, CL_MEM_USES_SVM_POINTER));
    OK(clReleaseMemObject(one));
  }
}

CASE(information, sizes_of_answers) {
  const Setup setup;
  const cl_mem one = setup.buffer();
  std::size_t bytes = 0, value = 0;
  for (const cl_mem_info name :
       std::vector<cl_mem_info>{CL_MEM_TYPE, CL_MEM_FLAGS, CL_MEM_SIZE, CL_MEM_HOST_PTR, CL_MEM_MAP_COUNT,
                                CL_MEM_REFERENCE_COUNT, CL_MEM_CONTEXT, CL_MEM_ASSOCIATED_MEMOBJECT, CL_MEM_OFFSET}) {
    const cl_int status = clGetMemObjectInfo(one, name, 0, nullptr, &bytes);
    say("%x: %s, %zu bytes", name, name_of(status), bytes);
    say_status("too small", clGetMemObjectInfo(one, name, 1, &value, nullptr));
    say_status("nothing asked", clGetMemObjectInfo(one, name, 0, nullptr, nullptr));
  }
  say_status("unknown", clGetMemObjectInfo(one, 1, sizeof value, &value, nullptr));
  OK(clReleaseMemObject(one));
}

CASE(information, of_queues) {
  const Setup setup;
  for (const cl_command_queue_properties wanted :
       {cl_command_queue_properties{0}, cl_command_queue_properties{CL_QUEUE_PROFILING_ENABLE},
        cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE},
        cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE}}) {
    const cl_command_queue queue = setup.another_queue(wanted);
    say("properties %llx, references %u",
        static_cast<unsigned long long>(
            info<cl_command_queue_properties>(clGetCommandQueueInfo, queue, CL_QUEUE_PROPERTIES)),
        info<cl_uint>(clGetCommandQueueInfo, queue, CL_QUEUE_REFERENCE_COUNT));
    expect(info<cl_context>(clGetCommandQueueInfo, queue, CL_QUEUE_CONTEXT) == setup.context, "the context is told");
    expect(info<cl_device_id>(clGetCommandQueueInfo, queue, CL_QUEUE_DEVICE) == setup.device, "the device is told");
    OK(clReleaseCommandQueue(queue));
  }
  cl_uint value = 0;
  say_status("unknown", clGetCommandQueueInfo(setup.queue, 1, sizeof value, &value, nullptr));
  cl_int error = CL_SUCCESS;
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
  const cl_command_queue queue = clCreateCommandQueueWithProperties(setup.context, setup.device, properties, &error);
  OK(error);
  say("properties %llx", static_cast<unsigned long long>(
                             info<cl_command_queue_properties>(clGetCommandQueueInfo, queue, CL_QUEUE_PROPERTIES)));
  OK(clReleaseCommandQueue(queue));
}

CASE(information, of_contexts) {
  const Setup setup;
  expect(info<cl_uint>(clGetContextInfo, setup.context, CL_CONTEXT_NUM_DEVICES) == 1, "one device");
  expect(info<cl_device_id>(clGetContextInfo, setup.context, CL_CONTEXT_DEVICES) == setup.device, "the device is told");
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(setup.platform), 0};
  cl_int error = CL_SUCCESS;
  const cl_context typed = clCreateContextFromType(properties, CL_DEVICE_TYPE_ALL, nullptr, nullptr, &error);
  OK(error);
  cl_context_properties told[8] = {};
  std::size_t bytes = 0;
  OK(clGetContextInfo(typed, CL_CONTEXT_PROPERTIES, sizeof told, told, &bytes));
  say("%zu properties", bytes / sizeof told[0]);
  expect(told[0] == CL_CONTEXT_PLATFORM && told[1] == properties[1], "the properties are told");
  OK(clReleaseContext(typed));
  cl_uint value = 0;
  say_status("unknown", clGetContextInfo(setup.context, 1, sizeof value, &value, nullptr));
}

// The program may size itself by these.
CASE(information, of_the_device) {
  cl_platform_id platform = nullptr;
  const cl_device_id device = first_device(&platform);
  const auto global = info<cl_ulong>(clGetDeviceInfo, device, CL_DEVICE_GLOBAL_MEM_SIZE);
  const auto largest = info<cl_ulong>(clGetDeviceInfo, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  expect(global > 0, "there is memory");
  expect(largest > 0, "there is a largest buffer");
  expect(largest <= global, "the largest buffer is no larger than the memory");
  expect(info<cl_device_type>(clGetDeviceInfo, device, CL_DEVICE_TYPE) != 0, "the device has a type");
  expect(info<cl_platform_id>(clGetDeviceInfo, device, CL_DEVICE_PLATFORM) == platform, "its platform is told");
  cl_uchar small = 0;
  say_status("too small", clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof small, &small, nullptr));
  std::size_t bytes = 0;
  say_status("size alone", clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, 0, nullptr, &bytes));
  say("%zu bytes", bytes);
  // A buffer of the largest size alone: its creation may fail for want of memory, but not for its size.
  const Setup setup;
  cl_int error = CL_SUCCESS;
  const cl_mem beyond = clCreateBuffer(setup.context, CL_MEM_READ_WRITE, largest + 1, nullptr, &error);
  say_ruled("beyond the largest", error, CL_INVALID_BUFFER_SIZE, {CL_SUCCESS});  // NVIDIA's driver makes it
  if (beyond != nullptr) OK(clReleaseMemObject(beyond));
}

// An extension's function must know the program's handles. Those that are handed out are either safe or absent.
CASE(information, extensions) {
  cl_platform_id platform = nullptr;
  const cl_device_id device = first_device(&platform);
  std::size_t bytes = 0;
  OK(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, nullptr, &bytes));
  std::string of_device(bytes, '\0');
  OK(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, bytes, of_device.data(), nullptr));
  const bool commands = of_device.find("cl_khr_command_buffer") != std::string::npos;
  for (const char* name : {"clCreateCommandBufferKHR", "clCommandCopyBufferKHR", "clCommandNDRangeKernelKHR"}) {
    const void* function = clGetExtensionFunctionAddressForPlatform(platform, name);
    expect(function == nullptr || commands, "no function of an extension that the device does not tell of");
  }
  expect(clGetExtensionFunctionAddressForPlatform(platform, "clNoSuchFunctionKHR") == nullptr, "an unknown function");
  say("asked");
}

// PoCL has this function: with a handle that is not its own it would crash.
CASE(information, content_size) {
  const Setup setup;
  using SetSize = cl_int(CL_API_CALL*)(cl_mem, cl_mem);
  const auto set =
      reinterpret_cast<SetSize>(clGetExtensionFunctionAddressForPlatform(setup.platform, "clSetContentSizeBufferPoCL"));
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2)),
               size = setup.buffer_of({buffer_bytes, 0});
  if (set != nullptr) expect(set(a, size) == CL_SUCCESS, "the content size is set");
  kernels.grow(setup.queue, a, 1);
  OK(clEnqueueCopyBuffer(setup.queue, a, b, 0, 0, buffer_bytes, 0, nullptr, nullptr));
  say_words("b", setup.read(b));
  release_buffers({a, b, size});
}

// Recorded commands, if the device has them: the layer may emulate or hide them.
CASE(information, command_buffers) {
  const Setup setup;
  using Create = void*(CL_API_CALL*)(cl_uint, const cl_command_queue*, const cl_ulong*, cl_int*);
  using Record = cl_int(CL_API_CALL*)(void*, cl_command_queue, cl_mem, cl_mem, std::size_t, std::size_t, std::size_t,
                                      cl_uint, const cl_uint*, cl_uint*, void**);
  using Finalize = cl_int(CL_API_CALL*)(void*);
  using Enqueue = cl_int(CL_API_CALL*)(cl_uint, cl_command_queue*, void*, cl_uint, const cl_event*, cl_event*);
  const auto find = [&](const char* name) { return clGetExtensionFunctionAddressForPlatform(setup.platform, name); };
  const auto create = reinterpret_cast<Create>(find("clCreateCommandBufferKHR"));
  const auto record = reinterpret_cast<Record>(find("clCommandCopyBufferKHR"));
  const auto finalize = reinterpret_cast<Finalize>(find("clFinalizeCommandBufferKHR"));
  const auto enqueue = reinterpret_cast<Enqueue>(find("clEnqueueCommandBufferKHR"));
  const auto release = reinterpret_cast<Finalize>(find("clReleaseCommandBufferKHR"));
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2));
  OK(clEnqueueCopyBuffer(setup.queue, b, a, 0, 400, 4000, 0, nullptr, nullptr));
  if (create != nullptr && record != nullptr && finalize != nullptr && enqueue != nullptr && release != nullptr) {
    cl_int error = CL_SUCCESS;
    cl_command_queue queue = setup.queue;
    void* commands = create(1, &queue, nullptr, &error);
    OK(error);
    OK(record(commands, nullptr, a, b, 0, 0, buffer_bytes, 0, nullptr, nullptr, nullptr));
    OK(finalize(commands));
    OK(enqueue(0, nullptr, commands, 0, nullptr, nullptr));
    OK(clFinish(setup.queue));
    OK(release(commands));
  } else {
    OK(clEnqueueCopyBuffer(setup.queue, a, b, 0, 0, buffer_bytes, 0, nullptr, nullptr));
  }
  say_words("b", setup.read(b));
  release_buffers({a, b});
}

CASE(information, svm) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2)), c = setup.buffer_of(numbers(3));
  const auto able = info<cl_device_svm_capabilities>(clGetDeviceInfo, setup.device, CL_DEVICE_SVM_CAPABILITIES);
  kernels.blend(setup.queue, a, b, c);
  Words words = numbers(4);
  auto* shared = (able & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) == 0
                     ? nullptr
                     : static_cast<cl_uint*>(clSVMAlloc(setup.context, CL_MEM_READ_WRITE, buffer_bytes, 0));
  if (shared != nullptr) {
    OK(clEnqueueSVMMap(setup.queue, CL_TRUE, CL_MAP_WRITE, shared, buffer_bytes, 0, nullptr, nullptr));
    std::memcpy(shared, words.data(), buffer_bytes);
    OK(clEnqueueSVMUnmap(setup.queue, shared, 0, nullptr, nullptr));
    OK(clSetKernelArgSVMPointer(kernels.grow_kernel, 0, shared));
    set_argument(kernels.grow_kernel, 1, 1u);
    launch(setup.queue, kernels.grow_kernel, word_count);
    kernels.blend(setup.queue, b, a, c);
    OK(clEnqueueSVMMap(setup.queue, CL_TRUE, CL_MAP_READ, shared, buffer_bytes, 0, nullptr, nullptr));
    std::memcpy(words.data(), shared, buffer_bytes);
    OK(clEnqueueSVMUnmap(setup.queue, shared, 0, nullptr, nullptr));
    OK(clFinish(setup.queue));
    clSVMFree(setup.context, shared);
  } else {
    for (cl_uint& word : words) word = 7 * word + 1;
    kernels.blend(setup.queue, b, a, c);
  }
  say_words("shared", words);
  say_words("b", setup.read(b));
  release_buffers({a, b, c});
}
