// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// The one place that knows the version: the build reads these three lines. Macros, so that programs can choose code
/// by version before they compile it.

/// @{
/// See swapmm::version_major.
#define SWAPMM_VERSION_MAJOR 0
#define SWAPMM_VERSION_MINOR 1
#define SWAPMM_VERSION_PATCH 0
/// @}

/// Everything of the library.
namespace swapmm {

/// Versions follow semver.org. While major is 0, a new minor version may change the interface.
inline constexpr int version_major = SWAPMM_VERSION_MAJOR;
inline constexpr int version_minor = SWAPMM_VERSION_MINOR;  ///< see version_major
inline constexpr int version_patch = SWAPMM_VERSION_PATCH;  ///< see version_major

}  // namespace swapmm
