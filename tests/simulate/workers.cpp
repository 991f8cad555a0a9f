// SPDX-License-Identifier: Apache-2.0
#include "workers.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <iostream>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "support/program/seeds.hpp"

namespace swapmm::test {
namespace {

constexpr std::size_t most_workers = 256;
constexpr std::uint64_t seeds_at_once = 8;
constexpr std::chrono::seconds longest_seed{600};

/// What one process tells the others.
struct WorkerState {
  std::atomic<std::uint64_t> seed{0};
  std::atomic<std::uint64_t> done{0};
  std::atomic<bool> failed{false};
  std::uint64_t first_hash = 0;
  ProgramTally tally;
  std::array<char, 4000> failure{};
};

/// In memory that all processes share.
struct Board {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stop{false};
  std::array<WorkerState, most_workers> workers;
};

class SharedBoard {
 public:
  SharedBoard() {
    void* const memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    board_ = new (memory) Board;
  }
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;
  ~SharedBoard() { munmap(board_, sizeof(Board)); }
  Board* operator->() const { return board_; }
  Board& operator*() const { return *board_; }

 private:
  Board* board_;
};

pid_t fork_or_throw() {
  std::cout.flush();
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  return child;
}

std::string text_of_signal(int number, std::chrono::seconds limit) {
  if (number == SIGALRM) return "it takes longer than " + std::to_string(limit.count()) + " s";
  return "the process ends by signal " + std::to_string(number) + " (" + strsignal(number) + ")";
}

void work(Board& board, WorkerState& self, const SeedRange& seeds, pid_t parent) {
  for (;;) {
    const std::uint64_t begin = board.next.fetch_add(seeds_at_once);
    if (begin >= seeds.count) return;
    for (std::uint64_t i = begin; i < std::min(begin + seeds_at_once, seeds.count); ++i) {
      if (board.stop || getppid() != parent) return;
      const std::uint64_t seed = seeds.first + i;
      self.seed = seed;
      alarm(static_cast<unsigned>(longest_seed.count()));
      const TestProgram program = program_of(seed);
      const Scrutiny scrutiny = scrutiny_of(seed);
      const Verdict verdict = judge(program, scrutiny);
      alarm(0);
      if (i == 0) self.first_hash = verdict.run.trace_hash;
      self.tally.add(program, scrutiny, verdict);
      ++self.done;
      if (verdict.failure.empty()) continue;
      verdict.failure.copy(self.failure.data(), self.failure.size() - 1);
      self.failed = true;
      board.stop = true;
      return;
    }
  }
}

/// Takes the lower of two seeds that failed.
void note(WorkersResult& result, FailedSeed failed) {
  if (!result.failed || failed.seed < result.failed->seed) result.failed = std::move(failed);
}

std::uint64_t sum_of_done(const Board& board) {
  std::uint64_t done = 0;
  for (const WorkerState& worker : board.workers) done += worker.done;
  return done;
}

}  // namespace

WorkersResult run_workers(const SeedRange& seeds, unsigned jobs,
                          const std::function<void(std::uint64_t done)>& progress) {
  const SharedBoard board;
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (std::size_t i = 0; i < std::min<std::size_t>(jobs, most_workers); ++i) {
    const pid_t child = fork_or_throw();
    if (child == 0) {
      work(*board, board->workers[i], seeds, parent);
      _exit(0);
    }
    children.push_back(child);
  }
  WorkersResult result;
  for (std::size_t running = children.size(); running > 0;) {
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    for (std::size_t i = 0; i < children.size(); ++i) {
      int status = 0;
      if (children[i] == 0 || waitpid(children[i], &status, WNOHANG) == 0) continue;
      children[i] = 0;
      --running;
      if (!WIFSIGNALED(status)) continue;
      board->stop = true;
      note(result, {board->workers[i].seed, text_of_signal(WTERMSIG(status), longest_seed), true});
    }
    progress(sum_of_done(*board));
  }
  for (const WorkerState& worker : board->workers) {
    result.tally.add(worker.tally);
    result.trace_hash |= worker.first_hash;
    if (worker.failed) note(result, {worker.seed, worker.failure.data(), false});
  }
  result.done = sum_of_done(*board);
  return result;
}

Verdict judge_apart(const TestProgram& program, const ProgramJudge& judge, std::chrono::seconds limit) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const pid_t child = fork_or_throw();
  if (child == 0) {
    alarm(static_cast<unsigned>(limit.count()));
    const std::string failure = judge(program).failure;
    const bool told = write(ends[1], failure.data(), failure.size()) == static_cast<ssize_t>(failure.size());
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  Verdict verdict;
  std::array<char, 4096> buffer{};
  for (ssize_t size = 0; (size = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    verdict.failure.append(buffer.data(), static_cast<std::size_t>(size));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) verdict.failure = text_of_signal(WTERMSIG(status), limit);
  return verdict;
}

}  // namespace swapmm::test
