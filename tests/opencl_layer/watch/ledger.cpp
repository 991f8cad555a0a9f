// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "memory.hpp"

namespace watch {

Ledger& ledger() {
  static auto& kept = *new Ledger;
  return kept;
}

void Ledger::set_cap(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  figures_.cap = bytes;
}

Figures Ledger::figures() {
  const std::lock_guard lock(mutex_);
  return figures_;
}

bool Ledger::take_locked(std::uint64_t bytes, bool pinned) {
  if (pinned) {
    figures_.pinned += bytes;
    return true;
  }
  if (figures_.cap != 0 && figures_.live + bytes > figures_.cap) {
    ++figures_.refused;
    tell_refusal(bytes);
    return false;
  }
  figures_.live += bytes;
  return true;
}

// On stderr: what is there that leaves no room. A driver may destroy what was released late.
void Ledger::tell_refusal(std::uint64_t bytes) const {
  if (figures_.refused > 3) return;
  std::fprintf(stderr, "watch: no room for %llu bytes beside", static_cast<unsigned long long>(bytes));
  for (const auto& [number, facts] : objects_) {
    if (facts.root != number || facts.pinned) continue;
    const auto parts = std::count_if(objects_.begin(), objects_.end(),
                                     [&, root = number](const auto& other) { return other.second.root == root; });
    std::fprintf(stderr, " %llu%s (%td parts)", static_cast<unsigned long long>(facts.bytes),
                 facts.is_image ? " (image)" : "", parts - 1);
  }
  std::fprintf(stderr, "\n");
}

// What the driver refuses was never there.
void Ledger::raise_peaks(std::uint64_t bytes) {
  figures_.peak = std::max(figures_.peak, figures_.live);
  figures_.pinned_peak = std::max(figures_.pinned_peak, figures_.pinned);
  figures_.largest_object = std::max(figures_.largest_object, bytes);
}

bool Ledger::take(std::uint64_t bytes, bool pinned) {
  const std::lock_guard lock(mutex_);
  return take_locked(bytes, pinned);
}

void Ledger::give_back(std::uint64_t bytes, bool pinned) {
  const std::lock_guard lock(mutex_);
  (pinned ? figures_.pinned : figures_.live) -= bytes;
}

std::uint64_t Ledger::made(cl_mem object, cl_mem parent, std::uint64_t bytes, bool pinned, bool is_image) {
  const std::lock_guard lock(mutex_);
  raise_peaks(bytes);
  const std::uint64_t number = ++last_number_;
  Object made{bytes, object, parent == nullptr ? number : root_of(parent), pinned, is_image};
  if (parent == nullptr) {
    if (is_image) fix(bytes);
  } else if (const auto root = objects_.find(made.root); is_image && root != objects_.end()) {
    if (root->second.images++ == 0) fix(root->second.bytes);
  }
  objects_[number] = made;
  numbers_[object] = number;
  return number;
}

std::uint64_t Ledger::number_of(cl_mem object) {
  const std::lock_guard lock(mutex_);
  return current(object);
}

void Ledger::fix(std::uint64_t bytes) {
  figures_.fixed += bytes;
  figures_.fixed_peak = std::max(figures_.fixed_peak, figures_.fixed);
}

void Ledger::destroyed(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(number);
  if (found == objects_.end()) return;
  const Object gone = found->second;
  objects_.erase(found);
  if (current(gone.handle) == number) numbers_.erase(gone.handle);
  if (gone.root == number) {
    (gone.pinned ? figures_.pinned : figures_.live) -= gone.bytes;
    if (gone.is_image || gone.images != 0) figures_.fixed -= gone.bytes;
  } else if (const auto root = objects_.find(gone.root); gone.is_image && root != objects_.end()) {
    if (--root->second.images == 0) figures_.fixed -= root->second.bytes;
  }
}

bool Ledger::made_svm(void* pointer, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!take_locked(bytes, false)) return false;
  raise_peaks(bytes);
  fix(bytes);
  svm_[pointer] = bytes;
  return true;
}

void Ledger::destroyed_svm(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = svm_.find(pointer);
  if (found == svm_.end()) return;
  figures_.live -= found->second;
  figures_.fixed -= found->second;
  svm_.erase(found);
}

bool Ledger::is_live(cl_mem object) {
  const std::lock_guard lock(mutex_);
  return current(object) != 0;
}

std::uint64_t Ledger::current(cl_mem object) const {
  const auto found = numbers_.find(object);
  return found == numbers_.end() ? 0 : found->second;
}

std::uint64_t Ledger::root_of(cl_mem object) const {
  const auto found = objects_.find(current(object));
  return found == objects_.end() ? 0 : found->second.root;
}

bool Ledger::used(const std::vector<cl_mem>& objects, bool by_kernel) {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> roots;
  for (cl_mem object : objects)
    if (const std::uint64_t root = root_of(object); objects_.count(root) != 0) roots.push_back(root);
  std::sort(roots.begin(), roots.end());
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  std::uint64_t set = 0;
  bool fits = true;
  for (const std::uint64_t root : roots) {
    Object& used = objects_[root];
    if (!used.is_image) set += used.bytes;
    // Whatever its flags say, a kernel reads device memory.
    if (by_kernel && used.pinned) {
      if (!take_locked(used.bytes, false)) {
        fits = false;
        continue;
      }
      figures_.pinned -= used.bytes;
      raise_peaks(used.bytes);
      used.pinned = false;
    }
  }
  figures_.largest_set = std::max(figures_.largest_set, set);
  figures_.largest_need = std::max(figures_.largest_need, set + figures_.fixed);
  return fits;
}

void Ledger::transferred(std::uint64_t read, std::uint64_t written) {
  const std::lock_guard lock(mutex_);
  figures_.read += read;
  figures_.written += written;
}

}  // namespace watch
