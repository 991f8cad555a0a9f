// SPDX-License-Identifier: Apache-2.0

#include <swapmm/backend/testing/simulated/neighbour.hpp>

#include <utility>

namespace swapmm::simulated {

Neighbour::Neighbour(NeighbourOptions options)
    : options_(std::move(options)), state_(std::make_shared<detail::NeighbourState>()) {
  state_->capacity = options_.bytes;
  state_->in = options_.in;
  state_->out = options_.out;
}

Neighbour::~Neighbour() = default;

std::shared_ptr<Neighbour> neighbour(Bytes bytes) {
  NeighbourOptions options;
  options.bytes = bytes;
  return std::make_shared<Neighbour>(std::move(options));
}

}  // namespace swapmm::simulated
