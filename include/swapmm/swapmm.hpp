// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The umbrella header: everything that a program needs except its backend.

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/divided.hpp>
#include <swapmm/error.hpp>
#include <swapmm/memory_manager.hpp>
#include <swapmm/operation.hpp>
#include <swapmm/options.hpp>
#include <swapmm/report.hpp>
#include <swapmm/scheduler.hpp>
#include <swapmm/shared_links.hpp>
#include <swapmm/tensor.hpp>
#include <swapmm/version.hpp>
