// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace swapmm::opencl::layer::record {

/// The file of the log. Records are collected, and written when there are many, and at flush(). The file is made with
/// the first write. When a write fails, the log ends, with one line on stderr.
class LogFile {
 public:
  explicit LogFile(std::string path) : path_(std::move(path)) {}

  /// Adds whole records.
  void append(std::string_view records);
  void flush();
  /// From now on nothing is collected: the process ends.
  void write_through();
  /// In the child of a fork: what was collected is the parent's.
  void abandon();
  /// Ends the log, and says why.
  void fail(const std::string& why);
  [[nodiscard]] bool is_on() const { return state_ == State::on; }

 private:
  enum class State : std::uint8_t { on, off };
  void write_all();
  std::string path_;
  std::mutex mutex_;
  std::string collected_;
  int file_ = -1;
  bool write_through_ = false;
  State state_ = State::on;
};

}  // namespace swapmm::opencl::layer::record
