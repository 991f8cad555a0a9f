// SPDX-License-Identifier: Apache-2.0
#include <swapmm/ir/calls/run.hpp>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace swapmm::calls {
namespace {

/// FNV-1a over numbers and texts.
class Token {
 public:
  void add(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte, value >>= 8U) add_byte(value & 0xFFU);
  }
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
  }
  void add(const std::vector<std::uint64_t>& values) {
    add(std::uint64_t{values.size()});
    for (const std::uint64_t value : values) add(value);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void add_byte(std::uint64_t byte) { value_ = (value_ ^ byte) * 1099511628211U; }
  std::uint64_t value_ = 14695981039346656037U;
};

std::uint64_t bytes_in(const Operand& operand) {
  if (!operand.box) return operand.bytes;
  std::uint64_t bytes = 1;
  for (const std::uint64_t length : operand.box->region) {
    if (length != 0 && bytes > operand.bytes / length) return operand.bytes;  // no real rectangle
    bytes *= length;
  }
  return bytes;
}

class Resolver {
 public:
  explicit Resolver(const CallLog& log) : log_(log) {}

  Result<Run> resolve() && {
    for (at_ = 0; at_ < log_.calls.size(); ++at_) {
      const Call& call = log_.calls[at_];
      if (call.status != 0) continue;
      if (const Check taken = take(call); !taken) {
        return Problem{"call " + std::to_string(call.sequence) + " (" + call.function + ") " + taken.problem().message};
      }
    }
    return std::move(run_);
  }

 private:
  /// A memory object: a range of a storage.
  struct Range {
    std::uint32_t storage = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint32_t references = 1;
  };

  Check take(const Call& call) {
    switch (call.kind) {
      case CallKind::create: return create(call);
      case CallKind::retain:
        if (const auto range = ranges_.find(call.object); range != ranges_.end()) ++range->second.references;
        return Done{};
      case CallKind::release: release(call.object); return Done{};
      default: return is_command(call.kind) ? command(call) : Check{Done{}};
    }
  }

  Check create(const Call& call) {
    switch (call.object_kind) {
      case ObjectKind::buffer:
      case ObjectKind::image:
      case ObjectKind::other: return create_storage(call);
      case ObjectKind::part: return create_part(call);
      case ObjectKind::program: programs_[call.object] = call.source_digest; return Done{};
      case ObjectKind::kernel: create_kernels(call); return Done{};
      default: return Done{};
    }
  }

  Check create_storage(const Call& call) {
    if (call.object == 0 || ranges_.count(call.object) != 0) return Problem{"makes an object that is there already"};
    const auto storage = static_cast<std::uint32_t>(run_.storages.size());
    run_.storages.push_back({call.object, call.object_kind, call.bytes, at_, std::nullopt});
    users_.push_back(1);
    ranges_[call.object] = {storage, 0, call.bytes, 1};
    if (!call.host) return Done{};
    RunOperation operation;
    operation.call = at_;
    operation.host_writes = true;
    operation.accesses.push_back({storage, Access::write, 0, call.bytes, true, std::nullopt});
    add(std::move(operation), call);
    return Done{};
  }

  Check create_part(const Call& call) {
    const auto parent = ranges_.find(call.parent);
    if (parent == ranges_.end()) return Problem{"makes a part of object " + std::to_string(call.parent)};
    const Range& above = parent->second;
    if (call.offset > above.bytes || call.bytes > above.bytes - call.offset)
      return Problem{"makes a part beyond its end"};
    if (ranges_.count(call.object) != 0) return Problem{"makes an object that is there already"};
    ++users_[above.storage];
    ranges_[call.object] = {above.storage, above.offset + call.offset, call.bytes, 1};
    return Done{};
  }

  // Names of kernels do not tell enough: programs that are made at run time have many of the same name.
  void create_kernels(const Call& call) {
    const auto model = kernels_.find(call.parent);
    const auto program = programs_.find(call.parent);
    const std::string from = model != kernels_.end()      ? model->second
                             : program != programs_.end() ? program->second
                                                          : std::string();
    if (call.object != 0) kernels_[call.object] = from;
    for (const Object kernel : call.objects) kernels_[kernel] = from;
  }

  void release(Object object) {
    const auto range = ranges_.find(object);
    if (range == ranges_.end() || --range->second.references != 0) return;
    const std::uint32_t storage = range->second.storage;
    ranges_.erase(range);
    if (--users_[storage] == 0) run_.storages[storage].released = at_;
  }

  Check command(const Call& call) {
    RunOperation operation;
    operation.call = at_;
    operation.host_reads = call.kind == CallKind::read || (call.kind == CallKind::map && call.host);
    operation.host_writes = call.kind == CallKind::write || (call.kind == CallKind::unmap && !call.operands.empty());
    for (const Operand& operand : call.operands) {
      const auto found = ranges_.find(operand.object);
      if (found == ranges_.end())
        return Problem{"names object " + std::to_string(operand.object) + ", which is no memory"};
      const Range& range = found->second;
      if (operand.offset > range.bytes || operand.bytes > range.bytes - operand.offset) {
        return Problem{"goes beyond the end of object " + std::to_string(operand.object)};
      }
      const bool whole = bytes_in(operand) == run_.storages[range.storage].bytes;
      operation.accesses.push_back(
          {range.storage, operand.access, range.offset + operand.offset, operand.bytes, whole, operand.argument});
    }
    add(std::move(operation), call);
    return Done{};
  }

  void add(RunOperation operation, const Call& call) {
    Token token;
    token.add(static_cast<std::uint64_t>(call.kind));
    token.add(call.function);
    token.add(call.name);
    if (const auto kernel = kernels_.find(call.object); kernel != kernels_.end()) token.add(kernel->second);
    token.add(call.offsets);
    token.add(call.global);
    token.add(call.local);
    for (std::size_t i = 0; i < operation.accesses.size(); ++i) {
      const StorageAccess& access = operation.accesses[i];
      std::size_t same = 0;  // which of the operands are one storage
      while (operation.accesses[same].storage != access.storage) ++same;
      token.add(std::uint64_t{same});
      token.add(run_.storages[access.storage].bytes);
      token.add(static_cast<std::uint64_t>(access.access));
      token.add(access.bytes);
    }
    operation.token = token.value();
    run_.operations.push_back(std::move(operation));
  }

  const CallLog& log_;
  std::size_t at_ = 0;
  Run run_;
  std::vector<std::uint32_t> users_;  // objects of each storage
  std::unordered_map<Object, Range> ranges_;
  std::unordered_map<Object, std::string> programs_;  // their digests
  std::unordered_map<Object, std::string> kernels_;   // the digests of their programs
};

}  // namespace

std::vector<StorageAccess> combined(const RunOperation& operation) {
  std::vector<StorageAccess> all;
  for (StorageAccess access : operation.accesses) {
    if (access.access == Access::write && !access.whole) access.access = Access::update;
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const StorageAccess& each) { return each.storage == access.storage; });
    if (same == all.end()) {
      all.push_back(access);
    } else if (same->access != access.access) {
      same->access = Access::update;  // it reads what it had before, and writes
    }
  }
  return all;
}

Result<Run> resolve(const CallLog& log) { return Resolver(log).resolve(); }

}  // namespace swapmm::calls
