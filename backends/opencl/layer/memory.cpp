// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <shared_mutex>
#include <span>
#include <unordered_set>
#include <utility>

#include "process/callbacks.hpp"
#include "process/settings.hpp"

namespace swapmm::opencl::layer {
namespace {

struct Objects {
  std::shared_mutex mutex;
  std::unordered_set<const void*> all;
};

Objects& objects() {
  static Objects& all = *new Objects;
  return all;
}

void enlist(const Memory& memory) {
  const std::unique_lock lock(objects().mutex);
  objects().all.insert(&memory);
}

// Calls back when everything that was queued so far has ended.
void call_after_all_work(Context& context, const std::function<void()>& callback) {
  cl_event last = nullptr;
  {
    const Lock lock = context.lock();
    last = context.last_command();
    context.flush();
  }
  if (last == nullptr) return callback();
  const auto told = [](cl_event event, cl_int, void* data) {
    auto* const wanted = static_cast<std::function<void()>*>(data);
    run_later(std::move(*wanted));
    delete wanted;
    down.clReleaseEvent(event);
  };
  auto* const wanted = new std::function<void()>(callback);
  if (down.clSetEventCallback(last, CL_COMPLETE, told, wanted) != CL_SUCCESS) told(last, CL_COMPLETE, wanted);
}

// Writes a tensor's value into an allocation, in pieces through the host: for one that the budget does not have room
// for twice. Its bytes are on the host already, because the allocation has taken their room.
cl_int write_by_host(Context& context, const Tensor& tensor, std::size_t size, cl_mem to) {
  for (int attempt = 0; attempt < 12; ++attempt) {
    try {
      std::vector<std::byte> piece(std::min<std::size_t>(size, std::size_t{16} << 20U));
      for (std::size_t done = 0; done < size; done += piece.size()) {
        const std::size_t now = std::min(piece.size(), size - done);
        context.core()->download(tensor, Bytes{done}, std::span(piece).first(now));
        const cl_int status =
            down.clEnqueueWriteBuffer(context.queue(), to, CL_TRUE, done, now, piece.data(), 0, nullptr, nullptr);
        if (status != CL_SUCCESS) return status;
      }
      return CL_SUCCESS;
    } catch (const OutOfMemory&) {
      return CL_OUT_OF_HOST_MEMORY;
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): of an earlier command
    }
  }
  return CL_OUT_OF_RESOURCES;
}

}  // namespace

MapArea::MapArea(std::size_t bytes) : size(bytes) {
  const Bytes counted{bytes};
  if (!host_memory()->take(counted)) return;
  void* const made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) {
    host_memory()->give_back(counted);
  } else {
    data = static_cast<std::byte*>(made);
  }
}

MapArea::~MapArea() {
  if (data == nullptr) return;
  munmap(data, size);
  host_memory()->give_back(Bytes{size});
}

// ---- Memory

Memory::Memory(Context& context, Facts facts, std::shared_ptr<MapArea> initial)
    : Object(Kind::memory), context_(context), facts_(std::move(facts)), counted_(true), initial_(std::move(initial)) {
  begins_with_ = initial_ != nullptr ? initial_->data : static_cast<const std::byte*>(facts_.host_pointer);
  context.live.fetch_add(round_up(Bytes{facts_.size}, context.alignment()).value, std::memory_order_relaxed);
  context.device().note_peak();
  enlist(*this);
}

Memory::Memory(Memory& root, Facts facts, std::size_t origin)
    : Object(Kind::memory), context_(root.context()), facts_(std::move(facts)), parent_(root), origin_(origin) {
  (void)root.begin_use();
  root.parts_.fetch_add(1, std::memory_order_relaxed);
  enlist(*this);
}

Memory::Memory(Context& context, Facts facts, cl_mem native, Memory* parent)
    : Object(Kind::memory), context_(context), facts_(std::move(facts)), native_(native), native_made_(next_moment()) {
  if (parent != nullptr) {
    parent_ = Ref<Memory>(*parent);
    (void)parent->begin_use();
    parent->parts_.fetch_add(1, std::memory_order_relaxed);
  }
  enlist(*this);
}

Memory::~Memory() {
  const std::unique_lock lock(objects().mutex);
  objects().all.erase(this);
}

