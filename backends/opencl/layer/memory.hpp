// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/opencl/released_memory.hpp>

#include "context.hpp"
#include "object.hpp"

namespace swapmm::opencl::layer {

/// Host memory for a program's maps. It counts against the host budget.
struct MapArea {
  explicit MapArea(std::size_t bytes);
  MapArea(const MapArea&) = delete;
  MapArea& operator=(const MapArea&) = delete;
  ~MapArea();
  std::byte* data = nullptr;  ///< null: the host has no memory
  std::size_t size;
};

/// The command that reads what the program has mapped, once the driver has it. With the lock.
struct PendingRead {
  Handle<cl_event> event;
};

/// A part of an image that was mapped before the driver had the command: the program has memory of the layer.
struct ImageArea {
  std::array<std::size_t, 3> origin;
  std::array<std::size_t, 3> region;
  std::size_t row;
  std::size_t slice;
  std::shared_ptr<MapArea> area;  ///< none with CL_MEM_USE_HOST_PTR
};

/// What commands that are held back will do with a buffer, the next one first: whether they overwrite all of it without
/// reading it.
class ComingUses {
 public:
  void push(bool overwrites) { uses_.push_back(overwrites); }
  void pop() {
    if (++first_ == uses_.size()) clear();
  }
  /// Takes pop() back, for a use that may have been the last one.
  void unpop(bool overwrites) {
    if (uses_.empty()) return push(overwrites);
    --first_;
  }
  [[nodiscard]] bool empty() const { return uses_.empty(); }
  [[nodiscard]] bool next_overwrites() const { return uses_[first_]; }

 private:
  void clear() {
    uses_.clear();
    first_ = 0;
  }
  std::vector<bool> uses_;
  std::size_t first_ = 0;
};

/// A part of a memory object that the program has mapped.
struct Mapping {
  std::byte* address;  ///< that the program got
  std::size_t offset;  ///< in the root buffer
  std::size_t size;
  cl_map_flags flags;
  std::shared_ptr<PendingRead> read = nullptr;  ///< none: nothing is read
  std::shared_ptr<const ImageArea> image = nullptr;
};

/// A cl_mem of the program: a buffer, a part of one, or something that the driver made (an image, a pipe, a buffer that
/// is shared with another API, or a buffer that an image is made of).
///
/// The bytes of a buffer are a tensor of the runtime. A part of a buffer is a range of its root's tensor.
class Memory : public Object {
 public:
  struct Facts {
    cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
    cl_mem_flags flags = 0;  ///< as queries tell them
    std::size_t size = 0;
    void* host_pointer = nullptr;  ///< of the program, with CL_MEM_USE_HOST_PTR
    std::vector<cl_mem_properties> properties = {};
  };

  /// A buffer. Its bytes get a tensor when the first command uses them. `initial`: the bytes to begin with, or null;
  /// with CL_MEM_USE_HOST_PTR they are the program's own. With the lock.
  Memory(Context& context, Facts facts, std::shared_ptr<MapArea> initial);
  /// A part of a buffer.
  Memory(Memory& root, Facts facts, std::size_t origin);
  /// Something that the driver made; takes the reference over. `parent`: that it is made of, or null.
  Memory(Context& context, Facts facts, cl_mem native, Memory* parent);
  ~Memory();

  [[nodiscard]] static Memory* from(cl_mem handle) {
    return is(handle, Kind::memory) ? reinterpret_cast<Memory*>(handle) : nullptr;
  }
  [[nodiscard]] cl_mem handle() { return reinterpret_cast<cl_mem>(this); }
  /// The object at that address, if there is one: for kernel arguments of which nothing else is known.
  [[nodiscard]] static Memory* find(const void* address);

  [[nodiscard]] Context& context() const { return *context_; }
  [[nodiscard]] const Facts& facts() const { return facts_; }
  [[nodiscard]] bool is_buffer() const { return facts_.type == CL_MEM_OBJECT_BUFFER; }
  /// The buffer that this is a part of; itself if it is none.
  [[nodiscard]] Memory& root() { return is_buffer() && parent_ ? *parent_ : *this; }
  [[nodiscard]] Memory* parent() const { return parent_.get(); }
  [[nodiscard]] std::size_t origin() const { return origin_; }
  /// The number of objects that are made of it, and exist.
  [[nodiscard]] std::uint32_t parts() const { return parts_.load(std::memory_order_acquire); }

  // ---- the program's use

  /// Keeps the bytes, as the program's references do, parts of a buffer, and commands on hold. False if they are gone.
  [[nodiscard]] bool begin_use();
  [[nodiscard]] bool gone() const { return uses_.load(std::memory_order_relaxed) == 0; }
  void end_use();

  /// Called when all is over; the last one set is called first. False if there is no memory.
  void on_destruction(void(CL_CALLBACK* callback)(cl_mem, void*), void* data);

  // ---- with the lock

  /// The driver's object, for what is not a tensor; null for a tensor.
  [[nodiscard]] cl_mem native();
  /// When it was made; see next_moment().
  [[nodiscard]] std::uint64_t native_made() const { return native_made_; }
  /// The tensor of a root buffer that has no native object. It is made by the first command that uses it, because that
  /// command's place in the sequence identifies it.
  [[nodiscard]] bool tensor(Tensor& tensor);
  /// True if the buffer has bytes to begin with that no tensor has yet.
  [[nodiscard]] bool has_initial() const { return begins_with_ != nullptr; }
  /// Takes them. `area`: what keeps them; none with CL_MEM_USE_HOST_PTR.
  [[nodiscard]] const std::byte* take_initial(std::shared_ptr<MapArea>& area);
  /// Gives them to the tensor in the host's memory, for a buffer that never comes to the device.
  [[nodiscard]] cl_int upload_initial();
  /// Gives a root buffer an object of the driver's for good, with its bytes: an image is made of it. `accepts`: whether
  /// the driver makes one of that object. Else nothing has changed, and its status is returned.
  [[nodiscard]] cl_int pin(const std::function<cl_int(cl_mem)>& accepts = {});
  /// The same, for a kernel of SWAPMM_KEEP whose launch needs so much at once. Only if the largest command so far still
  /// fits beside it. Asked once for each buffer.
  void keep(Bytes need);
  [[nodiscard]] bool asked_to_stay() const { return asked_to_stay_; }

