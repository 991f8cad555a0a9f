// SPDX-License-Identifier: Apache-2.0
// A view or a bundle may outlive its tensor. Using it then is an error, and never an access to the tensor that took
// over the storage.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using SimulatedTensor = Tensor<int, Simulated>;
using SimulatedView = View<int, Simulated>;

struct OutlivedDesk {
  Simulated device;
  std::optional<MemoryManager<Simulated>> manager{std::in_place, device, Options{.device_budget = 256_bytes}};
  ~OutlivedDesk() {
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }
  SimulatedTensor tensor(std::string_view name, int value) {
    auto made = manager->tensor<int>({length}, name);
    made.upload(std::vector<int>(length, value));
    return made;
  }
};

/// Every way of the host to use a view; each must throw a UsageError whose text has all of `words`.
void check_refused(SimulatedView view, std::initializer_list<std::string_view> words) {
  std::vector<int> values(view.size(), 9);
  CHECK(says(text_of<UsageError>([&] { view.upload(values); }), words));
  CHECK(says(text_of<UsageError>([&] { view.download(std::span<int>(values)); }), words));
  CHECK(says(text_of<UsageError>([&] { (void)view.download(); }), words));
  CHECK(says(text_of<UsageError>([&] { (void)view.download_async(std::span<int>(values)); }), words));
  CHECK(says(text_of<UsageError>([&] { view.slice(0, 1).upload(std::span<const int>(values).first(1)); }), words));
  CHECK(says(text_of<UsageError>([&] { (void)view.reshape({2, length / 2}).download(); }), words));
  // The wrong number of elements is told of a tensor that exists.
  CHECK(says(text_of<UsageError>([&] { view.upload(std::span<const int>(values).first(3)); }), words));
}

}  // namespace

TEST_CASE("a view of a destroyed tensor is refused, and names that tensor") {
  OutlivedDesk desk;
  std::optional<SimulatedTensor> a = desk.tensor("a", 1);
  const SimulatedView view = a->view();
  a.reset();
  check_refused(view, {"view of a tensor that no longer exists", "\"a\""});
  CHECK(says(text_of<UsageError>([&] { increase(*desk.manager, view, 1, "late"); }),
             {"operation \"late\"", "tensor 0", "no longer exists", "\"a\""}));
}

TEST_CASE("a view of a destroyed tensor does not reach the tensor that took over its storage") {
  OutlivedDesk desk;
  std::optional<SimulatedTensor> a = desk.tensor("a", 1);
  SimulatedView view = a->view();
  a.reset();
  auto b = desk.tensor("b", 2);
  check_refused(view, {"view of a tensor that no longer exists"});
  const std::string text = text_of<UsageError>([&] { view.upload(std::vector<int>(length, 9)); });
  CHECK(text.find("\"b\"") == std::string::npos);
  CHECK_THROWS_AS(increase(*desk.manager, view, 1), UsageError);
  CHECK_THROWS_AS(set(*desk.manager, view.slice(0, 4), 1), UsageError);
  CHECK_THROWS_AS(add(*desk.manager, view, b, 1), UsageError);
  CHECK(b.download() == std::vector<int>(length, 2));
  increase(*desk.manager, b, 1);  // nothing is left of what was refused
  CHECK(b.download() == std::vector<int>(length, 3));
}

TEST_CASE("an operation's callable gets no address for a view whose storage another tensor of the bundle has") {
  OutlivedDesk desk;
  std::optional<SimulatedTensor> a = desk.tensor("a", 1);
  const SimulatedView whole = a->view();
  const SimulatedView part = a->slice(0, 4);
  a.reset();
  auto b = desk.tensor("b", 2);
  desk.manager->run("late", updates(b), [&](auto& op) {
    CHECK(says(text_of<UsageError>([&] { (void)op[whole]; }), {"\"late\"", "view of a tensor that no longer exists"}));
    CHECK(says(text_of<UsageError>([&] { (void)op[part]; }), {"\"late\"", "view of a tensor that no longer exists"}));
    (void)op[b];
  });
}

