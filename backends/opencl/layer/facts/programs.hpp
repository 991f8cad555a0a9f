// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "../loader/table.hpp"
#include "program.hpp"

namespace swapmm::opencl::layer::facts {

// Which sources the driver's programs come from. Calls that make, build and ask programs tell it here; the driver tells
// the source.

/// A program that was made in some way; nothing is known of it yet.
void program_made(cl_program program);
/// A program that was made from this binary: what is known is what was known of the program that it was taken from.
void program_made_from(cl_program program, std::span<const unsigned char> binary);
/// The driver was asked to build it with these options.
void program_built(cl_program program, const std::string& options);
/// The same for a part of a program, with headers.
void program_compiled(cl_program program, const std::string& options, std::span<const cl_program> headers,
                      const char* const* names);
/// A program that was linked of these.
void program_linked(cl_program program, std::span<const cl_program> parts);
/// The program got the binaries of a program.
void binaries_told(cl_program program, std::span<unsigned char* const> binaries);
/// The driver has destroyed it.
void program_gone(cl_program program);

/// The sources that a program was made of; the kernel is in one of them. Empty if nothing is known.
[[nodiscard]] std::vector<Program*> parts_of(cl_program program);

}  // namespace swapmm::opencl::layer::facts
