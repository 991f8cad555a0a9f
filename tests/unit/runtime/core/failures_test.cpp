// SPDX-License-Identifier: Apache-2.0
// Failures of a backend: which values they take, what is told of them and when, and when the device counts as lost.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/runtime/core/failures.hpp>

#include "support/failing_new.hpp"
#include "support/null_backend.hpp"
#include "support/small_program.hpp"
#include "support/tensor_names.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using runtime::CommandLabel;
using runtime::MissingReason;

/// A backend whose finish() throws what it was given.
class MuteBackend : public NullBackend {
 public:
  void finish_with(std::function<void()> answer) { *answer_ = std::move(answer); }
  void finish() {
    if (*answer_) (*answer_)();
    NullBackend::finish();
  }

 private:
  std::shared_ptr<std::function<void()>> answer_ = std::make_shared<std::function<void()>>();
};

/// The failures of a store with tensors whose copies the test makes up.
struct FailuresDesk {
  using Rec = runtime::Record<MuteBackend>;

  Rec& tensor(std::string_view name) { return store.records.add(name, tensor_bytes, Lifetime::observed, 1); }
  Rec& on_device(std::string_view name, std::uint64_t issue = 1) {
    Rec& record = tensor(name);
    record.device.valid = true;
    record.device.issue = issue;
    return record;
  }
  Rec& on_host(std::string_view name, std::uint64_t issue = 1) {
    Rec& record = tensor(name);
    record.host.valid = true;
    record.host.issue = issue;
    return record;
  }
  Rec& on_both(std::string_view name, std::uint64_t device_issue, std::uint64_t host_issue) {
    Rec& record = on_device(name, device_issue);
    record.host.valid = true;
    record.host.issue = host_issue;
    return record;
  }
  /// Its handle is gone, but its bytes were not given back yet.
  Rec& ended_on_device(std::string_view name, std::uint64_t issue = 1) {
    Rec& record = on_device(name, issue);
    store.records.end(record);
    return record;
  }
  WorkFailed operation_failed(std::string_view name, std::uint64_t issue) {
    CommandLabel label;
    label.what = CommandLabel::What::operation;
    label.issue = issue;
    label.set_name(name);
    return failures.work_failed({QueueKind::compute, label}, promises);
  }
  WorkFailed mark_failed(std::uint64_t issue) {
    CommandLabel label;
    label.issue = issue;
    return failures.work_failed({QueueKind::compute, label}, promises);
  }
  /// What one call after the other is told, until one is told nothing.
  std::vector<std::string> told() {
    std::vector<std::string> texts;
    for (;;) {
      try {
        failures.check();
        return texts;
      } catch (const std::exception& error) {
        texts.emplace_back(error.what());
      }
    }
  }

  MuteBackend backend;
  runtime::Store<MuteBackend> store{backend, {.device_budget = 1_KiB, .queue_depth = 8}};
  runtime::Failures<MuteBackend> failures{store};
  runtime::Promises<MuteBackend> promises;
};

std::exception_ptr numbered_error(std::string_view kind, std::size_t number) {
  return std::make_exception_ptr(Error(std::string(kind) + " " + std::to_string(number)));
}

std::vector<std::string> numbered_texts(std::string_view kind, std::size_t from, std::size_t to) {
  std::vector<std::string> texts;
  for (std::size_t i = from; i < to; ++i) texts.push_back(std::string(kind) + " " + std::to_string(i));
  return texts;
}

/// How many errors are kept for later calls.
std::size_t most_kept_errors() {
  FailuresDesk desk;
  for (std::size_t i = 0; i < 100; ++i) desk.failures.postpone(numbered_error("harmless", i), false);
  return desk.told().size();
}

}  // namespace

TEST_CASE("work that failed takes the copies made since, and the values of which no other copy is left") {
  FailuresDesk desk;
  auto& older = desk.on_device("older", 4);
  auto& newer = desk.on_device("newer", 6);
  auto& at_it = desk.on_device("at it", 5);
  auto& copied_before = desk.on_both("copied before", 6, 3);
  auto& copied_since = desk.on_both("copied since", 4, 7);
  auto& from_program = desk.on_both("from program", 8, 0);
  auto& host_since = desk.on_host("host since", 9);
  auto& ended = desk.ended_on_device("ended", 8);
  auto& never_written = desk.tensor("never written");
  const WorkFailed error = desk.operation_failed("grow", 5);
  CHECK(error.work == WorkFailed::Work::operation);
  CHECK(error.operation() == "grow");
  CHECK(names_are(error.lost(), {"newer", "at it", "host since"}));
  for (const auto* const lost : {&newer, &at_it, &host_since, &ended}) {
    CHECK_FALSE(lost->has_value());
    CHECK(lost->value.missing_reason == MissingReason::lost);
  }
  CHECK(older.device.valid);
  CHECK_FALSE(copied_before.device.valid);
  CHECK(copied_before.host.valid);
  CHECK(copied_since.device.valid);
  CHECK_FALSE(copied_since.host.valid);
  CHECK_FALSE(from_program.device.valid);
  CHECK(from_program.host.valid);
  CHECK(never_written.value.missing_reason == MissingReason::never_written);
  CHECK(desk.told().empty());
}

