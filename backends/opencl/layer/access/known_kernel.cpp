// SPDX-License-Identifier: Apache-2.0
#include "known_kernel.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "../cache/folder.hpp"
#include "../facts/digest.hpp"

namespace swapmm::opencl::layer::access {
namespace {

using facts::ArgumentUse;
using Kind = Bound::Kind;

constexpr std::size_t most_arguments = 64;  // bits of a mask
constexpr std::size_t most_launches = 4096;
constexpr std::uint8_t most_failures = 3;

struct Kernels {
  std::mutex mutex;
  std::unordered_map<std::string, KnownKernel*> all;
};

Kernels& kernels() {
  static Kernels& all = *new Kernels;
  return all;
}

std::uint64_t bit(std::size_t argument) { return std::uint64_t{1} << argument; }

bool may_write(ArgumentUse use) {
  return use != ArgumentUse::no_buffer && use != ArgumentUse::nothing && use != ArgumentUse::read;
}

// Two arguments that share a buffer: what is known of each does not hold for its bytes.
bool shares_root(std::span<const Bound> arguments, std::size_t one) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i != one && arguments[i].kind == Kind::buffer && arguments[i].root == arguments[one].root) return true;
  }
  return false;
}

}  // namespace

KnownKernel& KnownKernel::of(const std::string& program_digest, const std::string& name, const std::string& device,
                             const facts::KernelFacts& facts) {
  std::string file = "launches-" + facts::digest_of(program_digest + "\n" + name + "\n" + device);
  const std::lock_guard lock(kernels().mutex);
  KnownKernel*& kernel = kernels().all[file];
  if (kernel == nullptr) kernel = new KnownKernel(std::move(file), facts);
  return *kernel;
}

KnownKernel::KnownKernel(std::string file, facts::KernelFacts facts)
    : file_(std::move(file)), facts_(std::move(facts)) {
  read_cache();
}

Decision KnownKernel::decide(std::span<const Bound> arguments, const Sizes& sizes, bool prove, bool may_measure) {
  Decision decision;
  decision.accesses.reserve(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool only_read = arguments[i].read_only || !may_write(facts_.use(i));
    // What the facts know no buffer of may still be one: of an image, say.
    const bool is_known = facts_.use(i) != ArgumentUse::no_buffer;
    decision.accesses.push_back(only_read && (is_known || arguments[i].read_only) ? Access::read : Access::update);
  }
  const std::uint64_t wanted = prove ? candidates(arguments, sizes) : 0;
  if (wanted == 0) return decision;
  decision.key = key_of(arguments, sizes);
  const std::lock_guard lock(mutex_);
  const auto known = launches_.find(decision.key);
  if (known == launches_.end()) {
    if (may_measure && launches_.size() < most_launches) launches_.emplace(decision.key, Known{});
    return decision;
  }
  const std::uint64_t whole = known->second.whole & wanted;
  for (std::size_t i = 0; whole != 0 && i < arguments.size(); ++i) {
    if ((whole & bit(i)) != 0) decision.accesses[i] = Access::write;
  }
  const bool worth_it = may_measure && !known->second.measured && known->second.failures < most_failures;
  if (worth_it && measurable(arguments)) decision.to_measure = wanted;
  return decision;
}

// The arguments that such a launch may overwrite whole, as far as the facts tell.
std::uint64_t KnownKernel::candidates(std::span<const Bound> arguments, const Sizes& sizes) const {
  if (facts_.effects || arguments.size() > most_arguments) return 0;
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentUse use = facts_.use(i);
    const bool fixed =
        use == ArgumentUse::written_at_fixed || (use == ArgumentUse::written_at_fixed_local && sizes.local != nullptr);
    const Bound& argument = arguments[i];
    if (!fixed || argument.kind != Kind::buffer || !argument.is_root || argument.read_only) continue;
    if (!shares_root(arguments, i)) found |= bit(i);
  }
  return found;
}

// Whether everything that the launch may change can be put back.
bool KnownKernel::measurable(std::span<const Bound> arguments) const {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].kind == Kind::other) return false;
    if (arguments[i].kind == Kind::buffer && facts_.use(i) == ArgumentUse::no_buffer) return false;
    if (arguments[i].kind != Kind::buffer || !may_write(facts_.use(i))) continue;
    if (arguments[i].read_only || shares_root(arguments, i)) return false;
  }
  return true;
}

void KnownKernel::measured(const Key& key, std::uint64_t whole) {
  const std::lock_guard lock(mutex_);
  launches_[key] = {true, 0, whole};
  write_cache();
}

void KnownKernel::not_measured(const Key& key) {
  const std::lock_guard lock(mutex_);
  ++launches_[key].failures;
}

// ---- the cache: a line "first second whole" for each launch that was measured, in hexadecimal digits

void KnownKernel::read_cache() {
  const std::optional<std::string> text = kernel_cache().text(file_);
  if (!text) return;
  std::istringstream in(*text);
  in >> std::hex;
  Key key;
  std::uint64_t whole = 0;
  while (launches_.size() < most_launches && in >> key.first >> key.second >> whole) launches_[key] = {true, 0, whole};
}

void KnownKernel::write_cache() {
  if (const std::optional<std::string> text = kernel_cache().text(file_)) {  // another process may know more
    std::istringstream in(*text);
    in >> std::hex;
    Key key;
    std::uint64_t whole = 0;
    while (launches_.size() < most_launches && in >> key.first >> key.second >> whole) {
      launches_.try_emplace(key, Known{true, 0, whole});
    }
  }
  std::ostringstream out;
  out << std::hex;
  for (const auto& [key, known] : launches_) {
    if (known.measured) out << key.first << ' ' << key.second << ' ' << known.whole << '\n';
  }
  kernel_cache().keep(file_, out.str());
}

}  // namespace swapmm::opencl::layer::access