  // ---- maps, with the lock

  /// The address of an offset in the root buffer for the program; null if the host has no memory.
  [[nodiscard]] std::byte* map_address(std::size_t offset);
  /// The area that map_address() points into; none with CL_MEM_USE_HOST_PTR.
  [[nodiscard]] std::shared_ptr<MapArea> map_area() const { return area_; }
  std::vector<Mapping> mappings;  ///< of this object
  ComingUses coming;              ///< of a root: commands that are held back
  /// True if the program can never name the bytes of this root again: only commands that have them still use them.
  [[nodiscard]] bool unreachable() const { return references() == 0 && parts() == 0; }
  /// Called when a mapping has ended: the area goes with the last one, once the commands that use it have ended.
  void mapping_ended();

 private:
  void destroy_storage();

  bool asked_to_stay_ = false;
  ContextRef context_;
  Facts facts_;
  Ref<Memory> parent_;
  std::size_t origin_ = 0;
  std::atomic<std::uint32_t> parts_{0};  // of a root: objects that are made of it
  Tensor tensor_;
  bool has_tensor_ = false;
  bool counted_ = false;  // in Context::live
  const std::byte* begins_with_ = nullptr;
  std::shared_ptr<MapArea> initial_;  // keeps begins_with_
  Handle<cl_mem> native_;
  std::uint64_t native_made_ = 0;
  std::atomic<std::uint32_t> uses_{1};
  std::shared_ptr<MapArea> area_;  // of a root
  std::uint32_t areas_used_ = 0;   // mappings of a root and of its parts
  struct Destructor {
    void(CL_CALLBACK* callback)(cl_mem, void*);
    void* data;
  };
  std::mutex destructors_mutex_;
  std::vector<Destructor> destructors_;
};

/// Keeps the bytes of a memory object. Null objects are allowed.
class Use {
 public:
  Use() = default;
  /// If the program has released the object, its bytes are gone: gone().
  explicit Use(Memory* memory) : memory_(memory), kept_(memory != nullptr && memory->begin_use()) {
    if (memory_ != nullptr) memory_->hold();
  }
  Use(const Use& other) : Use(other.memory_) {}
  Use(Use&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)), kept_(other.kept_) {}
  Use& operator=(Use other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(kept_, other.kept_);
    return *this;
  }
  ~Use() {
    if (memory_ == nullptr) return;
    if (kept_) memory_->end_use();
    memory_->drop();
  }
  [[nodiscard]] Memory* get() const { return memory_; }
  Memory* operator->() const { return memory_; }
  Memory& operator*() const { return *memory_; }
  [[nodiscard]] bool gone() const { return memory_ != nullptr && !kept_; }

 private:
  Memory* memory_ = nullptr;
  bool kept_ = false;
};

/// The buffers of one command, each root once, and what the command does with them. With the lock.
class Bundle {
 public:
  struct Part {
    Memory* root;
    Access access;
  };

  /// Adds the bytes [offset, offset + size) of a memory object. A write of less than a whole buffer is an update.
  /// Objects that are no tensors need nothing. An object twice: what it does with both together.
  void add(Memory& memory, Access access);
  void add(Memory& memory, Access access, std::size_t offset, std::size_t size);
  [[nodiscard]] std::span<const Part> parts() const { return parts_; }
  [[nodiscard]] bool empty() const { return parts_.empty(); }

 private:
  std::vector<Part> parts_;
};

/// Lets the driver make an object with device memory, make(status), once the driver has destroyed what was released.
template <class Make>
[[nodiscard]] cl_mem allocate(cl_int* status, Make&& make) {
  cl_mem made = nullptr;
  const cl_int result = opencl::detail::ReleasedMemory::of_process().allocate([&] {
    cl_int created = CL_SUCCESS;
    made = make(&created);
    return created;
  });
  if (status != nullptr) *status = result;
  return made;
}

/// Counts bytes of the driver's object, which were reserved on each device, until the driver destroys the object.
void count_until_gone(cl_mem native, std::span<DeviceBudget* const> devices, Bytes size);

/// The driver's handle of an object within an operation that has it in its bundle; for parts of buffers, of the part.
[[nodiscard]] cl_mem native_of(Memory& memory, Running& operation);
/// When an allocation of the driver's was made, among all that one native kernel may name: the number of the moment,
/// then the offset in what was made at that moment.
using Made = std::pair<std::uint64_t, std::uint64_t>;

/// A buffer as the driver's allocation that it lies in, and the offset of its first byte there: for commands that take
/// offsets, and for those with which drivers cannot take parts of buffers.
struct InAllocation {
  cl_mem allocation = nullptr;
  std::size_t offset = 0;
  Made made{};
};
[[nodiscard]] InAllocation place_of(Memory& memory, Running& operation);
/// The same for what is not a tensor.
[[nodiscard]] InAllocation place_of_native(Memory& memory);

}  // namespace swapmm::opencl::layer
