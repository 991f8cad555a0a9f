// SPDX-License-Identifier: Apache-2.0
#include <swapmm/pages/fault_table.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/pages/page_access.hpp>

#if defined(__linux__)
#include <signal.h>  // NOLINT(modernize-deprecated-headers): more than C++ has
#include <ucontext.h>
#include <unistd.h>
#endif

namespace swapmm::pages {

struct WatchedArea::Entry {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  Area* area = nullptr;
  FaultTarget* target = nullptr;
  FaultService* service = nullptr;
  int process = 0;
  std::array<char, 64> name{};
};

namespace {

using Entry = WatchedArea::Entry;

// The handler looks here without a lock. A slot is null, or an entry that does not change.
constexpr std::size_t most_areas = 1024;
std::array<std::atomic<Entry*>, most_areas> table{};
std::atomic<std::size_t> table_end{0};  // no entry at or after it
std::mutex table_changes;

// Threads that look now. An entry that was taken out is deleted when nobody looks any more.
std::atomic<std::size_t> lookers{0};

template <class Visit>
void for_each_entry(Visit&& visit) {
  lookers.fetch_add(1);
  const std::size_t end = table_end.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < end; ++i) {
    if (Entry* const entry = table[i].load()) visit(*entry);
  }
  lookers.fetch_sub(1);
}

Entry* entry_of(std::uintptr_t address) noexcept {
  Entry* found = nullptr;
  for_each_entry([&](Entry& entry) {
    if (address >= entry.begin && address < entry.end) found = &entry;
  });
  return found;
}

// A thread inside one manager could wait for a thread inside another one that waits for the first.
bool is_inside_a_manager() noexcept {
  bool inside = false;
  for_each_entry([&](const Entry& entry) { inside = inside || entry.target->is_held_by_caller(); });
  return inside;
}

std::uintptr_t number(const void* address) noexcept { return reinterpret_cast<std::uintptr_t>(address); }
std::size_t offset_in(const Entry& entry, std::uintptr_t address) noexcept {
  return static_cast<std::size_t>(address - number(entry.area->bytes().data()));
}

#if defined(__linux__)

// Handlers that the library's was installed over, the first one first. An entry does not change once it is counted.
// There is more than one if the program installed another handler later, and then opened a view.
constexpr std::size_t most_handlers = 8;
std::array<struct sigaction, most_handlers> handlers_before{};
std::atomic<std::size_t> handler_count{0};

// write() and nothing else: the program may hold the locks of its streams.
void say(std::initializer_list<const char*> parts) noexcept {
  for (const char* const part : parts) {
    const ssize_t written = ::write(STDERR_FILENO, part, std::strlen(part));
    static_cast<void>(written);
  }
}
void say_of(const Entry& entry, const char* text) noexcept {
  say({"swapmm: host view of tensor \"", entry.name.data(), "\": ", text, "\n"});
}

Want want_of([[maybe_unused]] const void* context) noexcept {
#if defined(__x86_64__)
  constexpr greg_t write_bit = 2;
  const auto* const machine = static_cast<const ucontext_t*>(context);
  return (machine->uc_mcontext.gregs[REG_ERR] & write_bit) != 0 ? Want::write : Want::read;
#else
  return Want::unknown;
#endif
}

// The child has its own copy of the memory, and neither the device nor the service.
bool serve_in_child(const Entry& entry, std::size_t offset) noexcept {
  const std::size_t block = entry.area->at(offset);
  switch (entry.area->state(block)) {
    case BlockState::modified: return true;
    case BlockState::clean: return entry.area->open(block);
    case BlockState::absent: break;
  }
  say_of(entry, "touched in a child of fork(), which cannot use the device: call prepare_read() before fork()");
  return false;
}

bool serve(const Entry& entry, std::uintptr_t address, Want want) noexcept {
  const std::size_t offset = offset_in(entry, address);
  if (process_number() != entry.process) return serve_in_child(entry, offset);
  if (is_inside_a_manager()) {
    say_of(entry,
           "touched by a thread inside a manager, for example in an operation's callable: it would wait for itself. "
           "Call prepare_read() or prepare_write() before");
    return false;
  }
  FaultRequest request;
  request.target = entry.target;
  request.offset = offset;
  request.want = want;
  entry.service->wait_for(request);
  if (request.was_served()) return true;
  say_of(entry, request.error.data());
  return false;
}

// A fault that this thread passes on. A handler that was installed over the library's may pass it back; the same fault
// then comes again, further down the stack.
struct PassedOn {
  const siginfo_t* info = nullptr;
  const void* frame = nullptr;
  std::size_t depth = 0;
};
thread_local PassedOn passed_on;

// The handler that comes next for this fault; null: the default one.
const struct sigaction* next_handler(const siginfo_t* info, const void* frame) noexcept {
  const bool comes_again = passed_on.info == info && number(frame) < number(passed_on.frame);
  passed_on = {info, frame, comes_again ? passed_on.depth + 1 : 0};
  const std::size_t count = handler_count.load(std::memory_order_acquire);
  return passed_on.depth < count ? &handlers_before[count - 1 - passed_on.depth] : nullptr;
}

void pass_on(int signal, siginfo_t* info, void* context) noexcept {
  // Not the address of a variable: AddressSanitizer may keep variables elsewhere than on the stack.
  const struct sigaction* const next = next_handler(info, __builtin_frame_address(0));
  if (next != nullptr && (next->sa_flags & SA_SIGINFO) != 0) return next->sa_sigaction(signal, info, context);
  if (next != nullptr && next->sa_handler != SIG_DFL && next->sa_handler != SIG_IGN) return next->sa_handler(signal);
  // The default one ends the program when the access is repeated.
  ::signal(signal, SIG_DFL);
  if (info->si_code <= 0) ::raise(signal);  // sent by kill(): there is no access to repeat
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const std::uintptr_t address = number(info->si_addr);
  const Entry* const entry = info->si_code == SEGV_ACCERR ? entry_of(address) : nullptr;
  if (entry == nullptr || !serve(*entry, address, want_of(context))) pass_on(signal, info, context);
  errno = error;
}

bool are_alike(const struct sigaction& a, const struct sigaction& b) {
  const bool with_info = (a.sa_flags & SA_SIGINFO) != 0;
  if (with_info != ((b.sa_flags & SA_SIGINFO) != 0)) return false;
  return with_info ? a.sa_sigaction == b.sa_sigaction : a.sa_handler == b.sa_handler;
}

// Makes the library's handler the current one, over the one that is there. Returns why that is impossible, or nothing.
std::string install() {
  struct sigaction ours {};
  ours.sa_sigaction = &on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  struct sigaction current {};
  if (::sigaction(SIGSEGV, nullptr, &current) != 0) return "the handler of SIGSEGV cannot be asked for";
  if (are_alike(current, ours)) return {};
  const std::size_t count = handler_count.load(std::memory_order_relaxed);
  if (count == 0 || !are_alike(current, handlers_before[count - 1])) {
    if (count == most_handlers) return "the program has installed other handlers of SIGSEGV too often";
    handlers_before[count] = current;
    handler_count.store(count + 1, std::memory_order_release);
  }
  return ::sigaction(SIGSEGV, &ours, nullptr) == 0 ? "" : "a handler of SIGSEGV cannot be installed";
}

#else

std::string install() { return {}; }

#endif

void require_other_memory(const Entry& other, std::uintptr_t begin, std::uintptr_t end) {
  if (begin >= other.end || other.begin >= end) return;
  throw UsageError("a host view of tensor \"" + std::string(other.name.data()) + "\" has the same memory");
}

std::atomic<Entry*>& free_slot(const Entry& added) {
  std::atomic<Entry*>* free = nullptr;
  for (std::size_t i = most_areas; i-- > 0;) {
    const Entry* const other = table[i].load(std::memory_order_relaxed);
    if (other == nullptr) {
      free = &table[i];
    } else {
      require_other_memory(*other, added.begin, added.end);
    }
  }
  if (free == nullptr) throw UsageError("there are " + std::to_string(most_areas) + " lazy host views already");
  return *free;
}

}  // namespace