TEST_CASE("work without a label of its own is unknown work of no operation") {
  FailuresDesk desk;
  const WorkFailed error = desk.mark_failed(1);
  CHECK(error.work == WorkFailed::Work::unknown);
  CHECK(error.operation().empty());
  CHECK(error.tensors().empty());
}

TEST_CASE("a failure that there was no memory to tell of is told with the next one, from the earlier of both on") {
  for (const std::uint64_t first : {3U, 6U}) {
    CAPTURE(first);
    FailuresDesk desk;
    (void)desk.on_device("oldest", 2);
    (void)desk.on_device("between", 4);
    (void)desk.on_device("newest", 7);
    bool short_of_memory = false;
    {
      const FailingNew failing(1);
      try {
        (void)desk.operation_failed("an operation with a long name", first);
      } catch (const std::bad_alloc&) {
        short_of_memory = true;
      }
    }
    CHECK(short_of_memory);
    const WorkFailed error = desk.operation_failed("next", 9 - first);
    CHECK(error.operation() == "next");
    CHECK(names_are(error.lost(), {"between", "newest"}));
    CHECK(desk.told().empty());
  }
}

TEST_CASE("a failure that there was no memory to tell of is told by the next call") {
  FailuresDesk desk;
  (void)desk.on_device("older", 2);
  (void)desk.on_device("newer", 4);
  {
    const FailingNew failing(1);
    try {
      (void)desk.operation_failed("an operation with a long name", 3);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the next call tells
    }
  }
  const auto error = thrown<WorkFailed>([&] { desk.failures.check(); });
  REQUIRE(error);
  CHECK(error->operation() == "an operation with a long name");
  CHECK(names_are(error->lost(), {"newer"}));
  CHECK(desk.told().empty());
}

TEST_CASE("only an error of the backend that says so means that the device is lost") {
  using Failures = runtime::Failures<MuteBackend>;
  using Kind = BackendError::Kind;
  const auto means_loss = [](const auto& error) { return Failures::is_device_lost(std::make_exception_ptr(error)); };
  CHECK(means_loss(BackendError(Kind::device_lost, 1, "gone")));
  CHECK_FALSE(means_loss(BackendError(Kind::failed, 1, "failed")));
  CHECK_FALSE(means_loss(BackendError(Kind::out_of_device_memory, 1, "full")));
  CHECK_FALSE(means_loss(std::runtime_error("gone")));
  CHECK_FALSE(means_loss(42));
}

TEST_CASE("each kind of error of the backend becomes the exception of its kind") {
  using Kind = BackendError::Kind;
  FailuresDesk desk;
  const auto fail = [&](Kind kind) {
    desk.failures.backend_failed({"operation ", "grow"}, BackendError(kind, 5, "a reason"));
  };
  const auto failed = thrown<BackendError>([&] { fail(Kind::failed); });
  REQUIRE(failed);
  CHECK(failed->code == 5);
  CHECK(failed->operation() == "grow");
  CHECK(says(failed->what(), {"\"grow\"", "a reason"}));
  const auto device = thrown<OutOfMemory>([&] { fail(Kind::out_of_device_memory); });
  REQUIRE(device);
  CHECK(device->memory == std::string("device"));
  const auto host = thrown<OutOfMemory>([&] { fail(Kind::out_of_host_memory); });
  REQUIRE(host);
  CHECK(host->memory == std::string("host"));
  CHECK_FALSE(desk.failures.lost());
  const auto lost = thrown<DeviceLost>([&] { fail(Kind::device_lost); });
  REQUIRE(lost);
  CHECK(lost->code == 5);
  CHECK(lost->operation() == "grow");
  CHECK(desk.failures.lost());
}