TEST_CASE("a tensor destroyed within an operation is in the bundle until the operation ends, and gone then") {
  OutlivedDesk desk;
  std::optional<SimulatedTensor> a = desk.tensor("a", 1);
  const SimulatedView view = a->view();
  desk.manager->run("last", updates(view), [&](auto& op) {
    a.reset();
    const auto to = op[view];
    op.queue().launch("last", operation_time, {Touch::read(to), Touch::write(to)}, [to] { to[0] += 1; });
  });
  check_refused(view, {"view of a tensor that no longer exists"});
  auto b = desk.tensor("b", 2);
  check_refused(view, {"view of a tensor that no longer exists"});
  CHECK(b.download() == std::vector<int>(length, 2));
}

TEST_CASE("a bundle does not reach the tensor that took over the storage of one of its tensors") {
  OutlivedDesk desk;
  std::optional<SimulatedTensor> a = desk.tensor("a", 1);
  Bundle<Simulated> bundle;
  bundle.updates(*a);
  bool called = false;
  const auto run = [&] { desk.manager->run("late", bundle, [&](auto&) { called = true; }); };
  a.reset();
  CHECK(says(text_of<UsageError>(run), {"operation \"late\"", "tensor 0", "no longer exists", "\"a\""}));
  auto b = desk.tensor("b", 2);
  CHECK(says(text_of<UsageError>(run), {"operation \"late\"", "tensor 0", "no longer exists"}));
  CHECK(!called);
  CHECK(b.download() == std::vector<int>(length, 2));
}

TEST_CASE("the error for a tensor that is gone has its id, and its name while its storage has no other tensor") {
  OutlivedDesk desk;
  auto other = desk.tensor("other", 0);
  std::optional<SimulatedTensor> a = desk.tensor("a", 1);
  const std::uint64_t id = a->id();
  const SimulatedView view = a->view();
  Bundle<Simulated> bundle;
  bundle.updates(*a);
  a.reset();
  const auto check = [&](const TensorName& tensor) {
    const auto of_host = thrown<UsageError>([&] { (void)view.download(); });
    REQUIRE(of_host);
    CHECK(of_host->operation().empty());
    CHECK(of_host->tensors() == std::vector<TensorName>{tensor});
    CHECK(of_host->lost().empty());
    const auto of_operation = thrown<UsageError>([&] { desk.manager->run("late", bundle, [](auto&) {}); });
    REQUIRE(of_operation);
    CHECK(of_operation->operation() == "late");
    CHECK(of_operation->tensors() == std::vector<TensorName>{tensor});
    desk.manager->run("inside", reads(other), [&](auto& op) {
      const auto of_callable = thrown<UsageError>([&] { (void)op[view]; });
      REQUIRE(of_callable);
      CHECK(of_callable->operation() == "inside");
      CHECK(of_callable->tensors() == std::vector<TensorName>{tensor});
    });
  };
  check({id, "a", Bytes{length * sizeof(int)}});
  auto b = desk.tensor("b", 2);
  check({.id = id});
}

TEST_CASE("views of a tensor that was moved stay good, and end with the tensor that it was moved to") {
  OutlivedDesk desk;
  std::optional<SimulatedTensor> a = desk.tensor("a", 1);
  SimulatedView view = a->view();
  Bundle<Simulated> bundle;
  bundle.updates(*a);
  std::optional<SimulatedTensor> moved(std::move(*a));
  a.reset();
  view.upload(std::vector<int>(length, 5));
  increase(*desk.manager, view, 1);
  desk.manager->run("bundle", bundle, [](auto&) {});
  CHECK(view.download() == std::vector<int>(length, 6));
  CHECK(moved->download() == std::vector<int>(length, 6));
  auto b = desk.tensor("b", 2);
  *moved = std::move(b);  // ends the storage that it had
  check_refused(view, {"view of a tensor that no longer exists", "\"a\""});
  CHECK(moved->view().download() == std::vector<int>(length, 2));
}

