// SPDX-License-Identifier: Apache-2.0
#include "fashion_mnist/arguments.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <swapmm/plan/planners.hpp>

namespace fashion {

const std::string_view usage =
    "fashion_mnist [--budget SIZE [--codec SIZE]] [--ways WAYS] [--link SPEED] [--epochs N] [--batch N]\n"
    "              [--pieces N|choose] [--device NAME] [--convolutions NAME] [--planner NAME] [--report FILE]\n"
    "fashion_mnist --replicas N [--chunk N] [--share-links HOW] [--budget SIZE] [--epochs N] [--batch N] ...\n"
    "  --budget   compare this budget with none, instead of 100 %, 50 %, 25 % of the peak of live bytes and the\n"
    "             smallest that works: a part of the peak (25%) or a size (64MiB, 64MB, 1GiB, ...)\n"
    "  --codec    values with many zeros are encoded on their way to the host, through so much of the budget: a part\n"
    "             of it (10%) or a size\n"
    "  --ways     what plans may do with a value that has to leave: swap, or swap,recompute: operations of the "
    "forward\n"
    "             pass may also run again; default swap\n"
    "  --link     plan for links of this speed (1GB/s, 500MB/s, ...), instead of what was observed\n"
    "  --epochs   passes over the 60,000 images, default 2\n"
    "  --batch    images per iteration, a multiple of 4, default 512\n"
    "  --pieces   divide the batch into so many pieces, one after the other, or into the number that is predicted to "
    "be\n"
    "             fastest within the budget; needs --budget, a part of it being one of the peak of the whole batch\n"
    "  --device   cuda, opencl, one of their devices (cuda:0, opencl:1), or a part of a device's name; default: what\n"
    "             SWAPMM_DEVICE says, else a CUDA device if there is one, else the best of OpenCL\n"
    "  --convolutions  on CUDA: cudnn or gemm (matrix products); default: cudnn where it is installed\n"
    "  --planner  who makes the plans, default best\n"
    "  --report   the report, default demo-report.json; the pictures are written beside it\n"
    "  --replicas so many replicas learn a part of each batch, each on a device of its own if there are as many of "
    "the\n"
    "             same name; the gradients are added up on the host. Compares with one device that does the same. "
    "Under\n"
    "             mpirun, so many in each process (1), and --replicas may be left out. --budget is that of a device\n"
    "  --chunk    layers whose gradients are added up together; default: the number is searched for\n"
    "  --share-links  replicas plan together, as the way to the host is shared: measured, or a speed of all copies\n"
    "             together (12GB/s)\n";

namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view wanted, std::string_view text) {
  throw std::invalid_argument(std::string(name) + " takes " + std::string(wanted) + ", not \"" + std::string(text) +
                              "\"");
}

std::size_t number(std::string_view name, std::string_view text, std::size_t most) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0 || value > most) {
    refuse(name, "a whole number from 1 to " + std::to_string(most), text);
  }
  return value;
}

Budget budget(std::string_view name, std::string_view text) {
  const std::string wanted = std::string(name == "--codec" ? "a part of the budget" : "a part of the peak") +
                             " (25%) or a size (1000000B, 64MB, 64MiB, 1GB, 1GiB)";
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc{} || !std::isfinite(value) || value <= 0) refuse(name, wanted, text);
  if (unit == "%") {
    if (value > 1000) refuse(name, wanted, text);
    return {value / 100, {}};
  }
  constexpr std::array<std::pair<std::string_view, double>, 5> units{
      {{"B", 1}, {"MB", 1e6}, {"MiB", 1 << 20U}, {"GB", 1e9}, {"GiB", 1 << 30U}}};
  const auto known = std::find_if(units.begin(), units.end(), [&](const auto& one) { return one.first == unit; });
  if (known == units.end() || value * known->second < 1 || value * known->second > 1e15) {
    refuse(name, wanted, text);
  }
  return {0, swapmm::Bytes{static_cast<std::uint64_t>(value * known->second)}};
}

