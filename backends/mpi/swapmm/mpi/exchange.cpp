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
  // From memory of its own: if another process fails, MPI may read it for as long as this process lives.
  outgoing_.assign(bytes.begin(), bytes.end());
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Isend(outgoing_.data(), as_int(bytes.size()), MPI_BYTE, static_cast<int>(to), data_tag, communicator_,
                  &request),
        "MPI_Isend");
  wait_for_send(request);
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
  if (has_ended_[from]) throw_ended(from);
  Patience patience;
  for (;;) {
    int there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    check(MPI_Improbe(static_cast<int>(from), MPI_ANY_TAG, communicator_, &there, &message, &status), "MPI_Improbe");
    if (there == 0) {
      require_no_failure();
      patience.pause();
      continue;
    }
    int size = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
    std::vector<std::byte> other;  // for what does not belong in `bytes`
    const bool wanted = status.MPI_TAG == data_tag && static_cast<std::size_t>(size) == bytes.size();
    if (!wanted) other.resize(static_cast<std::size_t>(size));
    check(MPI_Mrecv(wanted ? bytes.data() : other.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    if (wanted) return;
    if (status.MPI_TAG == failure_tag) {
      throw_notice(from, {reinterpret_cast<const char*>(other.data()), other.size()});
    }
    if (status.MPI_TAG == end_tag) {
      has_ended_[from] = true;
      throw_ended(from);
    }
    throw ReplicaFailed("replica process " + std::to_string(from) + " sent " + std::to_string(size) + " bytes, and " +
                        std::to_string(bytes.size()) + " were expected");
  }
}

void Exchange::require_no_failure() {
  int there = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, failure_tag, communicator_, &there, &status), "MPI_Iprobe");
  if (there == 0) return;
  char text[most_text] = {};
  int size = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
  check(MPI_Recv(text, static_cast<int>(most_text), MPI_BYTE, status.MPI_SOURCE, failure_tag, communicator_,
                 MPI_STATUS_IGNORE),
        "MPI_Recv");
  throw_notice(static_cast<std::size_t>(status.MPI_SOURCE), {text, static_cast<std::size_t>(size)});
}

void Exchange::throw_ended(std::size_t from) const {
  throw ReplicaFailed("replica process " + std::to_string(from) + " has ended, and process " + std::to_string(rank_) +
                      " waits for it: do they run equally many steps?");
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
  Patience patience;
  for (std::size_t process = 0; process < processes_; ++process) {
    if (process == rank_ || has_ended_[process]) continue;
    int there = 0;
    while (there == 0) {
      check(MPI_Iprobe(static_cast<int>(process), end_tag, communicator_, &there, MPI_STATUS_IGNORE), "MPI_Iprobe");
      if (there != 0) break;
      require_no_failure();
      patience.pause();
    }
    check(MPI_Recv(nullptr, 0, MPI_BYTE, static_cast<int>(process), end_tag, communicator_, MPI_STATUS_IGNORE),
          "MPI_Recv");
  }
  finished_ = true;
  check(MPI_Comm_free(&communicator_), "MPI_Comm_free");
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
