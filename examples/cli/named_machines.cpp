// SPDX-License-Identifier: Apache-2.0
// Machines by name, and swapmm machines, which lists them.
#include "named_machines.hpp"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <sstream>
#include <utility>

#include <swapmm/formats/v2/machine_json.hpp>

#include "command_line.hpp"
#include "output.hpp"

namespace swapmm::cli {
namespace {

// Figures are those of data sheets and standards, so they are upper limits: programs reach less.
// PCIe: 16 GT/s (4.0) or 32 GT/s (5.0) for a lane, 128 of 130 bits are data (PCI-SIG).
constexpr std::uint64_t pcie_4_x8 = 15'754'000'000;
constexpr std::uint64_t pcie_4_x16 = 31'508'000'000;
constexpr std::uint64_t pcie_5_x16 = 63'015'000'000;
constexpr std::uint64_t nvme_read = 7'450'000'000;  // Samsung 990 PRO, data sheet: up to 7,450 MB/s
constexpr std::uint64_t nvme_write = 6'900'000'000;
constexpr std::uint64_t gigabyte = 1'000'000'000;

constexpr std::string_view pcie_source = "PCIe: lanes x rate x 128/130 (PCI-SIG)";
constexpr std::string_view nvme_source = "NVMe: Samsung 990 PRO, 7.45 GB/s read, 6.9 GB/s write (data sheet)";

class Builder {
 public:
  /// A device with a host behind PCIe.
  Builder(std::string name, std::uint64_t device_gigabytes, std::uint64_t pcie, std::uint64_t host_gigabytes) {
    machine_.name = std::move(name);
    machine_.memories.push_back({"gpu", Bytes{device_gigabytes * gigabyte}, Bytes{256}, std::nullopt});
    machine_.engines.push_back({"gpu", v2::MemoryId{0}});
    machine_.capacities.push_back({"pcie.in", pcie});
    machine_.capacities.push_back({"pcie.out", pcie});
    machine_.host = add("host", host_gigabytes, pcie, pcie, true);
  }
  /// A disk, with copies that are staged in the host's memory.
  Builder& disk(std::uint64_t gigabytes, std::uint64_t read, std::uint64_t write) {
    add("disk", gigabytes, read, write, true);
    return *this;
  }
  /// All memory of neighbours, each with its own part of the device's NVLink.
  Builder& neighbours(int count, std::uint64_t gigabytes, std::uint64_t nvlink) {
    machine_.capacities.push_back({"nvlink.in", nvlink});
    machine_.capacities.push_back({"nvlink.out", nvlink});
    for (int i = 1; i <= count; ++i) add("gpu" + std::to_string(i), gigabytes, nvlink, nvlink, false);
    return *this;
  }
  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    v2::write_machine(out, machine_);
    return out.str();
  }

 private:
  v2::MemoryId add(const std::string& name, std::uint64_t gigabytes, std::uint64_t in, std::uint64_t out,
                   bool by_pcie) {
    const auto id = id_at<v2::MemoryId>(machine_.memories.size());
    machine_.memories.push_back({name, Bytes{gigabytes * gigabyte}, Bytes{256}, std::nullopt});
    const v2::CapacityId first{by_pcie ? 0U : 2U};
    const v2::CapacityId second{by_pcie ? 1U : 3U};
    machine_.links.push_back(
        {"from." + name, id, v2::MemoryId{0}, in, std::chrono::nanoseconds{0}, std::nullopt, {first}});
    machine_.links.push_back(
        {"to." + name, v2::MemoryId{0}, id, out, std::chrono::nanoseconds{0}, std::nullopt, {second}});
    return id;
  }

