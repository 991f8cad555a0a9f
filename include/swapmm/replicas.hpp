// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/error.hpp>
#include <swapmm/memory_manager.hpp>
#include <swapmm/replicas/chain.hpp>
#include <swapmm/replicas/chunk_size.hpp>
#include <swapmm/replicas/exchange.hpp>
#include <swapmm/tensor.hpp>

namespace swapmm {

/// Options for `Replicas`.
struct ReplicaOptions {
  /// The value of `layers_per_chunk` that has the size searched for.
  static constexpr std::size_t search = 0;

  std::size_t layers = 0;                 ///< layers that each replica is done with in each step; at least 1
  std::size_t layers_per_chunk = search;  ///< chunk size, from 1 to `layers`; or `search`
  ChunkSizeOptions chunk_size{};          ///< how it is searched for
  /// Threads that add up gradients: the caller's, and others that end before a sum is used. At least 1. The bits do not
  /// depend on it.
  std::size_t sum_threads = 1;
  /// Connects the processes, each with replicas of its own; none: there is one process.
  std::shared_ptr<Exchange> exchange{};
  /// What steps are timed with if the chunk size is searched for. Default: std::chrono::steady_clock.
  std::function<std::chrono::nanoseconds()> clock{};
};

/// A layer whose gradients are summed over all replicas, as the update of a step gets it.
template <class T>
struct SummedLayer {
  std::size_t replica = 0;  ///< the replica to update, a position among the managers
  std::size_t layer = 0;    ///< position of the layer in the order of layer_done()
  std::size_t chunk = 0;    ///< position of its chunk
  /// The sums, in the order in which layer_done() got the gradients. Valid during the call.
  std::span<const std::span<const T>> gradients;
};

/// Replicas of a network, each with a manager of its own, that learn parts of the same batch. The gradients of all
/// replicas are added up on the host, in chunks of layers: when the backward pass of a replica is done with a chunk,
/// its gradients start on their way to the host, and while the devices compute the rest of the backward pass, the host
/// adds them up and brings the sums to the devices.
///
///     swapmm::Replicas<float, Backend> replicas({&manager0, &manager1}, "train", {.layers = 7});
///     for (...)
///       replicas.step(
///           [&](std::size_t replica) {
///             forward(replica);
///             for (each layer, the last one first) {
///               backward(replica, layer);
///               replicas.layer_done(replica, weights_gradient, bias_gradient);
///             }
///           },
///           [&](const swapmm::SummedLayer<float>& sum) { update(sum.replica, sum.layer, sum.gradients); });
///
/// A sum is ((replica 0 + replica 1) + replica 2) + ..., those of process 0 first. So it has the bits of one device
/// that adds the gradients in the same order, whatever the chunk size, and however replicas are spread over devices and
/// processes. (If several of the gradients are NaN, the sum is a NaN, and which one is not said.)
///
/// The update uploads the sums to tensors of their own, and not to those of the gradients: an iteration that uploads to
/// a tensor that it has used stays on demand. Each step is one iteration of each manager. If the chunk size is searched
/// for, the name of the iterations has the size, for each size is another sequence of downloads and uploads.
///
/// The thread that calls step() runs all replicas: it queues their work, which devices do side by side. Host memory:
/// all gradients of all replicas, beside what the managers have. Each gradient is copied once within the host on its
/// way there, and each sum once for each replica on its way back.
///
/// The managers must outlive it, and must not be moved while it exists.
template <class T, Backend B>
class Replicas {
  template <class G>
  static constexpr bool is_gradient = std::same_as<G, Tensor<T, B>> || std::same_as<G, View<T, B>>;

 public:
  /// `name` is the name of the iterations. Throws UsageError if there is no manager, if two are the same, or if an
  /// option is out of its range.
  Replicas(const std::vector<MemoryManager<B>*>& managers, std::string name, ReplicaOptions options)
      : name_(std::move(name)), options_(std::move(options)) {
    for (MemoryManager<B>* const manager : managers) replicas_.push_back(Replica{manager, {}, {}, {}});
    check_options();
    if (!options_.clock) options_.clock = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
    if (options_.layers_per_chunk == ReplicaOptions::search) search_.emplace(options_.layers, options_.chunk_size);
  }
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  /// Runs one step: `body(replica)` for each replica of this process in order; then, for each chunk, waits for its
  /// gradients, adds them up over all processes, and calls `update(summed_layer)` for each replica and layer of it.
  /// Returns before the devices have done the updates.
  ///
  /// What the functions throw passes through, and the step ends there; the other processes get ReplicaFailed. Throws
  /// UsageError if a replica was not done with all layers or has gradients of other sizes, ReplicaFailed, and what
  /// download() throws.
  template <std::invocable<std::size_t> Body, std::invocable<const SummedLayer<T>&> Update>
  void step(Body&& body, Update&& update) {
    const Reset reset{*this};
    try {
      begin_step();
      run_step(body, update);
    } catch (const ReplicaFailed&) {
      throw;
    } catch (const std::exception& error) {
      tell_others(error.what());
      throw;
    } catch (...) {
      tell_others("an exception without a text");
      throw;
    }
  }

