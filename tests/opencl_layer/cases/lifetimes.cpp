// SPDX-License-Identifier: Apache-2.0
// Reference counts, destructor callbacks, and what is released when.

#include "harness.hpp"

#include <chrono>
#include <mutex>
#include <thread>

using namespace cases;

namespace {

// What callbacks tell, in their order.
struct Log {
  std::mutex mutex;
  std::string text;
  void add(char letter) {
    const std::lock_guard lock(mutex);
    text += letter;
  }
  std::string await(std::size_t length) {
    for (int i = 0; i < 2000; ++i) {
      {
        const std::lock_guard lock(mutex);
        if (text.size() >= length) return text;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return "not all were called";
  }
};

struct Entry {
  Log* log;
  char letter;
  cl_mem object;
};
void CL_CALLBACK gone(cl_mem object, void* data) {
  const auto& entry = *static_cast<Entry*>(data);
  entry.log->add(object == entry.object ? entry.letter : '?');
}

}  // namespace

CASE(lifetimes, memory_references) {
  const Setup setup;
  const cl_mem one = setup.buffer();
  say("new: %u", references(one));
  for (int i = 0; i < 5; ++i) OK(clRetainMemObject(one));
  say("retained: %u", references(one));
  for (int i = 0; i < 5; ++i) OK(clReleaseMemObject(one));
  say("released: %u", references(one));
  OK(clReleaseMemObject(one));
  say_status("retain NULL", clRetainMemObject(nullptr));
  say_status("release NULL", clReleaseMemObject(nullptr));
}

CASE(lifetimes, other_references) {
  const Setup setup;
  const cl_kernel kernel = setup.kernel("grow");
  say("kernel: %u", info<cl_uint>(clGetKernelInfo, kernel, CL_KERNEL_REFERENCE_COUNT));
  OK(clRetainKernel(kernel));
  say("kernel: %u", info<cl_uint>(clGetKernelInfo, kernel, CL_KERNEL_REFERENCE_COUNT));
  OK(clReleaseKernel(kernel));
  say("kernel: %u", info<cl_uint>(clGetKernelInfo, kernel, CL_KERNEL_REFERENCE_COUNT));
  const cl_command_queue queue = setup.another_queue();
  say("queue: %u", info<cl_uint>(clGetCommandQueueInfo, queue, CL_QUEUE_REFERENCE_COUNT));
  OK(clRetainCommandQueue(queue));
  say("queue: %u", info<cl_uint>(clGetCommandQueueInfo, queue, CL_QUEUE_REFERENCE_COUNT));
  OK(clReleaseCommandQueue(queue));
  OK(clReleaseCommandQueue(queue));
  OK(clReleaseKernel(kernel));
  // Contexts and programs are also held by what is made of them, as each driver likes.
  const auto before = info<cl_uint>(clGetContextInfo, setup.context, CL_CONTEXT_REFERENCE_COUNT);
  OK(clRetainContext(setup.context));
  say("context: %u more", info<cl_uint>(clGetContextInfo, setup.context, CL_CONTEXT_REFERENCE_COUNT) - before);
  OK(clReleaseContext(setup.context));
  const auto programs = info<cl_uint>(clGetProgramInfo, setup.program, CL_PROGRAM_REFERENCE_COUNT);
  OK(clRetainProgram(setup.program));
  say("program: %u more", info<cl_uint>(clGetProgramInfo, setup.program, CL_PROGRAM_REFERENCE_COUNT) - programs);
  OK(clReleaseProgram(setup.program));
}

// Objects tell of others that the program has released, and these can be retained then.
CASE(lifetimes, retained_again) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem whole = setup.buffer_of(numbers(1));
  const cl_buffer_region region{0, buffer_bytes / 2};
  cl_int error = CL_SUCCESS;
  const cl_mem part = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  OK(error);
  say("whole: %u", references(whole));
  for (int i = 0; i < 3; ++i) {
    OK(clReleaseMemObject(whole));
    const auto again = info<cl_mem>(clGetMemObjectInfo, part, CL_MEM_ASSOCIATED_MEMOBJECT);
    expect(again == whole, "the part is of the whole");
    OK(clRetainMemObject(again));
    kernels.grow(setup.queue, again, 1);
    say_words("whole", setup.read(again));
  }
  OK(clReleaseMemObject(whole));
  say_words("part", setup.read(part, word_count / 2));
  OK(clReleaseMemObject(part));

