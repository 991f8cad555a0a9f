// SPDX-License-Identifier: Apache-2.0
// Steps of a schedule as text.

#include <ostream>
#include <sstream>

#include "kernels.hpp"
#include "schedule.hpp"

namespace random_opencl {
namespace {

std::string name_of_object(int id, const Program& program) {
  if (id < 0) return "null";
  const Object& object = program.objects[static_cast<std::size_t>(id)];
  const char letter = is_image(object) ? 'i' : object.shared ? 'v' : object.parent >= 0 ? 's' : 'b';
  return letter + std::to_string(id);
}

std::string text_of(const Rect& rect, bool linear) {
  std::ostringstream text;
  if (linear) {
    text << '[' << rect.origin[0] << ", " << rect.origin[0] + rect.region[0] << ')';
  } else {
    text << "{origin " << rect.origin[0] << ' ' << rect.origin[1] << ' ' << rect.origin[2] << ", region "
         << rect.region[0] << ' ' << rect.region[1] << ' ' << rect.region[2] << ", pitch " << rect.row << ' '
         << rect.slice << '}';
  }
  return text.str();
}

std::string text_of_flags(cl_mem_flags flags) {
  struct Named {
    cl_mem_flags flag;
    const char* name;
  };
  constexpr Named all[] = {{CL_MEM_READ_WRITE, " READ_WRITE"},          {CL_MEM_READ_ONLY, " READ_ONLY"},
                           {CL_MEM_WRITE_ONLY, " WRITE_ONLY"},          {CL_MEM_USE_HOST_PTR, " USE_HOST_PTR"},
                           {CL_MEM_COPY_HOST_PTR, " COPY_HOST_PTR"},    {CL_MEM_ALLOC_HOST_PTR, " ALLOC_HOST_PTR"},
                           {CL_MEM_HOST_NO_ACCESS, " HOST_NO_ACCESS"},  {CL_MEM_HOST_READ_ONLY, " HOST_READ_ONLY"},
                           {CL_MEM_HOST_WRITE_ONLY, " HOST_WRITE_ONLY"}};
  std::string text;
  for (const Named& named : all) {
    if ((flags & named.flag) != 0) text += named.name;
  }
  return text;
}

std::string text_of_object(int id, const Program& program) {
  const Object& object = program.objects[static_cast<std::size_t>(id)];
  std::ostringstream text;
  text << name_of_object(id, program) << " in context " << object.context;
  if (object.parent >= 0) {
    text << ": " << name_of_object(object.parent, program) << " [" << object.origin << ", "
         << object.origin + object.size << ')';
  } else if (is_image(object)) {
    text << ": image " << object.width << " x " << object.height;
  } else {
    text << ": " << object.size << " bytes";
  }
  return text.str() + text_of_flags(object.given_flags);
}

std::string text_of_launch(const Action& what, const Program& program) {
  const Launch& how = what.launch;
  std::ostringstream text;
  text << name_of(how.kernel) << '(';
  for (std::size_t i = 0; i != what.objects.size(); ++i) {
    text << (i == 0 ? "" : ", ") << name_of_object(what.objects[i], program);
  }
  text << "; " << how.begin << " to " << how.end << ", " << how.a << ", " << how.b << ')';
  if (how.by_offset) text << " by offset";
  if (how.two_dimensions) text << " in two dimensions";
  if (how.no_local) text << " without a local size";
  if (how.cloned) text << " by a clone";
  return text.str();
}

std::string text_of_action(const Step& step, const Program& program) {
  const Action& what = step.what;
  const auto place = [&](std::size_t which) {
    return name_of_object(what.objects[which], program) + ' ' + text_of(what.at[which], what.linear);
  };
  const std::string target = std::to_string(step.target);
  switch (what.kind) {
    case Kind::create: return "create " + text_of_object(what.objects[0], program);
    case Kind::release: return "release " + name_of_object(what.objects[0], program);
    case Kind::write: return "write " + place(0) + (what.linear ? "" : " from host " + text_of(what.host, false));
    case Kind::read: return "read " + place(0) + (what.linear ? "" : " to host " + text_of(what.host, false));
    case Kind::copy: return "copy " + place(0) + " to " + place(1);
    case Kind::fill: return "fill " + place(0) + " with a pattern of " + std::to_string(what.pattern);
    case Kind::map: {
      std::string flags;
      if ((what.map_flags & CL_MAP_READ) != 0) flags += " READ";
      if ((what.map_flags & CL_MAP_WRITE) != 0) flags += " WRITE";
      if ((what.map_flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0) flags += " WRITE_INVALIDATE";
      return "map " + place(0) + flags;
    }
    case Kind::unmap: return "unmap " + place(0) + " of step " + target;
    case Kind::launch: return text_of_launch(what, program);
    case Kind::native:
      return "native kernel from " + name_of_object(what.objects[0], program) + " to " +
             name_of_object(what.objects[1], program) + "; " + std::to_string(what.launch.begin) + " to " +
             std::to_string(what.launch.end) + ", " + std::to_string(what.launch.a);
    case Kind::user_event: return what.fails ? "user event that fails" : "user event";
    case Kind::set_user_event:
      return (what.fails ? "fail user event of step " : "set user event of step ") + target +
             (step.by_helper ? ", by another thread, a little later" : "");
    case Kind::barrier: return "barrier";
    case Kind::marker: return "marker";
    case Kind::finish: return "clFinish";
    case Kind::flush: return "clFlush";
    case Kind::wait: return "clWaitForEvents";
    case Kind::new_queue: return "release the queue and make a new one";
    case Kind::check_read: return "compare what step " + target + " has read";
    case Kind::touch_map: {
      std::size_t changed = 0;
      for (const std::uint8_t byte : step.change.defined) changed += byte;
      return "compare what step " + target + " has mapped, change " + std::to_string(changed) + " bytes";
    }
    case Kind::join_setters: return "wait for the threads that set user events";
  }
  return {};
}

bool has_queue(Kind kind) {
  switch (kind) {
    case Kind::create:
    case Kind::release:
    case Kind::user_event:
    case Kind::set_user_event:
    case Kind::check_read:
    case Kind::touch_map:
    case Kind::join_setters: return false;
    default: return true;
  }
}

}  // namespace

std::string text_of(const Step& step, std::size_t index, const Program& program) {
  std::ostringstream text;
  text << index;
  if (step.action >= 0) text << " (action " << step.action << ')';
  text << ": ";
  if (step.what.section % 2 == 1 && program.sections[static_cast<std::size_t>(step.what.section / 2)].threads > 1) {
    text << "thread " << step.what.thread << ", ";
  }
  if (has_queue(step.what.kind)) text << "queue " << step.what.queue << ", ";
  text << text_of_action(step, program);
  if (step.what.blocking && step.what.kind != Kind::touch_map) text << ", blocking";
  for (std::size_t i = 0; i != step.waits.size(); ++i) text << (i == 0 ? ", after " : " ") << step.waits[i];
  if (step.what.fails && step.what.kind != Kind::user_event && step.what.kind != Kind::set_user_event)
    text << (step.what.kind == Kind::wait ? " for a failure" : ", never runs");
  if (step.has_event) text << ", event";
  if (step.has_callback) text << ", callback";
  return text.str();
}

void print(std::ostream& out, const Program& program, const Schedule& schedule) {
  out << "seed " << program.seed << ", " << program.contexts << " contexts\n";
  for (std::size_t i = 0; i != program.queues.size(); ++i) {
    const Queue& queue = program.queues[i];
    out << "queue " << i << ": context " << queue.context << (is_in_order(queue) ? ", in order" : ", out of order")
        << ((queue.properties & CL_QUEUE_PROFILING_ENABLE) != 0 ? ", profiling\n" : "\n");
  }
  for (std::size_t i = 0; i != schedule.steps.size(); ++i) out << text_of(schedule.steps[i], i, program) << '\n';
  out << "the largest command needs " << schedule.need << " bytes\n";
}

}  // namespace random_opencl