WatchedArea::WatchedArea(Area& area, FaultTarget& target, FaultService& service, std::string_view name)
    : entry_(std::make_unique<Entry>()) {
  const Area::Block part = area.protected_part();
  entry_->begin = number(area.bytes().data()) + part.begin;
  entry_->end = number(area.bytes().data()) + part.end;
  entry_->area = &area;
  entry_->target = &target;
  entry_->service = &service;
  entry_->process = process_number();
  std::memcpy(entry_->name.data(), name.data(), std::min(name.size(), entry_->name.size() - 1));
  const std::lock_guard lock(table_changes);
  std::atomic<Entry*>& slot = free_slot(*entry_);
  slot.store(entry_.get(), std::memory_order_release);
  const auto end = static_cast<std::size_t>(&slot - table.data()) + 1;
  table_end.store(std::max(table_end.load(std::memory_order_relaxed), end), std::memory_order_release);
}

WatchedArea::~WatchedArea() {
  // In a child of fork() there is one thread, and another one may have held the lock.
  std::unique_lock lock(table_changes, std::defer_lock);
  if (!in_child()) lock.lock();
  for (std::atomic<Entry*>& slot : table) {
    if (slot.load(std::memory_order_relaxed) == entry_.get()) slot.store(nullptr);
  }
  while (!in_child() && lookers.load() != 0) std::this_thread::yield();
}

bool WatchedArea::in_child() const noexcept { return process_number() != entry_->process; }

std::string install_handler() {
  const std::lock_guard lock(table_changes);
  return install();
}

bool is_watched(std::span<const std::byte> memory) noexcept {
  const std::uintptr_t begin = number(memory.data());
  bool watched = false;
  for_each_entry(
      [&](const Entry& entry) { watched = watched || (begin < entry.end && entry.begin < begin + memory.size()); });
  return watched;
}

void require_unwatched(std::span<const std::byte> memory) {
  const std::lock_guard lock(table_changes);
  const std::uintptr_t begin = number(memory.data());
  for (const std::atomic<Entry*>& slot : table) {
    const Entry* const other = slot.load(std::memory_order_relaxed);
    if (other != nullptr) require_other_memory(*other, begin, begin + memory.size());
  }
}

void make_usable(std::span<const std::byte> memory, Want want) {
  const std::uintptr_t begin = number(memory.data());
  const std::uintptr_t end = begin + memory.size();
  std::vector<const Entry*> touched;  // their views exist as long as this call
  for_each_entry([&](const Entry& entry) {
    if (begin < entry.end && entry.begin < end) touched.push_back(&entry);
  });
  if (touched.empty() || is_inside_a_manager()) return;  // who is inside is refused by the call that this is for
  for (const Entry* const entry : touched) {
    const std::size_t last = offset_in(*entry, std::min(end, entry->end) - 1);
    const std::size_t end_block = entry->area->at(last) + 1;
    for (std::size_t i = entry->area->at(offset_in(*entry, std::max(begin, entry->begin))); i < end_block; ++i) {
      FaultRequest request;
      request.target = entry->target;
      request.offset = entry->area->block(i).begin;
      request.want = want;
      entry->service->wait_for(request);
      if (request.was_served()) continue;
      throw UsageError("host view of tensor \"" + std::string(entry->name.data()) + "\": " + request.error.data());
    }
  }
}

}  // namespace swapmm::pages
