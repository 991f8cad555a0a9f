// SPDX-License-Identifier: Apache-2.0

#include <swapmm/replicas/thread_exchange.hpp>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace swapmm {
namespace {

using Message = std::vector<std::byte>;

/// What the threads share. Everything below the lock.
struct Post {
  explicit Post(std::size_t count) : processes(count), letters(count * count), ended(count), reasons(count) {}

  [[nodiscard]] std::deque<Message>& between(std::size_t from, std::size_t to) {
    return letters[from * processes + to];
  }

  const std::size_t processes;
  std::mutex lock;
  std::condition_variable changed;
  std::vector<std::deque<Message>> letters;  // by sender and receiver
  std::vector<char> ended;                   // whose exchange is destroyed
  std::vector<std::string> reasons;          // of those that another's end has ended
  std::optional<std::string> failure;        // of whichever thread failed first
};

class ThreadExchange final : public Exchange {
 public:
  ThreadExchange(std::shared_ptr<Post> post, std::size_t rank) : post_(std::move(post)), rank_(rank) {}
  ~ThreadExchange() override {
    const std::lock_guard guard(post_->lock);
    post_->ended[rank_] = 1;
    post_->changed.notify_all();
  }

  [[nodiscard]] std::size_t processes() const override { return post_->processes; }
  [[nodiscard]] std::size_t rank() const override { return rank_; }

  void send(std::size_t to, std::span<const std::byte> bytes) override {
    const std::lock_guard guard(post_->lock);
    require_no_failure();
    post_->between(rank_, other(to)).emplace_back(bytes.begin(), bytes.end());
    post_->changed.notify_all();
  }

  void receive(std::size_t from, std::span<std::byte> bytes) override {
    std::unique_lock guard(post_->lock);
    std::deque<Message>& letters = post_->between(other(from), rank_);
    post_->changed.wait(guard, [&] { return !letters.empty() || post_->failure || post_->ended[from] != 0; });
    require_no_failure();
    if (letters.empty()) {
      // Who waits for this process learns the same, and not that this one has ended.
      std::string& why = post_->reasons[rank_];
      why = post_->reasons[from].empty() ? "replica process " + std::to_string(from) + " has ended"
                                         : post_->reasons[from];
      throw ReplicaFailed(why);
    }
    const Message message = std::move(letters.front());
    letters.pop_front();
    if (message.size() != bytes.size()) throw_unequal(from, message.size(), bytes.size());
    if (!bytes.empty()) std::memcpy(bytes.data(), message.data(), bytes.size());
  }

  void fail(std::string_view why) noexcept override {
    const std::lock_guard guard(post_->lock);
    try {
      if (!post_->failure) {
        post_->failure = "replica process " + std::to_string(rank_) + " failed: " + std::string(why);
      }
    } catch (...) {  // no memory for the text
      post_->failure.emplace();
    }
    post_->changed.notify_all();
  }

 private:
  void require_no_failure() const {
    if (post_->failure) throw ReplicaFailed(*post_->failure);
  }
  [[nodiscard]] std::size_t other(std::size_t process) const {
    if (process < processes() && process != rank_) return process;
    throw UsageError("process " + std::to_string(rank_) + " of " + std::to_string(processes()) +
                     " exchanges bytes with process " + std::to_string(process));
  }
  [[noreturn]] static void throw_unequal(std::size_t from, std::size_t sent, std::size_t expected) {
    throw ReplicaFailed("replica process " + std::to_string(from) + " sent " + std::to_string(sent) + " bytes, and " +
                        std::to_string(expected) + " were expected");
  }

  std::shared_ptr<Post> post_;
  std::size_t rank_;
};

}  // namespace

std::vector<std::unique_ptr<Exchange>> exchanges_between_threads(std::size_t count) {
  if (count == 0) throw UsageError("an exchange between no threads");
  const auto post = std::make_shared<Post>(count);
  std::vector<std::unique_ptr<Exchange>> all;
  for (std::size_t rank = 0; rank < count; ++rank) all.push_back(std::make_unique<ThreadExchange>(post, rank));
  return all;
}

}  // namespace swapmm
