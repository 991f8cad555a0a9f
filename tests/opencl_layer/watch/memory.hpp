// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bytes that a program really takes of a device, and what its commands use of them.

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "opencl.hpp"

namespace watch {

/// All in bytes.
struct Figures {
  std::uint64_t cap = 0;  ///< Device memory that may be taken; 0: any.
  std::uint64_t live = 0, peak = 0;
  std::uint64_t pinned = 0, pinned_peak = 0;  ///< Buffers in host memory that no kernel has used yet.
  std::uint64_t fixed = 0, fixed_peak = 0;    ///< Images, the buffers below them, and SVM.
  std::uint64_t largest_set = 0;              ///< The most that the buffers of one command had.
  std::uint64_t largest_need = 0;             ///< The same with all that is fixed at that time.
  std::uint64_t largest_object = 0;
  std::uint64_t read = 0, written = 0;  ///< By commands between host memory and a buffer.
  std::uint64_t refused = 0;            ///< Allocations and launches beyond the cap, not bytes.
};

/// Every real object of memory, until the driver destroys it. Safe to use from several threads; no function calls the
/// driver.
class Ledger {
 public:
  void set_cap(std::uint64_t bytes);
  Figures figures();

  /// Takes the bytes before the object is made; false if the cap refuses them.
  bool take(std::uint64_t bytes, bool pinned);
  void give_back(std::uint64_t bytes, bool pinned);

  /// An object was made whose bytes are taken already. `parent`: the buffer that it is a part of, or null. Its number
  /// is never used again; a driver may use its handle again before it has told that it destroyed the first object.
  std::uint64_t made(cl_mem object, cl_mem parent, std::uint64_t bytes, bool pinned, bool is_image);
  /// The number of the object that has the handle; 0 for none.
  std::uint64_t number_of(cl_mem object);
  /// The driver has destroyed the object of that number; it may tell twice.
  void destroyed(std::uint64_t number);

  bool made_svm(void* pointer, std::uint64_t bytes);
  void destroyed_svm(void* pointer);

  bool is_live(cl_mem object);
  /// A command uses these objects together; those that are not live are ignored. False if a kernel's use brings pinned
  /// buffers to the device beyond the cap.
  bool used(const std::vector<cl_mem>& objects, bool by_kernel);
  void transferred(std::uint64_t read, std::uint64_t written);

 private:
  struct Object {
    std::uint64_t bytes = 0;
    cl_mem handle = nullptr;
    std::uint64_t root = 0;  // its number; 0: not known
    bool pinned = false, is_image = false;
    unsigned images = 0;  // made of this buffer
  };
  bool take_locked(std::uint64_t bytes, bool pinned);
  void tell_refusal(std::uint64_t bytes) const;
  void raise_peaks(std::uint64_t bytes);
  void fix(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t current(cl_mem object) const;
  [[nodiscard]] std::uint64_t root_of(cl_mem object) const;

  std::mutex mutex_;
  Figures figures_;
  std::uint64_t last_number_ = 0;
  std::unordered_map<std::uint64_t, Object> objects_;
  std::unordered_map<cl_mem, std::uint64_t> numbers_;
  std::unordered_map<void*, std::uint64_t> svm_;
};

/// Never destroyed: programs release objects after their static objects are gone.
Ledger& ledger();

/// Copies `below`, and puts functions into the copy that keep the ledger. `below` must live as long as the process.
void keep_ledger(cl_icd_dispatch& table, const cl_icd_dispatch& below);

}  // namespace watch
