// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// The version of the library. The build reads it from these three lines. They are macros so that the preprocessor can
/// select code by version.

/// @{
/// See swapmm::version_major.
#define SWAPMM_VERSION_MAJOR 0
#define SWAPMM_VERSION_MINOR 1
#define SWAPMM_VERSION_PATCH 0
/// @}

/// The public names of the library.
namespace swapmm {

/// The major version. Versions follow semver.org. While major is 0, a new minor version may change the interface.
inline constexpr int version_major = SWAPMM_VERSION_MAJOR;
inline constexpr int version_minor = SWAPMM_VERSION_MINOR;  ///< the minor version, see version_major
inline constexpr int version_patch = SWAPMM_VERSION_PATCH;  ///< the patch version, see version_major

}  // namespace swapmm
