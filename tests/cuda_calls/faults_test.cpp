// SPDX-License-Identifier: Apache-2.0
// Every call of the API fails, each in turn, under a manager; and the device is lost at any of them. Nothing computes
// here: what is seen is that calls stay in order, that every error has the API's code, and that nothing is left.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/backend/testing/fault_plan.hpp>
#include <swapmm/backend/testing/faulty.hpp>

#include "cuda_calls/checked_file.hpp"
#include "cuda_calls/support.hpp"
#include "support/effort.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

constexpr std::size_t layers = 4;
constexpr Bytes half{chain_bytes(layers).value / 2};

const std::uint64_t part = is_slow ? 60 : is_thorough() ? 2 : 6;  // one of so many calls
/// The call that fails after the n-th one did: of the first `always` each one, then one per stride.
std::uint64_t next_call(std::uint64_t n, std::uint64_t always, std::uint64_t stride) {
  return n + (n < always / part ? 1 : stride * part);
}

/// Calls that throw are tried once more; one that throws again is left out.
template <class Call>
void try_twice(std::vector<std::string>& errors, Call&& call) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      call();
      return;
    } catch (const Error& error) {
      errors.emplace_back(error.what());
    } catch (const OutOfMemory& error) {
      errors.emplace_back(error.what());
    }
  }
}

template <Backend B>
void run_chain(const B& backend, Form form, std::vector<std::string>& errors, std::uint64_t& followed,
               bool with_file = false) {
  std::optional<MemoryManager<B>> manager;
  Options options{.device_budget = half, .queue_depth = 16};
  if (with_file) {
    options.file = std::make_shared<CheckedFile>(Bytes{1U << 20U}, Bytes{64});
    options.file_staging = Bytes{10 * round_up(Bytes{chain_tensor.value / 2}, Bytes{64}).value};
    options.host_budget = options.file_staging;
  }
  try_twice(errors, [&] { manager.emplace(backend, options); });
  if (!manager) return;
  std::optional<Chain<B>> chain;
  try_twice(errors, [&] { chain.emplace(*manager, layers, form); });
  if (!chain) return;
  for (Number step = 0; step < 7; ++step) try_twice(errors, [&] { chain->iterate(step); });
  Numbers out(chain_length);
  for (const auto& weight : chain->weights) try_twice(errors, [&] { weight.download(out); });
  followed = manager->report().iterations_followed;
}

/// One run on a fresh fake with what `fault` breaks. True if something broke.
template <class MakeFault>
bool run_with_fault(const std::string& text, Form form, cudaError_t status, MakeFault&& make_fault) {
  fake_cuda::restart();
  bool happened = false;
  std::vector<std::string> errors;
  std::uint64_t followed = 0;
  {
    auto fault = make_fault();
    try {
      run_chain(fake_backend(), form, errors, followed);
    } catch (const BackendError& error) {  // the backend could not be made
      errors.emplace_back(error.what());
    }
    happened = fault->happened();
  }
  for (const std::string& error : errors) {
    const std::string number = "(" + std::to_string(static_cast<int>(status)) + ")";
    // Values that were lost with the first error are told as such.
    const bool known = error.find(number) != std::string::npos ||
                       error.find("an earlier failure left undefined") != std::string::npos ||
                       error.find("never written") != std::string::npos;
    CHECK_MESSAGE(known, text << ": " << error);
  }
  CHECK_MESSAGE(fake_cuda::objects() == fake_cuda::Objects{}, text << ": " << fake_cuda::objects());
  CHECK_MESSAGE(fake_cuda::violations().empty(), text << ": " << violations_text());
  if (!happened) {
    CHECK_MESSAGE(errors.empty(), text);
    CHECK_MESSAGE(followed == 4, text);
  }
  return happened;
}

}  // namespace

TEST_CASE("any call that fails once leaves all others in order and nothing behind") {
  for (const Form form : {Form::plain, Form::with_event}) {
    std::uint64_t n = 1;
    for (;; n = next_call(n, 100, 7)) {
      const bool happened = run_with_fault("call " + std::to_string(n) + " fails", form, cudaErrorInvalidValue, [&] {
        return std::make_unique<fake_cuda::FailingCall>("any", cudaErrorInvalidValue, n);
      });
      if (!happened) break;
    }
    CHECK(n > 400);  // the program makes more calls than that
  }
}

TEST_CASE("a device lost at any call is told by every later one, and everything ends") {
  for (const Form form : {Form::plain, Form::with_event}) {
    std::uint64_t n = 1;
    for (;; n = next_call(n, 100, 11)) {
      const bool happened = run_with_fault("lost at call " + std::to_string(n), form, cudaErrorLaunchFailure, [&] {
        return std::make_unique<fake_cuda::LosingDevice>(cudaErrorLaunchFailure, n);
      });
      if (!happened) break;
    }
    CHECK(n > 400);
  }
}

TEST_CASE("every call of the backend fails in every way, through the fault adaptor") {
  using Device = Faulty<CheckedBackend>;
  for (std::size_t m = 0; m < fault_mode_count; ++m) {
    const auto mode = static_cast<FaultMode>(m);
    // The host's waits decide what is over on the fake, which knows nothing of a failure behind its back.
    if (mode == FaultMode::late || mode == FaultMode::slow || mode == FaultMode::thrown) continue;
    for (std::size_t c = 0; c < fault_class_count; ++c) {
      const auto fault_class = static_cast<FaultClass>(c);
      if (!applicable(fault_class, mode)) continue;
      for (std::uint64_t n = 1;; n = next_call(n, 6, 17)) {
        const std::string text =
            std::string(to_string(fault_class)) + " " + std::string(to_string(mode)) + " " + std::to_string(n);
        fake_cuda::restart();
        bool fired = false;
        {
          std::vector<std::string> errors;
          std::uint64_t followed = 0;
          Device device(fake_backend(), FaultPlan{fault_class, mode, n});
          // Without pinned memory the pieces of values in a file are in pageable memory.
          const bool of_file = fault_class == FaultClass::read_file || fault_class == FaultClass::write_file ||
                               fault_class == FaultClass::pinned_allocation;
          run_chain(device, Form::plain, errors, followed, of_file);
          fired = device.fired() > 0;
          CHECK_MESSAGE((fired || (errors.empty() && followed == 4)), text);
        }
        CHECK_MESSAGE(fake_cuda::objects() == fake_cuda::Objects{}, text << ": " << fake_cuda::objects());
        CHECK_MESSAGE(fake_cuda::violations().empty(), text << ": " << violations_text());
        if (!fired) break;
      }
    }
  }
}