std::uint64_t speed(std::string_view name, std::string_view text) {
  constexpr std::string_view wanted = "a speed (500MB/s, 1GB/s, 1.5GiB/s, ...)";
  if (!text.ends_with("/s") || text.find('%') != std::string_view::npos) refuse(name, wanted, text);
  try {
    return budget(name, text.substr(0, text.size() - 2)).bytes.value;
  } catch (const std::invalid_argument&) {
    refuse(name, wanted, text);
  }
}

std::size_t pieces(std::string_view text) {
  if (text == "choose") return 0;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0 || value > 2048) {
    refuse("--pieces", "a whole number from 1 to 2048, or choose", text);
  }
  return value;
}

std::string planner(std::string_view text) {
  std::string names;
  for (const swapmm::NamedPlanner& known : swapmm::planners()) {
    if (known.name == text) return std::string(text);
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  refuse("--planner", "one of " + names, text);
}

}  // namespace

void check_replicas(const Arguments& arguments) {
  if (arguments.with_replicas) return;
  throw std::invalid_argument("--pieces, --report, --codec, --ways and --link do not go with replicas");
}

Arguments parse(std::span<char* const> words) {
  Arguments result;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::string_view name = words[i];
    if (name == "--help" || name == "-h") {
      result.help = true;
      return result;
    }
    constexpr std::array<std::string_view, 14> known{
        "--budget", "--codec",        "--ways",    "--link",   "--epochs",   "--batch", "--pieces",
        "--device", "--convolutions", "--planner", "--report", "--replicas", "--chunk", "--share-links"};
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw std::invalid_argument("there is no option " + std::string(name));
    }
    if (i + 1 >= words.size() || *words[i + 1] == '\0') {
      throw std::invalid_argument(std::string(name) + " needs a value");
    }
    const std::string_view value = words[i + 1];
    if (name == "--budget") result.budget = budget(name, value);
    if (name == "--codec") result.codec = budget(name, value);
    if (name == "--ways") {
      if (value != "swap" && value != "swap,recompute") refuse(name, "swap or swap,recompute", value);
      result.recompute = value != "swap";
    }
    if (name == "--link") result.link = speed(name, value);
    if (name == "--epochs") result.epochs = number(name, value, 1000);
    if (name == "--batch") {
      result.batch = number(name, value, 2048);
      if (result.batch % 4 != 0) refuse(name, "a multiple of 4", value);
    }
    if (name == "--pieces") result.pieces = pieces(value);
    if (name == "--device") result.device = value;
    if (name == "--convolutions") {
      if (value != "gemm" && value != "cudnn") refuse(name, "gemm or cudnn", value);
      result.convolutions = value;
    }
    if (name == "--planner") result.planner = planner(value);
    if (name == "--report") result.report = value;
    if (name == "--replicas") result.replicas = number(name, value, 64);
    if (name == "--chunk") result.chunk = number(name, value, 7);
    if (name == "--share-links") result.share_links = value == "measured" ? 0 : speed(name, value);
    constexpr std::array<std::string_view, 5> one_device{"--pieces", "--report", "--codec", "--ways", "--link"};
    if (std::find(one_device.begin(), one_device.end(), name) != one_device.end()) result.with_replicas = false;
  }
  if (result.replicas != 0) check_replicas(result);
  if (result.share_links && result.replicas < 2) {
    throw std::invalid_argument("--share-links needs --replicas, at least 2 in a process");
  }
  if (result.pieces && !result.budget) throw std::invalid_argument("--pieces needs --budget");
  if (result.recompute && result.pieces) throw std::invalid_argument("--ways swap,recompute does not go with --pieces");
  if (result.recompute && !result.planner.empty() && result.planner != "best") {
    throw std::invalid_argument("--ways swap,recompute needs the planner best");
  }
  if (result.codec && !result.budget) throw std::invalid_argument("--codec needs --budget");
  return result;
}

}  // namespace fashion