  /// Tells, within the body of a step, that the backward pass of this replica has queued all that makes the gradients
  /// of its next layer. The gradients are tensors or views of T; the tensors must exist until the step ends. A layer
  /// without weights has none. Throws UsageError if it is another replica's turn, or has been done with all layers, if
  /// a gradient belongs to another manager, and if numbers or sizes of the gradients differ from those of replica 0.
  template <class... Gradients>
    requires(is_gradient<Gradients>&&...)
  void layer_done(std::size_t replica, const Gradients&... gradients) {
    const std::array<View<T, B>, sizeof...(gradients)> views{view_of(gradients)...};
    layer_done(replica, std::span<const View<T, B>>(views));
  }
  /// The same for a number of gradients that is known at run time.
  void layer_done(std::size_t replica, std::span<const View<T, B>> gradients) {
    if (replica != current_) refuse("layer_done() for replica " + std::to_string(replica) + " out of its turn");
    Replica& at = replicas_[replica];
    if (at.sizes.size() == options_.layers) {
      refuse("replica " + std::to_string(replica) + " is done with more than " + std::to_string(options_.layers) +
             " layers");
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (at.manager->owns(gradients[i].ref())) continue;
      refuse("gradient " + std::to_string(i) + " of layer " + std::to_string(at.sizes.size()) +
             " is not a tensor of the manager of replica " + std::to_string(replica));
    }
    at.sizes.emplace_back();
    for (const View<T, B>& gradient : gradients) at.sizes.back().push_back(gradient.size());
    if (replica > 0) compare_sizes(replica);
    at.waiting.insert(at.waiting.end(), gradients.begin(), gradients.end());
    if (at.sizes.size() % chunk_ == 0 || at.sizes.size() == options_.layers) start_downloads(at);
  }

  /// Layers per chunk of the next step; of this one during a step.
  [[nodiscard]] std::size_t layers_per_chunk() const {
    return search_ ? search_->layers_per_chunk() : options_.layers_per_chunk;
  }
  /// The search for the chunk size; nothing if the size was given.
  [[nodiscard]] const std::optional<ChunkSizeSearch>& search() const { return search_; }

 private:
  static constexpr std::size_t nobody = SIZE_MAX;

  // The gradients of a chunk's layers, one behind the other, on the host; later, in replica 0, the sums.
  struct Chunk {
    std::vector<T> values;
    std::vector<PendingDownload<B>> downloads;
  };
  struct Replica {
    MemoryManager<B>* manager;
    std::vector<std::vector<std::size_t>> sizes;  // of the gradients of each layer that is done
    std::vector<View<T, B>> waiting;              // the gradients of the chunk under way
    std::vector<Chunk> chunks;                    // those whose downloads have begun; values are kept from step to step
    std::size_t begun = 0;                        // number of these
  };
  // Ends a step in whichever way.
  struct Reset {
    Replicas& replicas;
    ~Reset() { replicas.forget(); }
  };

  [[noreturn]] void refuse(const std::string& why) const { throw UsageError("replicas \"" + name_ + "\": " + why); }

  void check_options() const {
    if (replicas_.empty()) refuse("there are no managers");
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
      if (replicas_[i].manager == nullptr) refuse("manager " + std::to_string(i) + " is null");
      for (std::size_t k = 0; k < i; ++k) {
        if (replicas_[k].manager == replicas_[i].manager) refuse("two replicas have the same manager");
      }
    }
    if (options_.layers == 0) refuse("ReplicaOptions::layers is 0");
    if (options_.layers_per_chunk > options_.layers) {
      refuse("chunks of " + std::to_string(options_.layers_per_chunk) + " layers of " +
             std::to_string(options_.layers));
    }
    if (options_.sum_threads == 0) refuse("ReplicaOptions::sum_threads is 0");
  }

  [[nodiscard]] static View<T, B> view_of(const Tensor<T, B>& tensor) { return tensor.view(); }
  [[nodiscard]] static View<T, B> view_of(const View<T, B>& view) { return view; }

  void forget() noexcept {
    current_ = nobody;
    for (Replica& replica : replicas_) {
      replica.sizes.clear();
      replica.waiting.clear();
      replica.begun = 0;
      for (Chunk& chunk : replica.chunks) chunk.downloads.clear();
    }
  }

  void tell_others(std::string_view why) noexcept {
    if (options_.exchange) options_.exchange->fail(why);
    last_begin_.reset();
  }

