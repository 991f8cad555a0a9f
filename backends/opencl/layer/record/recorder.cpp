// SPDX-License-Identifier: Apache-2.0
#include "recorder.hpp"

#include <unistd.h>

#include <utility>

#include <swapmm/formats/call_log/writer.hpp>

namespace swapmm::opencl::layer::record {

using calls::Object;
using calls::ObjectKind;

cl_icd_dispatch next{};

Recorder::Recorder(std::string path, bool keeps_content) : keeps_content_(keeps_content), file_(std::move(path)) {
  std::string text;
  call_log::append_begin(text, static_cast<std::uint64_t>(getpid()), keeps_content);
  file_.append(text);
}

void Recorder::write(const calls::Call& call) {
  std::string text;
  call_log::append_call(text, call);
  file_.append(text);
}

void Recorder::end() {
  pending_.settle();
  std::string text;
  call_log::append_end(text);
  file_.append(text);
  file_.write_through();
}

Object Recorder::add(const void* handle, ObjectKind kind) {
  if (handle == nullptr) return 0;
  const std::lock_guard lock(mutex_);
  objects_[handle] = {++last_object_, kind, 1};
  return last_object_;
}

Object Recorder::find(const void* handle) {
  if (handle == nullptr) return 0;
  const std::lock_guard lock(mutex_);
  const auto known = objects_.find(handle);
  return known == objects_.end() ? 0 : known->second.object;
}

ObjectKind Recorder::kind_of(const void* handle) {
  const std::lock_guard lock(mutex_);
  const auto known = objects_.find(handle);
  return known == objects_.end() ? ObjectKind::none : known->second.kind;
}

void Recorder::retained(const void* handle) {
  const std::lock_guard lock(mutex_);
  const auto known = objects_.find(handle);
  if (known != objects_.end()) ++known->second.references;
}

void Recorder::releasing(const void* handle) {
  const std::lock_guard lock(mutex_);
  const auto known = objects_.find(handle);
  if (known == objects_.end() || --known->second.references != 0) return;
  memories_.erase(known->second.object);
  kernels_.erase(known->second.object);
  objects_.erase(known);
}

void Recorder::add_memory(Object object, const KnownMemory& memory) {
  const std::lock_guard lock(mutex_);
  memories_[object] = memory;
}

KnownMemory Recorder::memory(Object object) {
  const std::lock_guard lock(mutex_);
  const auto known = memories_.find(object);
  return known == memories_.end() ? KnownMemory{} : known->second;
}

void Recorder::add_kernel(Object object, KnownKernel kernel) {
  const std::lock_guard lock(mutex_);
  kernels_[object] = std::move(kernel);
}

KnownKernel Recorder::kernel(Object object) {
  const std::lock_guard lock(mutex_);
  const auto known = kernels_.find(object);
  return known == kernels_.end() ? KnownKernel{} : known->second;
}

void Recorder::set_argument(Object kernel, cl_uint index, Object memory) {
  const std::lock_guard lock(mutex_);
  const auto known = kernels_.find(kernel);
  if (known == kernels_.end() || index >= known->second.arguments.size()) return;
  known->second.arguments[index].memory = memory;
}

void Recorder::add_map(const void* address, const KnownMap& map) {
  const std::lock_guard lock(mutex_);
  maps_.emplace(address, map);
}

std::optional<KnownMap> Recorder::take_map(const void* address, Object object) {
  const std::lock_guard lock(mutex_);
  const auto [first, last] = maps_.equal_range(address);
  for (auto each = first; each != last; ++each) {
    if (each->second.operand.object != object) continue;
    KnownMap map = each->second;
    maps_.erase(each);
    return map;
  }
  return std::nullopt;
}

std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> threads{0};
  thread_local const std::uint32_t mine = threads.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace swapmm::opencl::layer::record
