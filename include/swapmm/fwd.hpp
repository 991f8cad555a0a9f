// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Declares the types of the facade without defining them, for headers that only name them. Enumerations are declared
/// with their underlying type, so that they can be passed by value.

#include <cstddef>
#include <cstdint>

#include <swapmm/backend/backend.hpp>

namespace swapmm {

// base
template <class T>
class Result;
struct Problem;

// errors
struct Error;
struct UsageError;
struct BackendError;
class OutOfMemory;

// traces and plans
enum class TensorId : std::uint32_t;
enum class OperationId : std::uint32_t;
enum class CommandId : std::uint32_t;
enum class Access : std::uint8_t;
enum class TensorKind : std::uint8_t;
struct Trace;
struct Graph;
struct Liveness;
struct Profile;
struct Link;
struct Machine;
struct LinkCapacities;
struct Plan;

// the facade
enum class Lifetime : std::uint8_t;
enum class DemandMode : std::uint8_t;
enum class Planning : std::uint8_t;
struct Options;
struct SchedulerOptions;
struct Report;
struct HostViewOptions;
struct HostViewTraffic;
class PlanningJob;
class Scheduler;
class SharedLinks;
class Shape;
struct Scratch;
template <Backend B>
struct TensorRef;
template <Backend B>
class PendingDownload;
template <class T, Backend B>
class View;
template <class T, Backend B>
class HostView;
template <class T, Backend B>
class Tensor;
struct Division;
template <class T, Backend B>
class DividedTensor;
template <class T, Backend B>
class DividedView;
template <Backend B, std::size_t N>
struct Accesses;
template <Backend B>
struct AccessesWithSlices;
template <Backend B>
class Bundle;
template <Backend B>
class Operation;
template <Backend B>
class Iteration;
template <Backend B>
class CapturedIteration;
template <Backend B>
class MemoryManager;

}  // namespace swapmm
