// SPDX-License-Identifier: Apache-2.0
#pragma once

// A device of OpenCL under the runner of programs.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <swapmm/opencl/neighbour.hpp>

#include "opencl/support.hpp"
#include "support/program/device.hpp"
#include "support/program/stage.hpp"

namespace swapmm::test {

/// Operations copy their operands to the host and back on op.queue(). Those of one phase do so by blocking calls. In
/// two phases, callbacks of events run the kernel while the program goes on; user events hold the queue back meanwhile.
/// The second form waits with the first command, and gives the event of the last one, or none.
/// (Not on Oclgrind: it runs all that is queued within clFlush(), and waits there for ever for a user event.)
class OpenclProgramDevice {
 public:
  using Backend = opencl::Backend;
  using Place = opencl::View<std::byte>;

  explicit OpenclProgramDevice(const TestProgram&) : at_rest_(objects_at_rest()), backend_(shared_backend()) {
    reset_api_calls();
  }

  [[nodiscard]] const Backend& backend() const { return *backend_; }
  /// The device is its own.
  [[nodiscard]] static std::shared_ptr<Neighbour> neighbour(const NeighbourSetup& setup) {
    return opencl::neighbour(first_backend().device(), setup.capacity, Bytes{4096});
  }

  void launch(cl_command_queue& queue, std::string_view, Kernel& kernel, const LaunchForm& form,
              std::span<const Place> places) {
    (void)run(queue, kernel, form, places, {});
  }
  opencl::NativeEvent launch(cl_command_queue& queue, std::string_view, Kernel& kernel, const LaunchForm& form,
                             std::span<const Place> places, const opencl::WaitList& waits) {
    opencl::Handle<cl_event> last = run(queue, kernel, form, places, waits);
    if (form.by_bundle) return {};
    return {last.release()};
  }

  /// In the buffer that it is a part of.
  [[nodiscard]] static ProgramPlace place(const Place& place) {
    cl_mem whole = nullptr;
    std::size_t offset = 0;
    check(clGetMemObjectInfo(place.buffer(), CL_MEM_ASSOCIATED_MEMOBJECT, sizeof whole, &whole, nullptr), "its buffer");
    check(clGetMemObjectInfo(place.buffer(), CL_MEM_OFFSET, sizeof offset, &offset, nullptr), "its offset");
    return {whole == nullptr ? place.buffer() : whole, offset};
  }

  [[nodiscard]] static std::string violation() { return {}; }
  [[nodiscard]] static std::string excess(const Report& report, const Options& options) {
    const bool more = api_calls().most_device_bytes > (options.device_budget + report.neighbours_budget).value;
    return more ? "the API was asked for more device memory than the budget" : std::string();
  }
  [[nodiscard]] std::string left_over() {
    while (callbacks_ != 0) std::this_thread::yield();  // they have done their work, and are about to return
    bodies_.clear();
    backend_.reset();
    if (api_objects() == at_rest_) return {};
    std::ostringstream out;
    out << "objects of the API are left: " << api_objects() << ", at rest " << at_rest_;
    return out.str();
  }
  [[nodiscard]] static std::uint64_t trace_hash() { return 0; }

 private:
  static void check(cl_int status, const char* what) {
    if (status != CL_SUCCESS) throw std::runtime_error(std::string(what) + ": status " + std::to_string(status));
  }

  /// A part of a kernel that a callback runs.
  struct Body {
    const Kernel* kernel;
    KernelPhase phase;
    opencl::Handle<cl_event> done;  // a user event
    std::atomic<int>* callbacks;
  };
  static void CL_CALLBACK run_queued_body(cl_event, cl_int status, void* of) {
    const auto& body = *static_cast<const Body*>(of);
    if (status == CL_COMPLETE) run_body(*body.kernel, body.phase);
    clSetUserEventStatus(body.done.get(), status);
    --*body.callbacks;
  }

