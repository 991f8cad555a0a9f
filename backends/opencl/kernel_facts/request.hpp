// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace swapmm::kernel_facts {

/// The first line of a request, and of the answer. Its number is the version of the analysis; the layer must know the
/// same one.
inline constexpr std::string_view first_line = "swapmm-kernel-facts 2\n";

/// A program whose kernels are to be described, and the device that it is built for.
struct Request {
  std::string address_bits;  ///< "32" or "64"
  std::string version;       ///< of the device: __OPENCL_VERSION__
  std::string c_version;     ///< of the language if no option says: "CL1.2"
  std::string extensions;    ///< names, separated by blanks
  bool images = false;       ///< __IMAGE_SUPPORT__
  bool part = false;         ///< it is linked with others, so functions may come from there
  std::string options;       ///< of the build
  std::string source;
  struct Header {
    std::string name;
    std::string text;
  };
  std::vector<Header> headers;  ///< that clCompileProgram() got
};

/// Reads the text that layer/facts/programs.cpp writes: fields "name bytes\n", the bytes, and "\n". False if it is not
/// such a text.
[[nodiscard]] bool read_request(std::string_view text, Request& request);

}  // namespace swapmm::kernel_facts