  const cl_command_queue queue = setup.another_queue();
  const cl_mem one = setup.buffer_of(numbers(2));
  cl_event event = nullptr;
  kernels.grow(queue, one, 1, word_count, {}, &event);
  OK(clFinish(queue));
  OK(clReleaseCommandQueue(queue));
  const auto of_event = info<cl_command_queue>(clGetEventInfo, event, CL_EVENT_COMMAND_QUEUE);
  expect(of_event == queue, "the event is of the queue");
  OK(clRetainCommandQueue(of_event));
  kernels.grow(of_event, one, 1);
  OK(clFinish(of_event));
  say_words("one", setup.read(one));
  OK(clReleaseEvent(event));
  OK(clReleaseCommandQueue(of_event));
  OK(clReleaseMemObject(one));
}

// Using an object adds no reference that stays.
CASE(lifetimes, use_adds_no_reference) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2)), c = setup.buffer_of(numbers(3));
  for (int i = 0; i < 3; ++i) kernels.blend(setup.queue, a, b, c);
  OK(clFinish(setup.queue));
  say_words("a", setup.read(a));
  for (cl_mem one : {a, b, c}) OK(clRetainMemObject(one));
  for (cl_mem one : {a, b, c}) OK(clReleaseMemObject(one));
  say_words("a", setup.read(a));
  release_buffers({a, b, c});
}

CASE(lifetimes, callbacks_last_first) {
  const Setup setup;
  Log log;
  const cl_mem one = setup.buffer();
  Entry entries[] = {{&log, '1', one}, {&log, '2', one}, {&log, '3', one}};
  for (Entry& entry : entries) OK(clSetMemObjectDestructorCallback(one, gone, &entry));
  OK(clRetainMemObject(one));
  OK(clReleaseMemObject(one));
  OK(clReleaseMemObject(one));
  say("%s", log.await(3).c_str());
  const cl_mem another = setup.buffer();
  say_status("no function", clSetMemObjectDestructorCallback(another, nullptr, nullptr));
  OK(clReleaseMemObject(another));
}

// Neither before the last use, nor before the parts are gone.
CASE(lifetimes, callback_after_the_last_use) {
  const Setup setup;
  const Kernels kernels(setup);
  Log log;
  cl_int error = CL_SUCCESS;
  const cl_event gate = clCreateUserEvent(setup.context, &error);
  OK(error);
  const cl_mem one = setup.buffer_of(numbers(1)), two = setup.buffer_of(numbers(2));
  Entry entry{&log, 'b', one};
  OK(clSetMemObjectDestructorCallback(one, gone, &entry));
  cl_event done = nullptr;
  kernels.affine(setup.queue, two, one, 1, word_count, {gate}, &done);
  OK(clReleaseMemObject(one));
  OK(clFlush(setup.queue));
  log.add('a');
  OK(clSetUserEventStatus(gate, CL_COMPLETE));
  OK(clWaitForEvents(1, &done));
  OK(clFinish(setup.queue));
  OK(clReleaseEvent(done));
  say("%s", log.await(2).c_str());
  say_words("two", setup.read(two));
  OK(clReleaseEvent(gate));
  OK(clReleaseMemObject(two));
}

CASE(lifetimes, callback_after_the_parts) {
  const Setup setup;
  Log log;
  const cl_mem root = setup.buffer();
  const cl_buffer_region region{0, 4096};
  cl_int error = CL_SUCCESS;
  const cl_mem part = clCreateSubBuffer(root, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  OK(error);
  Entry of_root{&log, 'r', root}, of_part{&log, 'p', part};
  OK(clSetMemObjectDestructorCallback(root, gone, &of_root));
  OK(clSetMemObjectDestructorCallback(part, gone, &of_part));
  OK(clReleaseMemObject(root));
  log.add('-');
  OK(clReleaseMemObject(part));
  say("%s", log.await(3).c_str());
}

// From then on the program may free its memory.
CASE(lifetimes, callback_frees_the_host_memory) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem other = setup.buffer_of(numbers(1));
  Log log;
  struct Owner {
    Log* log;
    Words* words;
  } owners[4];
  for (auto& owner : owners) {
    owner = {&log, new Words(numbers(5))};
    const cl_mem one = setup.buffer(buffer_bytes, CL_MEM_USE_HOST_PTR | CL_MEM_READ_WRITE, owner.words->data());
    OK(clSetMemObjectDestructorCallback(
        one,
        [](cl_mem, void* data) {
          const auto& gone_owner = *static_cast<Owner*>(data);
          delete gone_owner.words;
          gone_owner.log->add('f');
        },
        &owner));
    kernels.grow(setup.queue, one, 2);
    kernels.affine(setup.queue, other, one, 2);
    OK(clReleaseMemObject(one));
    kernels.grow(setup.queue, other, 1);
  }
  say_words("other", setup.read(other));
  OK(clFinish(setup.queue));
  say("%s", log.await(4).c_str());
  OK(clReleaseMemObject(other));
}