  // The time from one beginning to the next is that of a step: within each, the host waits for the backward passes.
  void begin_step() {
    if (search_ && !search_->done()) {
      const std::chrono::nanoseconds now = options_.clock();
      if (last_begin_) {
        const std::int64_t took = (now - *last_begin_).count();
        search_->took(std::chrono::nanoseconds{replicas::largest_of_all(options_.exchange.get(), took)});
      }
      last_begin_ = now;
    }
    chunk_ = layers_per_chunk();
    ++step_;
  }

  template <class Body, class Update>
  void run_step(Body& body, Update& update) {
    const std::string name = search_ ? name_ + ", chunks of " + std::to_string(chunk_) : name_;
    std::vector<Iteration<B>> iterations;
    iterations.reserve(replicas_.size());
    for (const Replica& replica : replicas_) iterations.push_back(replica.manager->iteration(name));
    for (current_ = 0; current_ < replicas_.size(); ++current_) {
      body(std::size_t{current_});
      require_all_layers(current_);
    }
    current_ = nobody;
    for (std::size_t chunk = 0; chunk < replicas_[0].begun; ++chunk) {
      sum(chunk);
      for (std::size_t replica = 0; replica < replicas_.size(); ++replica) update_layers(replica, chunk, update);
    }
  }

  void require_all_layers(std::size_t replica) const {
    const std::size_t done = replicas_[replica].sizes.size();
    if (done == options_.layers) return;
    refuse("replica " + std::to_string(replica) + " is done with " + std::to_string(done) + " of " +
           std::to_string(options_.layers) + " layers");
  }

  void compare_sizes(std::size_t replica) const {
    const std::size_t layer = replicas_[replica].sizes.size() - 1;
    const std::vector<std::size_t>& own = replicas_[replica].sizes[layer];
    const std::vector<std::size_t>& first = replicas_[0].sizes[layer];
    const auto in = [&](std::size_t which) { return " in replica " + std::to_string(which); };
    if (own.size() != first.size()) {
      refuse("layer " + std::to_string(layer) + " has " + std::to_string(own.size()) + " gradients" + in(replica) +
             ", and " + std::to_string(first.size()) + in(0));
    }
    const auto [mine, other] = std::mismatch(own.begin(), own.end(), first.begin());
    if (mine == own.end()) return;
    refuse("gradient " + std::to_string(mine - own.begin()) + " of layer " + std::to_string(layer) + " has " +
           std::to_string(*mine) + " elements" + in(replica) + ", and " + std::to_string(*other) + in(0));
  }

  // Returns at once; what the devices compute next does not wait for it.
  void start_downloads(Replica& replica) {
    if (replica.begun == replica.chunks.size()) replica.chunks.emplace_back();
    Chunk& chunk = replica.chunks[replica.begun++];
    std::size_t elements = 0;
    for (const View<T, B>& gradient : replica.waiting) elements += gradient.size();
    chunk.values.resize(elements);
    std::size_t first = 0;
    for (const View<T, B>& gradient : replica.waiting) {
      chunk.downloads.push_back(gradient.download_async(std::span(chunk.values).subspan(first, gradient.size())));
      chunk.downloads.back().decides_nothing();
      first += gradient.size();
    }
    replica.waiting.clear();
  }

  [[nodiscard]] std::size_t layers_of(std::size_t chunk) const {
    return std::min(chunk_, options_.layers - chunk * chunk_);
  }

  void sum(std::size_t chunk) {
    std::vector<std::span<T>> parts;
    for (Replica& replica : replicas_) {
      Chunk& own = replica.chunks[chunk];
      for (PendingDownload<B>& download : own.downloads) download.wait();
      own.downloads.clear();
      parts.push_back(std::span(own.values));
    }
    const replicas::SumHeader header{step_, chunk, layers_of(chunk), parts[0].size()};
    replicas::sum_of_all<T>(options_.exchange.get(), header, parts, options_.sum_threads);
  }

  template <class Update>
  void update_layers(std::size_t replica, std::size_t chunk, Update& update) const {
    std::span<const T> rest = replicas_[0].chunks[chunk].values;
    std::vector<std::span<const T>> gradients;
    for (std::size_t layer = chunk * chunk_; layer < chunk * chunk_ + layers_of(chunk); ++layer) {
      gradients.clear();
      for (const std::size_t size : replicas_[0].sizes[layer]) {
        gradients.push_back(rest.first(size));
        rest = rest.subspan(size);
      }
      update(SummedLayer<T>{replica, layer, chunk, gradients});
    }
  }

  std::string name_;
  ReplicaOptions options_;
  std::vector<Replica> replicas_;
  std::optional<ChunkSizeSearch> search_;
  std::optional<std::chrono::nanoseconds> last_begin_;
  std::size_t chunk_ = 1;  // layers per chunk of this step
  std::uint64_t step_ = 0;
  std::size_t current_ = nobody;  // the replica whose body runs
};

}  // namespace swapmm