TEST_CASE("with the device go the values of living tensors that were on the device alone") {
  FailuresDesk desk;
  (void)desk.on_device("alone");
  (void)desk.on_both("copied", 2, 1);
  (void)desk.on_host("host");
  (void)desk.ended_on_device("ended");
  (void)desk.tensor("never written");
  const auto lost = thrown<DeviceLost>([&] { desk.failures.device_is_lost("the cable is out", 7); });
  REQUIRE(lost);
  CHECK(names_are(lost->lost(), {"alone"}));
  CHECK(lost->code == 7);
  CHECK(lost->what() == std::string("the cable is out; values lost with the device: \"alone\""));
}

TEST_CASE("every call after the loss of a device throws the first text") {
  FailuresDesk desk;
  (void)text_of<DeviceLost>([&] { desk.failures.device_is_lost("the cable is out", 7); });
  CHECK(text_of<DeviceLost>([&] { desk.failures.device_is_lost("the fan is out", 8); }) ==
        "the cable is out; no value is lost");
  const auto again = thrown<DeviceLost>([&] { desk.failures.check(); });
  REQUIRE(again);
  CHECK(again->code == 7);
  CHECK(again->what() == std::string("the cable is out; no value is lost"));
}

TEST_CASE("without memory for its text, the loss of a device still has its code") {
  FailuresDesk desk;
  (void)desk.on_device("alone");
  const std::string text = "the cable between the host and the device is out";
  std::optional<DeviceLost> lost;
  {
    const FailingNew failing(1);
    try {
      desk.failures.device_is_lost(text, 7);
    } catch (const DeviceLost& error) {
      lost = error;
    }
    CHECK(failing.fired());
  }
  REQUIRE(lost);
  CHECK(lost->code == 7);
  CHECK(lost->what() == std::string("the device does not answer"));
  CHECK(text_of<DeviceLost>([&] { desk.failures.check(); }) == "the device does not answer");
}

TEST_CASE("a device whose end cannot be awaited counts as lost, whatever the wait throws") {
  struct Answer {
    std::function<void()> finish;
    std::string text;
    long code;
  };
  const std::vector<Answer> answers{
      {[] { throw BackendError(BackendError::Kind::failed, 31, "no reply"); }, "no reply; no value is lost", 31},
      {[] { throw BackendError(BackendError::Kind::device_lost, 32, "gone"); }, "gone; no value is lost", 32},
      {[] { throw std::runtime_error("odd"); }, "odd; no value is lost", 0},
      {[] { throw 42; }, "the device does not answer; no value is lost", 0},
  };
  for (const Answer& answer : answers) {
    CAPTURE(answer.text);
    FailuresDesk desk;
    desk.failures.drain_quietly();
    CHECK_FALSE(desk.failures.lost());
    desk.backend.finish_with(answer.finish);
    desk.failures.drain_quietly();
    CHECK(desk.failures.lost());
    const auto lost = thrown<DeviceLost>([&] { desk.failures.check(); });
    REQUIRE(lost);
    CHECK(lost->what() == answer.text);
    CHECK(lost->code == answer.code);
  }
}

TEST_CASE("of too many late errors the first are told, one by call and in order, and keeping them allocates nothing") {
  FailuresDesk desk;
  std::vector<std::exception_ptr> errors;
  for (std::size_t i = 0; i < 100; ++i) errors.push_back(numbered_error("harmless", i));
  const std::uint64_t allocated = allocations();
  for (const std::exception_ptr& error : errors) desk.failures.postpone(error, false);
  CHECK(allocations() == allocated);
  const std::vector<std::string> told = desk.told();
  CHECK(told.size() > 2);
  CHECK(told.size() < 100);
  CHECK(told == numbered_texts("harmless", 0, told.size()));
}

TEST_CASE("an error that declares losses takes the place of the oldest that declares none") {
  const std::size_t most = most_kept_errors();
  FailuresDesk desk;
  for (std::size_t i = 0; i < most; ++i) desk.failures.postpone(numbered_error("harmless", i), false);
  for (std::size_t i = 0; i < 2; ++i) desk.failures.postpone(numbered_error("loss", i), true);
  std::vector<std::string> expected = numbered_texts("harmless", 2, most);
  for (const std::string& text : numbered_texts("loss", 0, 2)) expected.push_back(text);
  CHECK(desk.told() == expected);
}

TEST_CASE("among errors that all declare losses there is no room for another") {
  const std::size_t most = most_kept_errors();
  FailuresDesk desk;
  for (std::size_t i = 0; i < most + 2; ++i) desk.failures.postpone(numbered_error("loss", i), true);
  desk.failures.postpone(numbered_error("harmless", 0), false);
  CHECK(desk.told() == numbered_texts("loss", 0, most));
}