Memory* Memory::find(const void* address) {
  const std::shared_lock lock(objects().mutex);
  return objects().all.contains(address) ? const_cast<Memory*>(static_cast<const Memory*>(address)) : nullptr;
}

bool Memory::begin_use() {
  std::uint32_t count = uses_.load(std::memory_order_relaxed);
  do {
    if (count == 0) return false;
  } while (!uses_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed));
  return true;
}

void Memory::end_use() {
  if (uses_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  hold();  // the callbacks get the handle
  destroy_storage();
  std::vector<Destructor> callbacks;
  {
    const std::lock_guard lock(destructors_mutex_);
    callbacks.swap(destructors_);
  }
  if (!callbacks.empty()) {
    const auto call_all = [callbacks = std::move(callbacks), self = Ref<Memory>(*this)] {
      for (auto each = callbacks.rbegin(); each != callbacks.rend(); ++each) {
        each->callback(self->handle(), each->data);
      }
    };
    // Not here, because the caller may have the lock.
    run_later([call_all, context = ContextRef(*context_)] { call_after_all_work(*context, call_all); });
  }
  if (parent_) {
    parent_->parts_.fetch_sub(1, std::memory_order_release);
    parent_->end_use();
  }
  drop();
}

void Memory::destroy_storage() {
  if (native_) {
    for (DeviceBudget* const device : context().devices()) device->note_release();
    native_.reset();
  }
  initial_.reset();
  begins_with_ = nullptr;
  if (std::exchange(counted_, false)) {
    const std::uint64_t bytes = round_up(Bytes{facts_.size}, context().alignment()).value;
    if (context().live.fetch_sub(bytes, std::memory_order_relaxed) == bytes) context().device().note_idle();
  }
  if (std::exchange(has_tensor_, false)) context().destroy_tensor(tensor_);
}

void Memory::on_destruction(void(CL_CALLBACK* callback)(cl_mem, void*), void* data) {
  const std::lock_guard lock(destructors_mutex_);
  destructors_.push_back({callback, data});
}

cl_mem Memory::native() {
  if (native_) return native_.get();
  if (!is_buffer() || !parent_) return nullptr;
  const cl_mem whole = parent_->native();
  if (whole == nullptr) return nullptr;
  const cl_buffer_region region{origin_, facts_.size};
  cl_int status = CL_SUCCESS;
  native_ = Handle<cl_mem>(down.clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status));
  return native_.get();
}

bool Memory::tensor(Tensor& tensor) {
  if (!has_tensor_) {
    if (!context().make_tensor(*this, tensor_)) return false;
    has_tensor_ = true;
  }
  tensor = tensor_;
  return true;
}

const std::byte* Memory::take_initial(std::shared_ptr<MapArea>& area) {
  area = std::move(initial_);
  return std::exchange(begins_with_, nullptr);
}

