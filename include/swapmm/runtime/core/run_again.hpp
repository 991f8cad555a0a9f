// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <swapmm/runtime/core/kept_operations.hpp>
#include <swapmm/runtime/core/session.hpp>
#include <swapmm/runtime/values/bundle.hpp>

namespace swapmm::runtime {

template <Backend B>
class Core;

/// Runs operations again until `next(session)` returns null. The caller is not inside the manager, because operations
/// enter by themselves.
template <Backend B, class Next>
void run_all_again(Core<B>& core, Next&& next) {
  for (;;) {
    KeptOperation<B>* kept = nullptr;
    {
      const typename Core<B>::Entry entry(core);
      kept = entry->translate({"running an operation again", {}}, [&] { return next(*entry.session()); });
    }
    if (kept == nullptr) return;
    const Request<B> request = kept->request();
    kept->callable->run(core, request);
    kept->succeeded = true;
  }
}

/// The same for a caller that uses the manager itself, so that it does not end meanwhile.
template <Backend B, class Next>
void run_again(Core<B>& core, Next&& next) {
  const auto* const state = core.session_state();
  if (state != nullptr && state->kept.may_run_again()) [[unlikely]]
    run_all_again(core, std::forward<Next>(next));
}

/// The same for a caller that uses a tensor, whose manager another thread may end meanwhile: it is asked inside. What
/// is for a tensor that is gone does not run. `next(session, record)` as above.
template <Backend B, class Next>
void run_again_for(Core<B>& core, const TensorKey<B>& tensor, Next&& next) {
  {
    const typename Core<B>::Entry entry(core);
    if (!entry->state.kept.may_run_again()) [[likely]]
      return;
  }
  run_all_again(core, [&](Session<B>& session) -> KeptOperation<B>* {
    return tensor.exists() ? next(session, *tensor.record) : nullptr;
  });
}

/// Runs what has to run again before the operation. A plan that does not expect the operation is left, and what only
/// replays could have given back is made at once.
template <Backend B>
void run_again_before(Core<B>& core, const Request<B>& request) {
  run_again(core, [&](Session<B>& session) { return session.controller.next_again(request); });
}

/// Runs what has to run again before the iteration ends: what a plan has dropped, to make it again later in the
/// iteration, if that ends early. For entrances with EntranceOptions::callables_until_end.
template <Backend B>
void run_again_before_end(Core<B>& core) {
  run_again(core, [](Session<B>& session) { return session.controller.next_again_before_end(); });
}

/// What must run again before the host uploads to the tensor.
template <Backend B>
void run_again_before_upload(Core<B>& core, const TensorKey<B>& tensor) {
  run_again_for(core, tensor, [](Session<B>& session, Record<B>& record) {
    return session.controller.next_again_before_upload(record);
  });
}

/// What must run again before the host reads the tensor.
template <Backend B>
void run_again_before_read(Core<B>& core, const TensorKey<B>& tensor) {
  run_again_for(core, tensor, [](Session<B>& session, Record<B>& record) {
    return session.controller.next_again_before_read(record);
  });
}

}  // namespace swapmm::runtime
