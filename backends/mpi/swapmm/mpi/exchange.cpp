// SPDX-License-Identifier: Apache-2.0

#include <swapmm/mpi/exchange.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <limits>
#include <string>
#include <thread>

namespace swapmm::mpi {
namespace {

constexpr int data_tag = 1;
constexpr int failure_tag = 2;  // with a text
constexpr int end_tag = 3;
constexpr std::size_t most_text = 1000;
constexpr std::chrono::seconds last_wait{3};

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(std::string(call) + ": " + text);
}

int as_int(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw UsageError("a message of " + std::to_string(bytes) + " bytes is longer than MPI allows");
  }
  return static_cast<int>(bytes);
}

std::size_t size_of(const MPI_Status& status) {
  int size = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
  return static_cast<std::size_t>(size);
}

struct Message {
  std::size_t from = 0;
  int tag = 0;
  std::vector<std::byte> bytes;

  [[nodiscard]] std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

/// Receives a message that a probe has found.
Message take(MPI_Message& found, const MPI_Status& status) {
  Message taken{.from = static_cast<std::size_t>(status.MPI_SOURCE), .tag = status.MPI_TAG, .bytes = {}};
  taken.bytes.resize(size_of(status));
  check(MPI_Mrecv(taken.bytes.data(), as_int(taken.bytes.size()), MPI_BYTE, &found, MPI_STATUS_IGNORE), "MPI_Mrecv");
  return taken;
}

/// Called in a loop that waits: at first at once, then with pauses, so that devices that are CPUs have theirs.
class Patience {
 public:
  void pause() {
    if (++turns_ < 200) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds{20});
  }

 private:
  int turns_ = 0;
};

}  // namespace

Exchange::Exchange(MPI_Comm communicator) : exceptions_(std::uncaught_exceptions()) {
  check(MPI_Comm_dup(communicator, &communicator_), "MPI_Comm_dup");
  check(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  int size = 0;
  int rank = 0;
  check(MPI_Comm_size(communicator_, &size), "MPI_Comm_size");
  check(MPI_Comm_rank(communicator_, &rank), "MPI_Comm_rank");
  processes_ = static_cast<std::size_t>(size);
  rank_ = static_cast<std::size_t>(rank);
  has_ended_.resize(processes_);
}

Exchange::~Exchange() {
  if (finished_) return;
  try {
    if (std::uncaught_exceptions() > exceptions_) {
      fail("it ended by an exception");
    } else {
      end();
    }
  } catch (...) {  // who calls end() learns why
    finished_ = true;
  }
}

void Exchange::send(std::size_t to, std::span<const std::byte> bytes) {
  look_whether_ended(to);
  if (has_ended_[to]) throw_ended(to);
  // From memory of its own: if another process fails, MPI may read it for as long as this process lives.
  outgoing_.assign(bytes.begin(), bytes.end());
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Isend(outgoing_.data(), as_int(bytes.size()), MPI_BYTE, static_cast<int>(to), data_tag, communicator_,
                  &request),
        "MPI_Isend");
  wait_for_send(request);
}

/// Takes the message of a process that it has ended, if that is there. Values that were sent before it stay.
void Exchange::look_whether_ended(std::size_t process) {
  int there = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  check(MPI_Improbe(static_cast<int>(process), end_tag, communicator_, &there, &message, &status), "MPI_Improbe");
  if (there == 0) return;
  (void)take(message, status);
  has_ended_[process] = true;
}

void Exchange::wait_for_send(MPI_Request& request) {
  Patience patience;
  try {
    for (;;) {
      int done = 0;
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done != 0) return;
      require_no_failure();
      patience.pause();
    }
  } catch (...) {
    (void)new std::vector<std::byte>(std::move(outgoing_));  // kept on purpose, see send()
    throw;
  }
}

void Exchange::receive(std::size_t from, std::span<std::byte> bytes) {
  Patience patience;
  for (;;) {
    int there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    check(MPI_Improbe(static_cast<int>(from), MPI_ANY_TAG, communicator_, &there, &message, &status), "MPI_Improbe");
    if (there == 0) {
      require_no_failure();
      if (has_ended_[from]) throw_ended(from);
      patience.pause();
      continue;
    }
    if (status.MPI_TAG == data_tag && size_of(status) == bytes.size()) {
      check(MPI_Mrecv(bytes.data(), as_int(bytes.size()), MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
      return;
    }
    const Message other = take(message, status);
    if (other.tag == failure_tag) throw_notice(from, other.text());
    if (other.tag == end_tag) {
      has_ended_[from] = true;
      throw_ended(from);
    }
    throw ReplicaFailed("replica process " + std::to_string(from) + " sent " + std::to_string(other.bytes.size()) +
                        " bytes, and " + std::to_string(bytes.size()) + " were expected");
  }
}

void Exchange::require_no_failure() {
  int there = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  check(MPI_Improbe(MPI_ANY_SOURCE, failure_tag, communicator_, &there, &message, &status), "MPI_Improbe");
  if (there == 0) return;
  const Message failure = take(message, status);
  throw_notice(failure.from, failure.text());
}

void Exchange::throw_ended(std::size_t from) const {
  throw ReplicaFailed("replica process " + std::to_string(from) + " has ended, and process " + std::to_string(rank_) +
                      " goes on: do they run equally many steps?");
}

void Exchange::throw_notice(std::size_t from, std::string_view text) {
  finished_ = true;
  throw ReplicaFailed("replica process " + std::to_string(from) + " failed: " + std::string(text));
}

void Exchange::fail(std::string_view why) noexcept {
  if (finished_) return;
  finished_ = true;
  const std::size_t size = std::min(why.size(), most_text);
  for (std::size_t process = 0; process < processes_; ++process) {
    if (process == rank_) continue;
    // So short a message is on its way when this returns.
    MPI_Send(why.data(), static_cast<int>(size), MPI_BYTE, static_cast<int>(process), failure_tag, communicator_);
  }
}

void Exchange::end() {
  if (finished_) return;
  for (std::size_t process = 0; process < processes_; ++process) {
    if (process == rank_) continue;
    check(MPI_Send(nullptr, 0, MPI_BYTE, static_cast<int>(process), end_tag, communicator_), "MPI_Send");
  }
  has_ended_[rank_] = true;
  Patience patience;
  while (std::find(has_ended_.begin(), has_ended_.end(), false) != has_ended_.end()) {
    if (!take_last_message()) patience.pause();
  }
  finished_ = true;
  check(MPI_Comm_free(&communicator_), "MPI_Comm_free");
}

/// Takes a message of a process that has not ended, from any of them. Values that nobody here will ever receive are
/// dropped: their sender may wait until they are taken, and must come to see that this process has ended.
bool Exchange::take_last_message() {
  require_no_failure();
  int there = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  check(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator_, &there, &message, &status), "MPI_Improbe");
  if (there == 0) return false;
  const Message taken = take(message, status);
  if (taken.tag == failure_tag) throw_notice(taken.from, taken.text());
  if (taken.tag == end_tag) has_ended_[taken.from] = true;
  return true;
}

void Exchange::gather_failed() noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(communicator_, &request) != MPI_SUCCESS) return;
  const auto until = std::chrono::steady_clock::now() + last_wait;
  for (int done = 0; done == 0 && std::chrono::steady_clock::now() < until;) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

}  // namespace swapmm::mpi