  v2::Machine machine_;
};

std::vector<NamedMachine> make_machines() {
  const std::string pcie(pcie_source);
  const std::string with_nvme = pcie + "; " + std::string(nvme_source);
  std::vector<NamedMachine> machines;
  const auto add = [&](const std::string& name, const std::string& summary, const std::string& sources,
                       const Builder& builder) {
    machines.push_back({name, summary, sources, builder.text()});
  };
  add("rtx4060ti-16g-nvme", "GeForce RTX 4060 Ti 16 GB, PCIe 4.0 x8, 32 GB host, 1 TB NVMe",
      "16 GB, PCIe 4.0 x8: NVIDIA's product page; " + with_nvme,
      Builder("rtx4060ti-16g-nvme", 16, pcie_4_x8, 32).disk(1000, nvme_read, nvme_write));
  add("rtx4090-24g-nvme", "GeForce RTX 4090 24 GB, PCIe 4.0 x16, 64 GB host, 1 TB NVMe",
      "24 GB, PCIe 4.0 x16: NVIDIA's product page; " + with_nvme,
      Builder("rtx4090-24g-nvme", 24, pcie_4_x16, 64).disk(1000, nvme_read, nvme_write));
  add("a100-40g-ssd", "the machine of G10: A100 40 GB, 15.754 GB/s, 128 GB host, SSD at 3.2 GB/s",
      "tests/data/traces/g10/README.md and G10 (MICRO 2023)",
      Builder("a100-40g-ssd", 40, pcie_4_x8, 128).disk(1000, 3'200'000'000, 3'200'000'000));
  add("a100x4-nvlink", "A100 40 GB with three idle neighbours, NVLink 300 GB/s each way, PCIe 4.0 x16, 256 GB host",
      "40 GB, NVLink 600 GB/s both ways together: A100 data sheet; " + pcie,
      Builder("a100x4-nvlink", 40, pcie_4_x16, 256).neighbours(3, 40, 300 * gigabyte));
  add("h100-80g-nvme", "H100 SXM 80 GB, PCIe 5.0 x16, 256 GB host, 4 TB NVMe",
      "80 GB, PCIe 5.0: H100 data sheet; " + with_nvme,
      Builder("h100-80g-nvme", 80, pcie_5_x16, 256).disk(4000, nvme_read, nvme_write));
  add("h200x4-nvlink", "H200 141 GB with three idle neighbours, NVLink 450 GB/s each way, PCIe 5.0 x16, 512 GB host",
      "141 GB, NVLink 900 GB/s both ways together, PCIe 5.0: H200 data sheet; " + pcie,
      Builder("h200x4-nvlink", 141, pcie_5_x16, 512).neighbours(3, 141, 450 * gigabyte));
  return machines;
}

struct MachinesOptions {
  CommonOptions common;
  std::string name;
};

ExitCode run_machines(const MachinesOptions& options) {
  if (!options.name.empty()) {
    const std::optional<std::string> text = named_machine(options.name);
    if (!text) {
      throw Failure(ExitCode::usage, "no machine is called \"" + options.name + "\"; there are " + machine_names());
    }
    std::cout << *text;
    return ExitCode::ok;
  }
  if (options.common.json) {
    json::array list;
    for (const NamedMachine& machine : named_machines()) {
      list.push_back({{"name", machine.name}, {"summary", machine.summary}, {"sources", machine.sources}});
    }
    print_json({{"machines", std::move(list)}});
    return ExitCode::ok;
  }
  for (const NamedMachine& machine : named_machines()) {
    std::cout << machine.name << "\n    " << machine.summary << "\n    " << machine.sources << '\n';
  }
  return ExitCode::ok;
}

}  // namespace

const std::vector<NamedMachine>& named_machines() {
  static const std::vector<NamedMachine> machines = make_machines();
  return machines;
}

std::optional<std::string> named_machine(std::string_view name) {
  const auto found = std::ranges::find(named_machines(), name, &NamedMachine::name);
  return found == named_machines().end() ? std::nullopt : std::optional{found->text};
}

std::string machine_names() {
  std::string names;
  for (const NamedMachine& machine : named_machines()) names += (names.empty() ? "" : ", ") + machine.name;
  return names;
}

void add_machines(CLI::App& program, Chosen& chosen) {
  const auto options = std::make_shared<MachinesOptions>();
  CLI::App& command = add_command(program, chosen, "machines",
                                  "The machines that --machine knows by name, and their files", options, run_machines);
  command.add_option("NAME", options->name, "Print the file of this machine")->type_name("");
  command.footer("Figures are those of data sheets: upper limits, of which programs reach less.\n");
}

}  // namespace swapmm::cli
