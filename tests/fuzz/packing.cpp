// SPDX-License-Identifier: Apache-2.0
// Any text as a file of buffers with lifetimes (CSV), and small ones packed.
#include <string>

#include "../../examples/cli/buffers.hpp"
#include "fuzz/target.hpp"

using namespace swapmm;

namespace {

void expect_apart(const cli::Buffers& buffers, const Packing& packing, Bytes alignment) {
  fuzz::expect(packing.offsets.size() == buffers.size(), "each buffer has an offset");
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const cli::Buffer buffer = buffers[i];
    const Bytes end = packing.offsets[i] + buffer.size;
    fuzz::expect(packing.offsets[i].value % alignment.value == 0, "offsets are aligned");
    fuzz::expect(end <= packing.height, "every buffer ends below the height");
    for (std::size_t j = 0; j < i; ++j) {
      const cli::Buffer other = buffers[j];
      const bool meet = buffer.lower < other.upper && other.lower < buffer.upper;
      const bool share = packing.offsets[i] < packing.offsets[j] + other.size && packing.offsets[j] < end;
      fuzz::expect(!meet || !share, "no byte belongs to two buffers at a time",
                   std::to_string(i) + " and " + std::to_string(j));
    }
  }
}

void expect_packed(const cli::Buffers& buffers, Bytes alignment) {
  const auto problem = cli::packing_problem_of(buffers, alignment);
  if (!problem) {
    fuzz::expect_clear(problem.problem().message);
    return;
  }
  const auto packing = pack_lowest(*problem, {.ejection_steps = 50});
  fuzz::expect(packing.has_value(), "without arenas there is always a packing");
  fuzz::expect(packing->height >= packing_load(*problem), "no packing is lower than the load");
  expect_apart(buffers, *packing, alignment);
  fuzz::expect(!cli::buffers_with_offsets(buffers, packing->offsets).empty(), "a packing can be written");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto buffers = cli::read_buffers(fuzz::text_of(data, size));
  if (!buffers) {
    fuzz::expect(!buffers.problem().message.empty(), "an error says something");
    return 0;
  }
  static constexpr std::size_t most = 24;
  if (buffers->size() > most) return 0;
  expect_packed(*buffers, Bytes{1});
  expect_packed(*buffers, Bytes{64});
  return 0;
}
