// SPDX-License-Identifier: Apache-2.0
// Trains a convolutional network on Fashion-MNIST without a limit, and again in
// parts of the memory that it needs: with the same weights in the end, bit for
// bit.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>

#include "fashion_mnist/arguments.hpp"
#include "fashion_mnist/demo.hpp"
#include "fashion_mnist/results.hpp"
#include "neural/devices.hpp"
#include "neural/fashion_mnist.hpp"

namespace {

// Threads of the driver may get the signal.
std::atomic<bool> interrupt_seen{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// The first interrupt ends the run between two iterations; a second one is the default's.
void on_interrupt(int signal) {
  interrupt_seen = true;
  std::signal(signal, SIG_DFL);
}

// With the default batch, and the default epochs or more.
constexpr double wanted_accuracy = 0.85;

// On the device of a neural::OpenclMath or a neural::CudaMath.
template <class Math>
int run(Math& math, const fashion::Arguments& arguments) {
  const neural::FashionMnist data = neural::read_fashion_mnist();
  fashion::Demo<Math> demo(math, math.backend(), data, arguments, std::cout);
  const fashion::DemoResult result = demo.run();
  if (fashion::interrupted()) throw fashion::Interrupted();
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);  // until the files are whole
  std::cout << '\n';
  print(std::cout, result);
  const fashion::ReportFiles files = write_files(arguments.report, result);
  std::cout << "\nreport " << files.report.string() << ", picture " << files.picture.string() << ", trace "
            << files.trace.string() << " (for ui.perfetto.dev)\n";
  if (!result.all_identical()) {
    std::cerr << "the weights of a run differ from those without a limit\n";
    return 1;
  }
  if (result.batch != fashion::Settings().batch || arguments.epochs < fashion::Arguments().epochs) return 0;
  double least = result.test_accuracy;
  for (const fashion::RunResult& run : result.runs) least = std::min(least, run.accuracy.value_or(least));
  if (least < wanted_accuracy) {
    std::cerr << "the network learned less than it should: a test accuracy of " << least << '\n';
    return 1;
  }
  return 0;
}

}  // namespace

bool fashion::interrupted() { return interrupt_seen; }

int main(int count, char** words) {
  try {
    const fashion::Arguments arguments = fashion::parse(std::span(words, static_cast<std::size_t>(count)).subspan(1));
    if (arguments.help) {
      std::cout << fashion::usage;
      return 0;
    }
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGTERM, on_interrupt);
    fashion::check_writable(arguments.report);
    return neural::on_device(
        arguments.device, std::cout, [&](auto& math) { return run(math, arguments); }, arguments.convolutions);
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
