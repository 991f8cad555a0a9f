// SPDX-License-Identifier: Apache-2.0
#pragma once

// Results as JSON: README.md beside this says what the fields mean.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <boost/json.hpp>

#include "bench/gpu/statistics.hpp"
#include "bench/gpu/sweep.hpp"

namespace swapmm::bench {

[[nodiscard]] inline boost::json::array to_json(const std::vector<double>& values) {
  boost::json::array array;
  for (const double value : values) array.emplace_back(value);
  return array;
}
[[nodiscard]] inline boost::json::object to_json(const Comparison& c) {
  return {{"ratio", c.ratio},
          {"interval_95", {c.interval.low, c.interval.high}},
          {"mean_ratio", c.mean_ratio},
          {"mean_interval_95", {c.mean_interval.low, c.mean_interval.high}}};
}

[[nodiscard]] inline boost::json::object to_json(const std::string& network, const boost::json::object& config,
                                                 const Record& r) {
  const auto ms = [](std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e6; };
  boost::json::object o{{"network", network},
                        {"contender", r.contender},
                        {"config", config},
                        {"k", r.k},
                        {"memory_bytes", r.memory.value}};
  if (!r.iterations_ms.empty()) {
    o["iteration_ms"] = median(r.iterations_ms);
    o["iterations_ms"] = to_json(r.iterations_ms);
  }
  if (!r.resident_ms.empty()) o["resident_ms"] = median(r.resident_ms);
  if (r.contender == "floor") return o;
  o["compute_ms"] = r.compute_ms;
  o["idle_ms"] = r.idle_ms;
  o["h2d_bytes"] = r.h2d.value;
  o["d2h_bytes"] = r.d2h.value;
  o["pinned_bytes"] = r.pinned.value;
  if (r.predicted) {
    o["predicted_ms"] = ms(r.predicted->iteration);
    o["lower_bound_ms"] = ms(r.predicted->lower_bound);
    o["replays"] = r.replays;
    o["replay_ms"] = r.replay_ms;
    o["encoded"] = r.encoded;
    boost::json::array stalls;
    for (const Stall& stall : r.stalls) stalls.push_back(boost::json::object{{"what", stall.what}, {"ms", stall.ms}});
    o["stalls"] = stalls;
  }
  if (r.identical) o["identical"] = *r.identical;
  if (!r.note.empty()) o["note"] = r.note;
  return o;
}

/// Replaces the file as a whole: readers never see half of it. Throws std::runtime_error.
inline void write_json(const std::filesystem::path& path, const boost::json::value& value) {
  const std::filesystem::path half = path.string() + ".part";
  {
    std::ofstream out(half);
    out << boost::json::serialize(value) << '\n';
    if (!out.flush()) throw std::runtime_error(half.string() + " cannot be written");
  }
  std::error_code error;
  std::filesystem::rename(half, path, error);
  if (error) throw std::runtime_error(path.string() + " cannot be written: " + error.message());
}

}  // namespace swapmm::bench
