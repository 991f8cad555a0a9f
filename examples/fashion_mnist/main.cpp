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
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#ifdef FASHION_WITH_MPI
#include <swapmm/mpi/run.hpp>
#endif

#include "fashion_mnist/arguments.hpp"
#include "fashion_mnist/demo.hpp"
#include "fashion_mnist/replica_demo.hpp"
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

// `exchange`: null if this is the only process.
int run_replicas(fashion::Arguments arguments, const std::shared_ptr<swapmm::Exchange>& exchange) {
  fashion::check_replicas(arguments);  // not all know that processes of mpirun are replicas
  if (arguments.replicas == 0) arguments.replicas = 1;
  const std::size_t rank = exchange ? exchange->rank() : 0;
  std::ostream nobody(nullptr);
  std::ostream& say = rank == 0 ? std::cout : nobody;  // one process speaks for all
  const neural::FashionMnist data = neural::read_fashion_mnist();
  return neural::on_devices(
      arguments.device, rank * arguments.replicas, arguments.replicas, say,
      [&](const auto& maths, const neural::ReplicaDevices& devices) {
        if (!fashion::ReplicaDemo(maths, devices, data, arguments, exchange, say).run()) {
          std::cerr << "the weights of replicas differ\n";
          return 1;
        }
        return 0;
      },
      arguments.convolutions);
}

bool many_processes() {
#ifdef FASHION_WITH_MPI
  return swapmm::mpi::launched();
#else
  return false;
#endif
}

int run_process([[maybe_unused]] int& count, [[maybe_unused]] char**& words, const fashion::Arguments& arguments) {
#ifdef FASHION_WITH_MPI
  if (many_processes()) {
    return swapmm::mpi::run(count, words, [&](const std::shared_ptr<swapmm::Exchange>& exchange) {
      return run_replicas(arguments, exchange);
    });
  }
#endif
  return run_replicas(arguments, nullptr);
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
    if (arguments.replicas != 0 || many_processes()) return run_process(count, words, arguments);
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
