// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

namespace swapmm::replicas {

/// Elements below which a thread more costs longer than it saves.
inline constexpr std::size_t elements_per_thread = std::size_t{1} << 16U;

/// sum += part, element by element.
template <class T>
void add(std::span<T> sum, std::span<const T> part) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<T>(sum[i] + part[i]);
}

/// Calls work(first, count) for ranges that together are all `elements`: in this thread, and in up to `threads` - 1
/// others, which have ended when it returns. `work` must not throw.
template <class Work>
void in_ranges(std::size_t elements, std::size_t threads, const Work& work) {
  const std::size_t most = std::max<std::size_t>(1, elements / elements_per_thread);
  const std::size_t ranges = std::clamp<std::size_t>(threads, 1, most);
  const auto begin = [&](std::size_t range) { return elements / ranges * range + std::min(range, elements % ranges); };
  std::vector<std::jthread> others;
  others.reserve(ranges - 1);
  for (std::size_t range = 1; range < ranges; ++range) {
    others.emplace_back([&work, &begin, range] { work(begin(range), begin(range + 1) - begin(range)); });
  }
  work(begin(0), begin(1) - begin(0));
}

/// Adds all parts to the first one, in their order: ((part 0 + part 1) + part 2) + ... All have the same size. The bits
/// do not depend on the number of threads.
template <class T>
void add_in_order(std::span<const std::span<T>> parts, std::size_t threads) {
  if (parts.size() < 2) return;
  in_ranges(parts[0].size(), threads, [&](std::size_t first, std::size_t count) {
    for (std::size_t part = 1; part < parts.size(); ++part) {
      add<T>(parts[0].subspan(first, count), parts[part].subspan(first, count));
    }
  });
}

}  // namespace swapmm::replicas
