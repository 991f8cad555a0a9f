// SPDX-License-Identifier: Apache-2.0
// <swapmm/fwd.hpp> declares what the other headers define, and in the same way: another kind of template, or another
// underlying type, does not compile. tests/structure/boundary.py checks that each name of it stands here.
#include <swapmm/fwd.hpp>

// Before any definition, the names can be used.
const swapmm::Trace* observed(const swapmm::Scheduler& scheduler, swapmm::Access access);

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/ir/graph.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/ir/profile.hpp>
#include <swapmm/swapmm.hpp>

#include <type_traits>

namespace {

template <class... Types>
constexpr bool all_defined = ((sizeof(Types) > 0) && ...);

using B = swapmm::simulated::Backend;

static_assert(all_defined<swapmm::Result<int>, swapmm::Problem, swapmm::Error, swapmm::UsageError, swapmm::BackendError,
                          swapmm::OutOfMemory>);
static_assert(all_defined<swapmm::TensorId, swapmm::OperationId, swapmm::CommandId, swapmm::Access, swapmm::TensorKind,
                          swapmm::Trace, swapmm::Graph, swapmm::Liveness, swapmm::Profile, swapmm::Link,
                          swapmm::Machine, swapmm::LinkCapacities, swapmm::Plan>);
static_assert(
    all_defined<swapmm::Lifetime, swapmm::DemandMode, swapmm::Planning, swapmm::Options, swapmm::SchedulerOptions,
                swapmm::Report, swapmm::HostViewOptions, swapmm::HostViewTraffic, swapmm::Division, swapmm::PlanningJob,
                swapmm::Scheduler, swapmm::SharedLinks, swapmm::Shape, swapmm::Scratch>);
static_assert(all_defined<swapmm::TensorRef<B>, swapmm::PendingDownload<B>, swapmm::View<float, B>,
                          swapmm::HostView<float, B>, swapmm::Tensor<float, B>, swapmm::Accesses<B, 1>,
                          swapmm::AccessesWithSlices<B>, swapmm::DividedTensor<float, B>, swapmm::DividedView<float, B>,
                          swapmm::Bundle<B>, swapmm::Operation<B>, swapmm::Iteration<B>, swapmm::MemoryManager<B>>);
// Only backends that can capture have a definition of it.
static_assert(std::is_class_v<swapmm::CapturedIteration<B>>);

}  // namespace
