// SPDX-License-Identifier: Apache-2.0
// The simulated backend in the C interface.
#include <swapmm/swapmm.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/c_interface/failure.hpp>
#include <swapmm/c_interface/handles.hpp>
#include <swapmm/c_interface/manager_on.hpp>
#include <swapmm/c_interface/structs.hpp>
#include <swapmm/ir/limits.hpp>

namespace swapmm::c_interface {
namespace {

struct SimulatedNative {
  static constexpr bool needs_event = true;
  static void* address(const simulated::Address& address) { return address.data(); }
  static void* queue(simulated::Backend&) { return nullptr; }
  static NativeWaits waits(simulated::Backend&, const simulated::WaitList& waits) {
    return {waits.size() == 0 ? nullptr : &waits, waits.size()};
  }
  static simulated::NativeEvent event(void* event) { return *static_cast<const simulated::NativeEvent*>(event); }
};

class SimulatedManager final : public ManagerOn<simulated::Backend, SimulatedNative> {
 public:
  using ManagerOn::ManagerOn;

  void* launch(const SimulatedKernel& kernel) override {
    Running& running = require_running("swapmm_simulated_launch()");
    touches_.clear();
    for (const auto& item : request().items) {
      const Bytes bytes = item.record->bytes;
      const simulated::Place& place = running.operation.address(*item.record, Bytes{}, bytes).place();
      if (item.access != Access::write) touches_.push_back({place, bytes.value, false});
      if (item.access != Access::read) touches_.push_back({place, bytes.value, true});
    }
    if (const simulated::Address* const scratch = running.operation.scratch(); scratch != nullptr) {
      touches_.push_back({scratch->place(), request().scratch.value, true});
    }
    const auto body = [run = kernel.run, argument = kernel.argument] {
      if (run(argument) != 0) throw std::runtime_error("the kernel has failed");
    };
    if (!running.takes_waits) {
      backend().queue().launch(request().name, kernel.duration, touches_, body);
      return nullptr;
    }
    event_ = backend().queue().launch(request().name, kernel.duration, touches_, *running.waits, body);
    return &event_;
  }

 private:
  std::vector<simulated::Touch> touches_;
  simulated::NativeEvent event_;
};

using SimulatedHandle = BackendOn<simulated::Backend, SimulatedManager>;

swapmm_simulated_options defaults() {
  const simulated::Options options;
  return {
      .struct_size = sizeof(swapmm_simulated_options),
      .device_bytes = options.device_bytes.value,
      .host_bytes = 0,
      .h2d_bytes_per_second = options.h2d.bytes_per_second,
      .d2h_bytes_per_second = options.d2h.bytes_per_second,
  };
}

simulated::Options read_simulated_options(const swapmm_simulated_options* options) {
  swapmm_simulated_options given = defaults();
  if (options != nullptr) {
    check_struct_size<swapmm_simulated_options>(options->struct_size, sizeof(given), "swapmm_simulated_options");
    given = read_struct(*options, given);
  }
  if (given.h2d_bytes_per_second == 0 || given.d2h_bytes_per_second == 0) {
    throw UsageError("swapmm_simulated_options: a speed is 0");
  }
  for (const std::uint64_t bytes : {given.device_bytes, given.host_bytes}) {
    if (bytes >= limits::magnitude)
      throw UsageError("swapmm_simulated_options: " + std::to_string(bytes) + " bytes are 2^62 or more");
  }
  simulated::Options read;
  read.device_bytes = Bytes{given.device_bytes};
  if (given.host_bytes != 0) read.host_bytes = Bytes{given.host_bytes};
  read.h2d.bytes_per_second = given.h2d_bytes_per_second;
  read.d2h.bytes_per_second = given.d2h_bytes_per_second;
  return read;
}

}  // namespace
}  // namespace swapmm::c_interface

using namespace swapmm::c_interface;  // NOLINT(*-build-using-namespace)

swapmm_status swapmm_simulated_options_init(swapmm_simulated_options* options, uint64_t struct_size) {
  return guarded([&] {
    swapmm_simulated_options& given = required(options, "swapmm_simulated_options");
    check_struct_size<swapmm_simulated_options>(struct_size, sizeof(given), "swapmm_simulated_options");
    write_struct(given, defaults(), struct_size);
  });
}

swapmm_status swapmm_simulated_create(const swapmm_simulated_options* options, swapmm_backend** backend) {
  return make_backend<SimulatedHandle>(backend,
                                       [&] { return swapmm::simulated::Backend(read_simulated_options(options)); });
}

swapmm_status swapmm_simulated_neighbour(uint64_t bytes, swapmm_neighbour** neighbour) {
  return make_object(neighbour, "the pointer to the neighbour",
                     [&] { return new swapmm_neighbour{swapmm::simulated::neighbour(swapmm::Bytes{bytes})}; });
}

swapmm_status swapmm_simulated_violations(const swapmm_backend* backend, uint64_t* count) {
  return guarded([&] {
    required(count, "the pointer to the count") =
        SimulatedHandle::of(backend, "the simulated device").violation_count();
  });
}
