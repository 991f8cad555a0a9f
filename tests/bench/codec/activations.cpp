// SPDX-License-Identifier: Apache-2.0
// How many zeros the tensors of examples/fashion_mnist have while the network learns, and what becomes of them: the
// activations behind each ReLU and each pool, and the gradients on the way back through them.
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "fashion_mnist/training.hpp"
#include "measuring.hpp"
#include "neural/opencl_math.hpp"

namespace fashion {
bool interrupted() { return false; }
}  // namespace fashion

namespace bench {

namespace {

using swapmm::ZeroElements;

/// Sums over all parts of a batch, for one kind of tensor.
struct Measured {
  std::uint64_t plain = 0;    ///< bytes
  std::uint64_t encoded = 0;  ///< bytes
  std::uint64_t nonzeros = 0;
  double encode = 0;  ///< milliseconds
  double decode = 0;
  std::vector<float> values;  ///< of the first part
};

/// What the demo computes with. While it observes, it encodes each result that may have many zeros, and decodes it.
class ObservedMath : public neural::OpenclMath {
 public:
  ObservedMath(Device& device, const std::vector<fashion::Layer>& layers, std::size_t parts)
      : OpenclMath(device.backend), device_(&device), layers_(&layers), parts_(parts) {}

  /// Observes the next iteration.
  void begin() {
    measured_.clear();
    order_.clear();
    activations_ = pools_ = gradients_ = 0;
    pool_gradients_ = pooled_layers().size() * parts_;
    observes_ = true;
  }
  void end() { observes_ = false; }
  [[nodiscard]] const std::vector<std::string>& order() const { return order_; }
  [[nodiscard]] const Measured& of(const std::string& name) const { return measured_.at(name); }

  void bias_relu(Queue queue, std::size_t pixels, std::size_t channels, bool relu, Place y, Place bias) {
    OpenclMath::bias_relu(queue, pixels, channels, relu, y, bias);
    if (observes_ && relu) observe(queue, (*layers_)[activations_++ / parts_].name + ".out", y, pixels * channels);
  }
  void max_pool(Queue queue, const neural::Images& shape, Place x, Place y, Place map) {
    OpenclMath::max_pool(queue, shape, x, y, map);
    if (observes_) observe(queue, pooled_layers()[pools_++ / parts_] + ".pooled", y, shape.size());
  }
  void max_pool_backward(Queue queue, const neural::Images& shape, Place y, Place map, Place y_gradient,
                         Place x_gradient) {
    OpenclMath::max_pool_backward(queue, shape, y, map, y_gradient, x_gradient);
    if (!observes_) return;
    observe(queue, pooled_layers()[--pool_gradients_ / parts_] + ".out.gradient", x_gradient, 4 * shape.size());
  }
  void relu_backward(Queue queue, std::size_t count, Place y, Place gradient) {
    OpenclMath::relu_backward(queue, count, y, gradient);
    if (observes_) observe(queue, relu_layers()[gradients_++ / parts_] + ".out.gradient", gradient, count);
  }

 private:
  [[nodiscard]] std::vector<std::string> pooled_layers() const {
    std::vector<std::string> names;
    for (const fashion::Layer& layer : *layers_) {
      if (layer.pool) names.push_back(layer.name);
    }
    return names;
  }
  // On the way back, the last first: those whose ReLU is not done by a pool.
  [[nodiscard]] std::vector<std::string> relu_layers() const {
    std::vector<std::string> names;
    for (std::size_t i = layers_->size(); i-- > 0;) {
      const fashion::Layer& layer = (*layers_)[i];
      if (layer.relu && !layer.pool) names.push_back(layer.name);
    }
    return names;
  }

