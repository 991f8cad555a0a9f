// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <swapmm/ir/calls/call.hpp>

#include "../loader/table.hpp"
#include "log_file.hpp"
#include "pending.hpp"

namespace swapmm::opencl::layer::record {

/// The layer's own functions, as they were installed. The wrappers of this folder call them.
extern cl_icd_dispatch next;

/// What the log knows of a memory object.
struct KnownMemory {
  cl_mem_flags flags = 0;
  std::uint64_t bytes = 0;
  calls::Object root = 0;    ///< of a part: its buffer; else itself
  std::uint64_t offset = 0;  ///< in the root
};

/// What the log knows of a kernel.
struct KnownKernel {
  struct Argument {
    cl_kernel_arg_address_qualifier where = 0;  ///< 0: not known
    calls::Object memory = 0;                   ///< that is set
  };
  std::string name;
  std::vector<Argument> arguments;
};

/// A map that has not ended.
struct KnownMap {
  calls::Operand operand;
  cl_map_flags flags = 0;
};

/// The state of the log of this process: numbers of calls and objects. Its functions may be called by any thread.
class Recorder {
 public:
  Recorder(std::string path, bool keeps_content);

  [[nodiscard]] bool is_on() const { return file_.is_on(); }
  [[nodiscard]] bool keeps_content() const { return keeps_content_; }
  [[nodiscard]] std::uint64_t begin_call() { return next_call_.fetch_add(1, std::memory_order_acq_rel); }
  [[nodiscard]] std::uint64_t calls_begun() const { return next_call_.load(std::memory_order_acquire); }
  [[nodiscard]] std::chrono::nanoseconds now() const { return std::chrono::steady_clock::now() - start_; }

  void write(const calls::Call& call);
  void write(std::string_view records) { file_.append(records); }
  /// What was collected goes to the file.
  void flush() { file_.flush(); }
  void end();
  void abandon() { file_.abandon(); }
  void fail(const std::string& why) { file_.fail(why); }
  Pending& pending() { return pending_; }

  // ---- objects

  /// A new object, with one reference.
  [[nodiscard]] calls::Object add(const void* handle, calls::ObjectKind kind);
  /// The object of a handle; 0 if it is null or not known.
  [[nodiscard]] calls::Object find(const void* handle);
  [[nodiscard]] calls::ObjectKind kind_of(const void* handle);
  void retained(const void* handle);
  /// To be called before the reference is taken away: the address may belong to another object right after that.
  void releasing(const void* handle);

  void add_memory(calls::Object object, const KnownMemory& memory);
  [[nodiscard]] KnownMemory memory(calls::Object object);
  void add_kernel(calls::Object object, KnownKernel kernel);
  [[nodiscard]] KnownKernel kernel(calls::Object object);
  void set_argument(calls::Object kernel, cl_uint index, calls::Object memory);

  void add_map(const void* address, const KnownMap& map);
  /// Takes the first map with this address and object out.
  [[nodiscard]] std::optional<KnownMap> take_map(const void* address, calls::Object object);

 private:
  struct Known {
    calls::Object object = 0;
    calls::ObjectKind kind = calls::ObjectKind::none;
    std::uint32_t references = 1;
  };

  bool keeps_content_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> next_call_{0};
  LogFile file_;
  Pending pending_{*this};

  std::mutex mutex_;
  calls::Object last_object_ = 0;
  std::unordered_map<const void*, Known> objects_;
  std::unordered_map<calls::Object, KnownMemory> memories_;
  std::unordered_map<calls::Object, KnownKernel> kernels_;
  std::multimap<const void*, KnownMap> maps_;
};

/// The recorder of this process. Valid once install() has begun a log.
[[nodiscard]] Recorder& recorder();

/// The number of the calling thread.
[[nodiscard]] std::uint32_t thread_number();

}  // namespace swapmm::opencl::layer::record
