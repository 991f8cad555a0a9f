// SPDX-License-Identifier: Apache-2.0
#pragma once

// What self_test.py changes: of some changes planted_test.cpp notices, of others it cannot.

#include <algorithm>
#include <optional>
#include <vector>

namespace planted {

/// Has a sum, and no difference.
struct Sum {
  int value = 0;
  friend Sum operator+(Sum a, Sum b) { return {a.value + b.value}; }
};

constexpr int twice(int value) { return value + value; }
static_assert(twice(2) == 4);

template <class T>
class Counter {
 public:
  explicit Counter(T most) : most_(std::max(most, T{1})) {}

  void add(T value) {
    total_ += value;
    ++calls_;
  }
  [[nodiscard]] bool full() const { return total_ >= most_ && calls_ != 0; }
  /// At most `most`: the same whether > or >= stands there.
  [[nodiscard]] T shown() const {
    if (total_ > most_) return most_;
    return total_;
  }
  [[nodiscard]] int steps(int from) const {
    int steps = 0;
    while (from > 0) {
      --from;
      steps++;
    }
    return steps;
  }
  [[nodiscard]] int lengths(const std::vector<std::optional<int>>& all) const {
    int sum = 0;
    for (const auto& one : all) {
      if (const auto length = one; length && (*length > 2 || *length < 0)) sum += *length;
      if (const int* const found = one ? &*one : nullptr) sum += *found;
    }
    return sum;
  }
  void forget() { total_ = T{}; }  // nobody calls it

 private:
  T most_;
  T total_{};
  int calls_ = 0;
};

inline Sum both(Sum a, Sum b) { return a + b; }

}  // namespace planted
