// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Marks what a shared library of swapmm exports. Everything else is hidden. See
/// docs/decisions/0015-public-boundary.md.
///
/// The libraries' targets define SWAPMM_SHARED for shared builds, for themselves and for their consumers, and
/// SWAPMM_BUILDING_LIBRARY only for themselves. Only Windows needs the two. On other systems the marked names have
/// default visibility in static libraries, too: an exception type must be one type in the whole program.

/// @{
/// Part of the public interface: a function, or a class with all its members.
#if defined(_WIN32)
#if !defined(SWAPMM_SHARED)
#define SWAPMM_EXPORT
#elif defined(SWAPMM_BUILDING_LIBRARY)
#define SWAPMM_EXPORT __declspec(dllexport)
#else
#define SWAPMM_EXPORT __declspec(dllimport)
#endif
#else
#define SWAPMM_EXPORT __attribute__((visibility("default")))
#endif
/// @}

/// An internal function that installed templates call. Exported, and still not for programs: it may change in any
/// version.
#define SWAPMM_TEMPLATE_EXPORT SWAPMM_EXPORT