  /// Queues commands one behind the other, the first of them behind a wait list.
  class Commands {
   public:
    explicit Commands(const opencl::WaitList& waits) : waits_(waits), waited_(waits.size() == 0) {}

    /// call(number of events, events, event) calls the API.
    template <class Call>
    void queue(const char* what, Call&& call) {
      cl_event event = nullptr;
      if (body_ != nullptr) {
        check(call(1, &body_, &event), what);
      } else {
        check(call(waited_ ? 0 : waits_.size(), waited_ ? nullptr : waits_.data(), &event), what);
      }
      waited_ = true;
      body_ = nullptr;
      last_ = opencl::Handle<cl_event>(event);
    }
    /// The next one comes after this event, too.
    void follow(cl_event body) { body_ = body; }
    [[nodiscard]] bool following() const { return body_ != nullptr; }
    [[nodiscard]] opencl::Handle<cl_event>& last() { return last_; }

   private:
    const opencl::WaitList& waits_;
    bool waited_;
    cl_event body_ = nullptr;
    opencl::Handle<cl_event> last_;
  };

  opencl::Handle<cl_event> run(cl_command_queue queue, Kernel& kernel, const LaunchForm& form,
                               std::span<const Place> places, const opencl::WaitList& waits) {
    static const bool calls_back = !device_is_slow();
    const cl_bool blocking = calls_back && (form.two_phases || form.two_launches) ? CL_FALSE : CL_TRUE;
    KernelStage stage(kernel);
    stage.place(stages_.emplace_back(stage.size()).data());
    Commands commands(waits);
    const auto fetch = [&](std::size_t i) {
      commands.queue("clEnqueueReadBuffer", [&](cl_uint count, const cl_event* list, cl_event* event) {
        return clEnqueueReadBuffer(queue, places[i].buffer(), blocking, 0, stage.size_of(i), stage.data(i), count, list,
                                   event);
      });
    };
    const auto put = [&](std::size_t i) {
      commands.queue("clEnqueueWriteBuffer", [&](cl_uint count, const cl_event* list, cl_event* event) {
        return clEnqueueWriteBuffer(queue, places[i].buffer(), blocking, 0, stage.size_of(i), stage.data(i), count,
                                    list, event);
      });
    };
    const auto put_marker = [&] {
      commands.queue("clEnqueueMarkerWithWaitList", [&](cl_uint count, const cl_event* list, cl_event* event) {
        return clEnqueueMarkerWithWaitList(queue, count, list, event);
      });
    };
    stage.run(form, fetch, put, [&](KernelPhase phase) {
      if (blocking == CL_TRUE) return run_body(kernel, phase);
      if (!commands.last() || commands.following()) put_marker();
      commands.follow(queue_body(kernel, phase, commands.last().get()));
    });
    if (!commands.last() || commands.following()) put_marker();
    return std::move(commands.last());
  }

  /// Behind that event; the result is complete when it has run.
  cl_event queue_body(const Kernel& kernel, KernelPhase phase, cl_event behind) {
    cl_int status = CL_SUCCESS;
    opencl::Handle<cl_event> done(clCreateUserEvent(backend_->context(), &status));
    check(status, "clCreateUserEvent");
    Body& body = bodies_.emplace_back(Body{&kernel, phase, std::move(done), &callbacks_});
    ++callbacks_;
    status = clSetEventCallback(behind, CL_COMPLETE, run_queued_body, &body);
    if (status != CL_SUCCESS) --callbacks_;
    check(status, "clSetEventCallback");
    return body.done.get();
  }

  ApiObjects at_rest_;
  std::optional<Backend> backend_;
  std::deque<std::vector<std::byte>> stages_;  // of all operations: work on them may be queued
  std::deque<Body> bodies_;                    // likewise
  std::atomic<int> callbacks_ = 0;             // that have not returned
};

static_assert(ProgramDevice<OpenclProgramDevice>);

}  // namespace swapmm::test