TEST_CASE("a view of a tensor that a followed plan makes in every round ends with the tensor of its round") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes},
                                   Scheduler({.planner = "belady", .planning = Planning::immediate}));
  std::vector<SimulatedTensor> weights;
  for (int i = 0; i < 4; ++i) {
    weights.push_back(manager.tensor<int>({length}, "weights"));
    set(manager, weights.back(), i);
  }
  std::optional<SimulatedView> before;
  for (int round = 0; round < 8; ++round) {
    const auto iteration = manager.iteration();
    auto local = manager.tensor<int>({length}, "local");
    set(manager, local, round, "make");
    if (before) {
      std::vector<int> values(length, 99);
      CHECK(says(text_of<UsageError>([&] { before->upload(values); }), {"view of a tensor that no longer exists"}));
      CHECK_THROWS_AS(before->download(std::span<int>(values)), UsageError);
    }
    for (auto& tensor : weights) accumulate(manager, local, tensor);
    before = local.view();
  }
  CHECK(manager.report().iterations_followed >= 4);
  for (int i = 0; i < 4; ++i)
    CHECK(weights[static_cast<std::size_t>(i)].download() == std::vector<int>(length, i + 28));
}

TEST_CASE("views and bundles may outlive their manager and all of its tensors") {
  OutlivedDesk desk;
  std::optional<SimulatedTensor> a = desk.tensor("a", 1);
  const SimulatedView view = a->view();
  Bundle<Simulated> bundle;
  bundle.updates(*a).reads(view);
  desk.manager.reset();
  check_refused(view, {"manager", "no longer exists"});
  a.reset();
  check_refused(view, {"manager", "no longer exists"});
  MemoryManager<Simulated> other(desk.device, {.device_budget = 256_bytes});
  auto b = other.tensor<int>({length}, "b");
  set(other, b, 2);
  CHECK(says(text_of<UsageError>([&] { other.run("late", bundle, [](auto&) {}); }), {"\"late\"", "another manager"}));
  CHECK(says(text_of<UsageError>([&] { increase(other, view, 1, "late"); }), {"\"late\"", "another manager"}));
  CHECK(b.download() == std::vector<int>(length, 2));
}

TEST_CASE("a download that was asked for through a view brings the value of the tensor that it was asked of") {
  OutlivedDesk desk;
  std::optional<SimulatedTensor> a = desk.tensor("a", 1);
  increase(*desk.manager, *a, 1);
  std::vector<int> values(length);
  auto pending = a->view().download_async(std::span<int>(values));
  a.reset();
  auto b = desk.tensor("b", 7);
  increase(*desk.manager, b, 1);
  (void)b.download();
  pending.wait();
  CHECK(values == std::vector<int>(length, 2));
}

TEST_CASE("downloads of tensors that a followed plan makes in every round bring the value of their own round") {
  for (const bool uploaded : {false, true}) {
    CAPTURE(uploaded);
    Simulated device;
    MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes},
                                     Scheduler({.planner = "belady", .planning = Planning::immediate}));
    auto weights = uploaded_tensors(manager, 4);
    constexpr std::size_t rounds = 8;
    std::vector<std::vector<int>> values(rounds, std::vector<int>(length));
    std::vector<PendingDownload<Simulated>> pending;
    for (std::size_t round = 0; round < rounds; ++round) {
      const auto iteration = manager.iteration();
      auto local = manager.tensor<int>({length}, "local");
      if (uploaded) {
        local.upload(std::vector<int>(length, static_cast<int>(round)));
      } else {
        set(manager, local, static_cast<int>(round), "make");
      }
      for (auto& tensor : weights) accumulate(manager, local, tensor);
      pending.push_back(local.view().download_async(std::span<int>(values[round])));
    }
    for (auto& download : pending) download.wait();
    for (std::size_t round = 0; round < rounds; ++round) {
      CHECK(values[round] == std::vector<int>(length, static_cast<int>(round)));
    }
    CHECK(manager.report().iterations_followed >= 4);
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }
}