  void observe(Queue queue, const std::string& name, Place place, std::size_t count) {
    if (!measured_.contains(name)) order_.push_back(name);
    Measured& measured = measured_[name];
    const ZeroElements elements{count, 4};
    const std::size_t size = count * 4;
    const auto plain = make_buffer(*device_, size);
    const auto encoded = make_buffer(*device_, zero_worst_case(elements).value);
    const auto scratch = make_buffer(*device_, zero_scratch(elements).value);
    check(clEnqueueCopyBuffer(queue, place.buffer, plain.get(), place.first * 4, 0, size, 0, nullptr, nullptr),
          "clEnqueueCopyBuffer");
    std::vector<float> before(count);
    read(queue, plain.get(), before.data(), size);
    measured.encode += milliseconds_of(1, [&] {
      device_->codec.encode(queue, elements, plain.get(), encoded.get(), scratch.get());
      clFinish(queue);
    });
    measured.decode += milliseconds_of(1, [&] {
      device_->codec.decode(queue, elements, encoded.get(), plain.get(), scratch.get());
      clFinish(queue);
    });
    std::vector<float> after(count);
    read(queue, plain.get(), after.data(), size);
    if (std::memcmp(before.data(), after.data(), size) != 0) throw std::runtime_error(name + " came back changed");
    const swapmm::ZeroHeader header = header_of(queue, encoded.get());
    measured.plain += size;
    measured.encoded += header.bytes;
    measured.nonzeros += header.nonzeros;
    if (measured.values.empty()) measured.values = std::move(before);
  }

  Device* device_;
  const std::vector<fashion::Layer>* layers_;
  std::size_t parts_;
  bool observes_ = false;
  std::size_t activations_ = 0;
  std::size_t pools_ = 0;
  std::size_t gradients_ = 0;
  std::size_t pool_gradients_ = 0;  // counts down: the last layer's come first
  std::map<std::string, Measured> measured_;
  std::vector<std::string> order_;
};

void print_alternative(const Shuffled& lz4, std::size_t bytes) {
  if (lz4.bytes == 0) {
    std::puts(" - | - | - |");
    return;
  }
  std::printf(" %.2f | %.2f | %.2f |\n", static_cast<double>(bytes) / static_cast<double>(lz4.bytes), lz4.encode_rate,
              lz4.decode_rate);
}

void print(const ObservedMath& math) {
  std::puts(
      "| tensor | MB | density | ratio | encode GB/s | decode GB/s | shuffle + LZ4: ratio | encode GB/s | decode GB/s "
      "|");
  std::puts("|---|---|---|---|---|---|---|---|---|");
  const auto line = [](const std::string& name, const Measured& m) {
    std::printf("| %s | %.2f | %.3f | %.2f | %.2f | %.2f |", name.c_str(), static_cast<double>(m.plain) / 1e6,
                4 * static_cast<double>(m.nonzeros) / static_cast<double>(m.plain),
                static_cast<double>(m.plain) / static_cast<double>(m.encoded), rate(m.plain, m.encode),
                rate(m.plain, m.decode));
  };
  Measured all;
  for (const std::string& name : math.order()) {
    const Measured& m = math.of(name);
    all.plain += m.plain;
    all.encoded += m.encoded;
    all.nonzeros += m.nonzeros;
    all.encode += m.encode;
    all.decode += m.decode;
    line(name, m);
    print_alternative(shuffled_lz4(m.values), m.values.size() * 4);
  }
  line("all", all);
  print_alternative({}, 0);
}

}  // namespace

void measure_activations(Device& device, std::size_t steps) {
  const fashion::Settings settings;
  const auto layers = fashion::architecture(settings);
  const neural::FashionMnist data = neural::read_fashion_mnist();
  fashion::Curriculum curriculum(data.train, settings.batch, 1);
  ObservedMath math(device, layers, settings.parts);
  fashion::Training<ObservedMath> training(math, device.backend, settings,
                                           {.device_budget = swapmm::Bytes{std::uint64_t{320} << 20U}}, {}, curriculum);
  for (const std::size_t step : {std::size_t{1}, steps}) {
    training.run(step - 1 - training.step());
    math.begin();
    training.run(1);
    math.end();
    std::printf("\nStep %zu of the training, batch %zu\n", step, settings.batch);
    print(math);
  }
  const std::vector<float> weights = training.weights();
  std::printf("\nWeights, %.2f MB; shuffle + LZ4: ratio, encode GB/s, decode GB/s\n|",
              static_cast<double>(weights.size()) * 4 / 1e6);
  print_alternative(shuffled_lz4(weights), weights.size() * 4);
}

}  // namespace bench
