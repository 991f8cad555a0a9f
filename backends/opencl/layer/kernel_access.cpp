// SPDX-License-Identifier: Apache-2.0
// What launches read and write.

#include <algorithm>

#include "facts/device.hpp"
#include "kernel.hpp"
#include "process/settings.hpp"

namespace swapmm::opencl::layer {
namespace {

using access::Bound;

bool is_read_only(const Kernel::Argument& argument) {
  return argument.where == Kernel::Argument::Where::constant ||
         (argument.memory && (argument.memory->facts().flags & CL_MEM_READ_ONLY) != 0);
}

Bound bound_of(const Kernel::Argument& argument) {
  using Set = Kernel::Argument::Set;
  Bound bound;
  if (argument.set == Set::value) {
    if (argument.svm) return bound;
    bound.kind = argument.null ? Bound::Kind::local : Bound::Kind::value;
    bound.bytes = argument.value;
    bound.size = argument.size;
  } else if (argument.set == Set::memory) {
    bound.read_only = is_read_only(argument);
    if (!argument.memory) {
      bound.kind = Bound::Kind::null;
      return bound;
    }
    Memory& memory = *argument.memory;
    Memory& root = memory.root();
    bound.kind = memory.is_buffer() && root.native() == nullptr ? Bound::Kind::buffer : Bound::Kind::other;
    bound.root = &root;
    bound.size = memory.facts().size;
    bound.is_root = &root == &memory;
  }
  return bound;
}

}  // namespace

// Whether the facts are there, or come now. `matters`: something would have to leave the device, so they are worth an
// analysis.
bool Kernel::know(bool matters) {
  if (known_ != nullptr) return true;
  if (!matters) return false;
  for (facts::Program* const source : sources_) {
    const facts::ProgramFacts* const all = source->facts();
    if (all == nullptr) continue;
    const auto found = all->find(name_);
    if (found == all->end() || found->second.arguments.size() != arguments_.size()) continue;
    known_ = &access::KnownKernel::of(source->digest(), name_, facts::device_facts(context_->device_id()).name,
                                      found->second);
    return true;
  }
  std::erase_if(sources_, [](const facts::Program* source) { return source->is_settled(); });
  return false;
}

access::Decision Kernel::accesses(const std::vector<Argument>& arguments, const access::Sizes& sizes) {
  const bool matters =
      settings().evict_always || context_->live.load(std::memory_order_relaxed) > context_->part().value;
  if (!know(matters)) {
    access::Decision decision;
    decision.accesses.reserve(arguments.size());
    for (const Argument& argument : arguments) {
      decision.accesses.push_back(is_read_only(argument) ? Access::read : Access::update);
    }
    return decision;
  }
  bound_.clear();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    bound_.push_back(bound_of(arguments[i]));
    bound_.back().decides_no_place = known_->facts().decides_no_place(i);
  }
  return known_->decide(bound_, sizes, settings().prove, matters && access::time_to_measure());
}

// Of the launch that accesses() was asked for last: it changes nothing but buffers whose bytes are tensors, for all
// that is known.
bool Kernel::reaches_buffers_only() const {
  return known_ != nullptr && !known_->facts().effects &&
         std::none_of(bound_.begin(), bound_.end(), [](const Bound& each) { return each.kind == Bound::Kind::other; });
}

// Within the operation that the launch is, before the launch.
cl_int Kernel::measure(const access::Decision& decision, const std::vector<Argument>& arguments, Running& operation,
                       const WaitList& waits, const access::LaunchOnce& launch) {
  std::vector<access::Changed> changed;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    if (argument.set != Argument::Set::memory || !argument.memory || decision.accesses[i] == Access::read) continue;
    const bool in_question = (decision.to_measure >> i & 1U) != 0;
    const bool also_read = known_->facts().use(i) == facts::ArgumentUse::both;
    const InAllocation place = place_of(*argument.memory, operation);
    changed.push_back({place.allocation, place.offset, argument.memory->facts().size, i, in_question, also_read});
  }
  const access::Measurement found =
      access::measure(operation.backend().queue(), waits.size(), waits.data(), changed, *host_memory(), launch);
  if (found.done) {
    known_->measured(decision.key, found.whole);
  } else {
    known_->not_measured(decision.key);
  }
  return found.status;
}

}  // namespace swapmm::opencl::layer
