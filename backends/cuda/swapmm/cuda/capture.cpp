// SPDX-License-Identifier: Apache-2.0
// Captures queued work as a graph.
#include <memory>
#include <utility>

#include <swapmm/base/error.hpp>
#include <swapmm/cuda/backend.hpp>
#include <swapmm/cuda/session.hpp>
#include <swapmm/cuda/status.hpp>

namespace swapmm::cuda {

using detail::Capture;
using detail::CurrentDevice;
using detail::new_event;
using detail::Session;

namespace {

constexpr std::array<QueueKind, 2> copy_queues{QueueKind::h2d, QueueKind::d2h};

// Makes `behind` wait for everything queued on `first` so far.
void join(const Session& session, QueueKind first, QueueKind behind) {
  const cudaEvent_t joint = session.joints[index(first)].get();
  check(cudaEventRecord(joint, session.stream(first)), "cudaEventRecord");
  check(cudaStreamWaitEvent(session.stream(behind), joint, 0), "cudaStreamWaitEvent");
}

struct GraphDeleter {
  void operator()(cudaGraph_t graph) const { forget(cudaGraphDestroy(graph)); }
};

}  // namespace

// ---- Graph

Graph::Graph(std::shared_ptr<Session> session, std::shared_ptr<Capture> capture, cudaGraphExec_t graph)
    : session_(std::move(session)), capture_(std::move(capture)), graph_(graph) {}

Graph::Graph(Graph&& other) noexcept
    : session_(std::move(other.session_)),
      capture_(std::move(other.capture_)),
      graph_(std::exchange(other.graph_, nullptr)) {}

Graph& Graph::operator=(Graph&& other) noexcept {
  if (this == &other) return *this;
  end();
  session_ = std::move(other.session_);
  capture_ = std::move(other.capture_);
  graph_ = std::exchange(other.graph_, nullptr);
  return *this;
}

Graph::~Graph() { end(); }

void Graph::end() noexcept {
  if (graph_ == nullptr) return;
  session_->finish_quietly();
  forget(cudaGraphExecDestroy(graph_));
  graph_ = nullptr;
}

// ---- capturing

bool Backend::capturing() const { return session_->capture != nullptr; }

void Backend::begin_capture() {
  if (capturing()) throw UsageError("a capture begins inside another one");
  Session& session = *session_;
  if (session.default_stream) {
    throw UsageError("operations run on a default stream, which CUDA cannot capture: give the backend one of your own");
  }
  session.finish();
  auto capture = std::make_shared<Capture>();
  {
    const CurrentDevice current(session.device);
    capture->done = new_event(cudaEventDisableTiming);
  }
  const cudaStream_t compute = session.stream(QueueKind::compute);
  // While a graph is captured, calls that it cannot repeat, such as cudaMalloc, fail in this thread. Otherwise they
  // would work now, and be missing in each later run.
  check(cudaStreamBeginCapture(compute, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  session.capture = std::move(capture);
  try {
    for (const QueueKind queue : copy_queues) join(session, QueueKind::compute, queue);
  } catch (...) {
    session.capture->state = Capture::State::failed;
    session.capture.reset();
    cudaGraph_t graph = nullptr;
    forget(cudaStreamEndCapture(compute, &graph));
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    throw;
  }
}

Graph Backend::end_capture() {
  if (!capturing()) throw UsageError("a capture ends that did not begin");
  Session& session = *session_;
  const std::shared_ptr<Capture> capture = std::move(session.capture);
  session.capture = nullptr;
  capture->state = Capture::State::failed;  // until it is launched
  const cudaStream_t compute = session.stream(QueueKind::compute);
  cudaGraph_t native = nullptr;
  try {
    for (const QueueKind queue : copy_queues) join(session, queue, QueueKind::compute);
  } catch (const BackendError&) {  // ends the capture, because otherwise the stream would stay in capture mode
    forget(cudaStreamEndCapture(compute, &native));
    if (native != nullptr) (void)cudaGraphDestroy(native);
    throw;
  }
  const cudaError_t ended = cudaStreamEndCapture(compute, &native);
  const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, GraphDeleter> graph(native);
  check(ended, "cudaStreamEndCapture");
  cudaGraphExec_t runnable = nullptr;
  check(cudaGraphInstantiateWithFlags(&runnable, native, 0), "cudaGraphInstantiateWithFlags");
  return {session_, capture, runnable};
}

void Backend::launch(Graph& graph) {
  Session& session = *session_;
  if (graph.graph_ == nullptr || graph.session_ != session_) throw UsageError("a graph of another backend is launched");
  if (capturing()) throw UsageError("a graph is launched inside a capture");
  const cudaStream_t compute = session.stream(QueueKind::compute);
  for (const QueueKind queue : copy_queues) join(session, queue, QueueKind::compute);
  check(cudaGraphLaunch(graph.graph_, compute), "cudaGraphLaunch");
  check(cudaEventRecord(graph.capture_->done.get(), compute), "cudaEventRecord");
  graph.capture_->state = Capture::State::runs;
  for (const QueueKind queue : copy_queues) {
    check(cudaStreamWaitEvent(session.stream(queue), graph.capture_->done.get(), 0), "cudaStreamWaitEvent");
  }
}

}  // namespace swapmm::cuda
