// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/core/host_views.hpp>
#include <swapmm/runtime/core/run_again.hpp>
#include <swapmm/runtime/core/running_operation.hpp>
#include <swapmm/runtime/run/callable.hpp>
#include <swapmm/runtime/run/run_operation.hpp>
#include <swapmm/runtime/slices/joined_slices.hpp>
#include <swapmm/runtime/slices/slice_layout.hpp>

/// What programs call of a manager on a backend: as `extern template` where the backend is declared, and as `template`
/// in one source, so that it is compiled once and not in each file that uses a manager. Used in namespace
/// swapmm::runtime. `export_as` is SWAPMM_TEMPLATE_EXPORT in a header of a library.
#define SWAPMM_RUNTIME_INSTANCES(template_, export_as, B)                                                            \
  template_ class export_as Core<B>;                                                                                 \
  template_ class export_as RunningOperation<B>;                                                                     \
  template_ class export_as JoinedSlices<B>;                                                                         \
  template_ class export_as HostViewState<B>;                                                                        \
  template_ export_as std::unique_ptr<HostViewState<B>> open_host_view<B>(Core<B>&, const TensorKey<B>&, Bytes,      \
                                                                          std::span<std::byte>, Bytes, Bytes, bool); \
  template_ export_as void copy_in_views<B>(Core<B>&, const TensorKey<B>&, bool);                                    \
  template_ export_as void forget_in_views<B>(Core<B>&, std::span<const BundleItem<B>>, bool);                       \
  template_ export_as void upload_beside_views<B>(Core<B>&, const TensorKey<B>&, Bytes, std::span<const std::byte>); \
  template_ export_as void download_beside_views<B>(Core<B>&, const TensorKey<B>&, Bytes, std::span<std::byte>);     \
  template_ export_as PendingRead& promise_beside_views<B>(Core<B>&, const TensorKey<B>&, Bytes,                     \
                                                           std::span<std::byte>);                                    \
  template_ export_as void run_operation<B>(Core<B>&, std::span<BundleItem<B>>, const Request<B>&, const Work<B>&);  \
  template_ export_as void run_with_slices<B>(Core<B>&, std::vector<BundleItem<B>>&,                                 \
                                              const std::vector<BundledSlice<B>>&, const Request<B>&,                \
                                              const CallableRef<B>&);                                                \
  template_ export_as void run_again_before<B>(Core<B>&, const Request<B>&);                                         \
  template_ export_as void run_again_before_end<B>(Core<B>&);                                                        \
  template_ export_as void run_again_before_upload<B>(Core<B>&, const TensorKey<B>&);                                \
  template_ export_as void run_again_before_read<B>(Core<B>&, const TensorKey<B>&)
