// SPDX-License-Identifier: Apache-2.0
// Trains a convolutional network on Fashion-MNIST without a limit, and again in
// parts of the memory that it needs: with the same weights in the end, bit for
// bit.
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>

#include <swapmm/opencl/backend.hpp>

#include "fashion_mnist/arguments.hpp"
#include "fashion_mnist/demo.hpp"
#include "fashion_mnist/results.hpp"
#include "neural/fashion_mnist.hpp"
#include "neural/opencl_math.hpp"

namespace {

volatile std::sig_atomic_t interrupt_seen = 0;

// The first interrupt ends the run between two iterations; a second one is the
// default's.
void on_interrupt(int signal) {
  interrupt_seen = 1;
  std::signal(signal, SIG_DFL);
}

swapmm::opencl::Backend pick(const std::string& device) {
  return device.empty() ? swapmm::opencl::Backend::pick(std::cout) : swapmm::opencl::Backend::pick(device, std::cout);
}

constexpr double wanted_accuracy = 0.85;

int run(const fashion::Arguments& arguments) {
  const neural::FashionMnist data = neural::read_fashion_mnist();
  const auto backend = pick(arguments.device);
  neural::OpenclMath math(backend);
  fashion::Demo<neural::OpenclMath> demo(math, backend, data, arguments, std::cout);
  const fashion::DemoResult result = demo.run();
  std::cout << '\n';
  print(std::cout, result);
  const fashion::ReportFiles files = write_files(arguments.report, result);
  std::cout << "\nreport " << files.report.string() << ", picture " << files.picture.string() << ", trace "
            << files.trace.string() << " (for ui.perfetto.dev)\n";
  if (!result.all_identical()) {
    std::cerr << "the weights of a run differ from those without a limit\n";
    return 1;
  }
  if (arguments.batch == 0 && result.test_accuracy < wanted_accuracy) {
    std::cerr << "the network learned less than it should: a test accuracy of " << result.test_accuracy << '\n';
    return 1;
  }
  return 0;
}

}  // namespace

bool fashion::interrupted() { return interrupt_seen != 0; }

int main(int count, char** words) {
  try {
    const fashion::Arguments arguments = fashion::parse(std::span(words, static_cast<std::size_t>(count)).subspan(1));
    if (arguments.help) {
      std::cout << fashion::usage;
      return 0;
    }
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGTERM, on_interrupt);
    return run(arguments);
  } catch (const std::invalid_argument& error) {
    std::cerr << "fashion_mnist: " << error.what() << "\n\n" << fashion::usage;
    return 2;
  } catch (const fashion::Interrupted&) {
    std::cerr << "fashion_mnist: interrupted, nothing was written\n";
    return 130;
  } catch (const std::exception& error) {
    std::cerr << "fashion_mnist: " << error.what() << '\n';
    return 1;
  }
}