cl_int Memory::upload_initial() {
  if (!has_initial()) return CL_SUCCESS;
  Tensor value;
  if (!tensor(value)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  std::shared_ptr<MapArea> area;
  const std::byte* const bytes = take_initial(area);
  return on_host(context(), [&](Core& core) { core.upload(value, Bytes{}, std::span(bytes, facts_.size)); });
}

cl_int Memory::pin(const std::function<cl_int(cl_mem)>& accepts) {
  if (native_) return CL_SUCCESS;
  const Bytes size{facts_.size};
  if (!context().device().reserve(size)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  cl_int status = CL_SUCCESS;
  Handle<cl_mem> made(allocate(&status, [&](cl_int* created) {
    return down.clCreateBuffer(context().handle(), CL_MEM_READ_WRITE, facts_.size, nullptr, created);
  }));
  if (status == CL_SUCCESS && accepts) status = accepts(made.get());
  if (status != CL_SUCCESS) {
    made.reset();
    context().device().give_back(size);
    return status;
  }
  count_until_gone(made.get(), context().devices(), size);
  context().device().count_passed(PassedThrough::buffer, size);
  Tensor value;
  if (!tensor(value)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  if (size > context().device().swappable()) {
    status = upload_initial();
    if (status == CL_SUCCESS) status = write_by_host(context(), value, facts_.size, made.get());
  } else {
    Bundle bundle;
    bundle.add(*this, Access::read);
    cl_event copied = nullptr;
    status = context().operate(
        {"buffer of an image"}, bundle, &copied, [&](Running& operation, const WaitList& waits, cl_event* event) {
          return down.clEnqueueCopyBuffer(operation.backend().queue(), native_of(*this, operation), made.get(), 0, 0,
                                          facts_.size, waits.size(), waits.data(), event);
        });
    if (status == CL_SUCCESS) down.clReleaseEvent(copied);
  }
  if (status != CL_SUCCESS) return status;
  destroy_storage();
  native_ = std::move(made);
  native_made_ = next_moment();
  return CL_SUCCESS;
}

std::byte* Memory::map_address(std::size_t offset) {
  if (facts_.host_pointer != nullptr) {
    ++areas_used_;
    return static_cast<std::byte*>(facts_.host_pointer) + offset;
  }
  if (area_ == nullptr) area_ = std::make_shared<MapArea>(facts_.size);
  if (area_->data == nullptr) {
    area_.reset();
    return nullptr;
  }
  ++areas_used_;
  return area_->data + offset;
}

void Memory::mapping_ended() {
  if (--areas_used_ != 0 || area_ == nullptr) return;
  if ((facts_.flags & CL_MEM_ALLOC_HOST_PTR) != 0) return;  // such buffers are mapped again and again
  context().keep_until_done(std::move(area_));
}

void Memory::keep(Bytes need) {
  if (native_ || std::exchange(asked_to_stay_, true)) return;
  DeviceBudget& device = context().device();
  const Bytes beside = std::max({device.largest_command(), need, Bytes{facts_.size}});
  const bool fits = Bytes{facts_.size} + beside + device.pinned() <= device.budget();
  if (fits && pin() == CL_SUCCESS) return;
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) remark("SWAPMM_KEEP: the budget has no room to keep all buffers; the others are swapped");
}

void count_until_gone(cl_mem native, std::span<DeviceBudget* const> devices, Bytes size) {
  struct Counted {
    std::vector<DeviceBudget*> devices;
    Bytes size;
  };
  auto* const counted = new Counted{{devices.begin(), devices.end()}, size};
  const auto gone = [](cl_mem, void* data) {
    const auto* const done = static_cast<Counted*>(data);
    opencl::detail::ReleasedMemory::of_process().left();
    for (DeviceBudget* const device : done->devices) device->give_back(done->size);
    delete done;
  };
  // If the driver refuses, the bytes count for ever: more than is true, but never less.
  if (down.clSetMemObjectDestructorCallback(native, gone, counted) != CL_SUCCESS) delete counted;
}

// ---- Bundle

void Bundle::add(Memory& memory, Access access) { add(memory, access, 0, memory.facts().size); }

void Bundle::add(Memory& memory, Access access, std::size_t offset, std::size_t size) {
  Memory& root = memory.root();
  if (root.native() != nullptr) return;
  const bool whole = memory.origin() + offset == 0 && size == root.facts().size;
  if (access == Access::write && !whole) access = Access::update;
  for (Part& part : parts_) {
    if (part.root != &root) continue;
    if (part.access != access) part.access = Access::update;
    return;
  }
  parts_.push_back({&root, access});
}

cl_mem native_of(Memory& memory, Running& operation) {
  if (const cl_mem native = memory.native(); native != nullptr) return native;
  Tensor tensor;
  if (!memory.root().tensor(tensor)) return nullptr;
  return operation.address(*tensor.record, Bytes{memory.origin()}, Bytes{memory.facts().size}).buffer();
}

InAllocation place_of_native(Memory& memory) {
  return {memory.root().native(), memory.origin(), {memory.root().native_made(), 0}};
}

InAllocation place_of(Memory& memory, Running& operation) {
  Memory& root = memory.root();
  if (root.native() != nullptr) return place_of_native(memory);
  Tensor tensor;
  if (!root.tensor(tensor)) return {};
  const auto place = operation.in_arena(*tensor.record);
  return {place.arena->buffer(),
          static_cast<std::size_t>(place.offset.value) + memory.origin(),
          {memory.context().part_made(), (tensor.record->device.offset - place.offset).value}};
}

}  // namespace swapmm::opencl::layer