// The callback uses the API.
CASE(lifetimes, callback_makes_a_buffer) {
  const Setup setup;
  struct Shared {
    const Setup* setup;
    Log log;
  } shared{&setup, {}};
  for (int i = 0; i < 4; ++i) {
    const cl_mem one = setup.buffer_of(numbers(1));
    OK(clSetMemObjectDestructorCallback(
        one,
        [](cl_mem, void* data) {
          auto& all = *static_cast<Shared*>(data);
          const cl_mem made = all.setup->buffer();
          OK(clReleaseMemObject(made));
          all.log.add('c');
        },
        &shared));
    OK(clReleaseMemObject(one));
  }
  say("%s", shared.log.await(4).c_str());
}

// The specification lets a program release what an enqueued command uses.
CASE(lifetimes, released_after_enqueue) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem kept = setup.buffer_of(numbers(1));
  for (cl_uint i = 0; i < 8; ++i) {
    const cl_mem passing = setup.buffer_of(numbers(10 + i));
    kernels.blend(setup.queue, kept, passing, kept);
    OK(clReleaseMemObject(passing));
  }
  say_words("kept", setup.read(kept));
  OK(clReleaseMemObject(kept));
}

// A stale argument that is replaced before the launch does no harm.
CASE(lifetimes, stale_argument_replaced) {
  const Setup setup;
  const cl_kernel affine = setup.kernel("affine");
  const cl_mem to = setup.buffer();
  for (cl_uint i = 0; i < 5; ++i) {
    const cl_mem from = setup.buffer_of(numbers(i));
    set_argument(affine, 0, to);
    set_argument(affine, 1, from);
    set_argument(affine, 2, i);
    launch(setup.queue, affine, word_count);
    OK(clFinish(setup.queue));
    OK(clReleaseMemObject(from));
  }
  say_words("to", setup.read(to));
  OK(clReleaseKernel(affine));
  OK(clReleaseMemObject(to));
}

namespace {
// Released after main() and after many libraries are gone.
struct AfterMain {
  Setup* setup = nullptr;
  cl_mem object = nullptr;
  cl_kernel kernel = nullptr;
  cl_event event = nullptr;
  ~AfterMain() {
    if (setup == nullptr) return;
    say("after main");
    say_status("event", clReleaseEvent(event));
    say_status("kernel", clReleaseKernel(kernel));
    say_status("object", clReleaseMemObject(object));
    delete setup;
  }
};
AfterMain& after_main() {
  static AfterMain kept;
  return kept;
}
AfterMain early_static;
}  // namespace

// The static object is made after the driver: it goes before it.
CASE(lifetimes, static_object_made_late) {
  auto* setup = new Setup;
  AfterMain& kept = after_main();
  kept.setup = setup;
  kept.object = setup->buffer_of(numbers(1));
  kept.kernel = setup->kernel("grow");
  set_argument(kept.kernel, 0, kept.object);
  set_argument(kept.kernel, 1, 1u);
  launch(setup->queue, kept.kernel, word_count, {}, &kept.event);
  say_words("object", setup->read(kept.object));
}

// It was there before the driver: it goes after whatever the driver's libraries destroy at exit.
CASE(lifetimes, static_object_made_early) {
  auto* setup = new Setup;
  early_static.setup = setup;
  early_static.object = setup->buffer_of(numbers(1));
  early_static.kernel = setup->kernel("grow");
  set_argument(early_static.kernel, 0, early_static.object);
  set_argument(early_static.kernel, 1, 1u);
  launch(setup->queue, early_static.kernel, word_count, {}, &early_static.event);
  say_words("object", setup->read(early_static.object));
}

// The program ends without releasing anything.
CASE(lifetimes, contexts_one_after_another) {
  for (cl_uint round = 0; round < 3; ++round) {
    const Setup setup;
    const Kernels kernels(setup);
    const cl_mem a = setup.buffer_of(numbers(round)), b = setup.buffer();
    for (cl_uint i = 0; i < 5; ++i) {
      kernels.affine(setup.queue, b, a, i);
      kernels.grow(setup.queue, a, i);
    }
    say_words("a", setup.read(a));
    say_words("b", setup.read(b));
    release_buffers({a, b});
  }
}

CASE(lifetimes, nothing_released) {
  auto* setup = new Setup;
  auto* kernels = new Kernels(*setup);
  const cl_mem a = setup->buffer_of(numbers(1)), b = setup->buffer_of(numbers(2));
  kernels->blend(setup->queue, a, b, a);
  say_words("a", setup->read(a));
  kernels->blend(setup->queue, b, b, a);
  OK(clFlush(setup->queue));
}
