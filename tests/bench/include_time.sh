#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long a file takes to compile that only includes swapmm, alone and with the OpenCL backend: the price every user
# pays in every file. And a file that uses a manager on OpenCL, on CUDA and on the simulated device: makes a tensor, uploads,
# runs an operation, downloads, reports.
#   tests/bench/include_time.sh [compiler]
set -euo pipefail

readonly compiler=${1:-g++} runs=${RUNS:-5}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# seconds OPTIMIZATION: compiles $folder/file.cpp again and again; what each took, the least first. Processor time, so that
# other programs do not count.
seconds() {
  local run
  for ((run = 0; run < runs; ++run)); do
    { TIMEFORMAT='%U'; time "$compiler" -std=c++20 "$1" -I "$root/include" -I "$root/backends/opencl" \
      -I "$root/backends/cuda" -isystem "${CUDA_PATH:-/usr/local/cuda}/include" -c "$folder/file.cpp" -o "$folder/file.o"; } 2>&1
  done | sort -n
}

# measure TARGET_S OPTIMIZATION WHAT: compiles $folder/file.cpp.
measure() {
  local target_s=$1 optimization=$2 what=$3 median
  median=$(seconds "$optimization" | sed -n "$((runs / 2 + 1))p")
  awk -v s="$median" -v target="$target_s" -v runs="$runs" -v how="$compiler $optimization" -v what="$what" 'BEGIN {
    printf "%s: %.2f s with %s (median of %d; target: at most %s s)%s\n", what, s, how, runs, target, (s > target) ? ": MISSED" : "" }'
}

# include TARGET_S OPTIMIZATION HEADER...
include() {
  local target_s=$1 optimization=$2
  shift 2
  printf '#include <%s>\n' "$@" >"$folder/file.cpp"
  measure "$target_s" "$optimization" "#include $*"
}

# use TARGET_S OPTIMIZATION HEADER BACKEND
use() {
  cat >"$folder/file.cpp" <<TEXT
#include <$3>
#include <swapmm/swapmm.hpp>
#include <iostream>
#include <vector>
int main() {
  swapmm::MemoryManager manager{$4, {.device_budget = swapmm::Bytes{64 * 1024}}};
  auto x = manager.tensor<float>({1000}, "x");
  x.upload(std::vector<float>(1000, 21.0F));
  manager.run("twice", swapmm::updates(x), [&](auto& op) { (void)op[x]; });
  std::cout << x.download().size() << manager.report();
}
TEXT
  measure "$1" "$2" "a manager on $4"
}

include 1.5 -O2 swapmm/swapmm.hpp
if echo '#include <CL/cl.h>' | "$compiler" -D CL_TARGET_OPENCL_VERSION=120 -x c++ -fsyntax-only - 2>/dev/null; then
  include 3 -O0 swapmm/swapmm.hpp swapmm/opencl/backend.hpp
  use 3 -O0 swapmm/opencl/backend.hpp 'swapmm::opencl::Backend::pick()'
  use 3 -O2 swapmm/opencl/backend.hpp 'swapmm::opencl::Backend::pick()'
else
  echo "skipped: with the OpenCL backend, for there is no CL/cl.h (Debian: opencl-headers)"
fi
if [[ -e ${CUDA_PATH:-/usr/local/cuda}/include/cuda_runtime_api.h ]]; then
  use 3 -O0 swapmm/cuda/backend.hpp 'swapmm::cuda::Backend::pick()'
  use 3 -O2 swapmm/cuda/backend.hpp 'swapmm::cuda::Backend::pick()'
else
  echo "skipped: with the CUDA backend, for there is no CUDA toolkit at ${CUDA_PATH:-/usr/local/cuda}"
fi
use 3 -O0 swapmm/backend/testing/simulated.hpp 'swapmm::simulated::Backend()'
use 3 -O2 swapmm/backend/testing/simulated.hpp 'swapmm::simulated::Backend()'

# calls OPTIMIZATION WHAT PARTS: what a call of run() adds to a file, as the mean of twenty.
calls() {
  local optimization=$1 what=$2 parts=$3 count i best=()
  for count in 1 21; do
    {
      printf '#include <swapmm/%s>\n' backend/testing/simulated.hpp swapmm.hpp
      echo 'using B = swapmm::simulated::Backend;'
      echo 'void program(swapmm::MemoryManager<B>& manager, swapmm::Tensor<float, B>& a, swapmm::Tensor<float, B>& b,'
      echo '             [[maybe_unused]] swapmm::Bundle<B>& bundle) {'
      for ((i = 0; i < count; ++i)); do echo "  manager.run(\"$i\", $parts, [&](auto& op) { (void)op[a], (void)op[b]; });"; done
      echo '}'
    } >"$folder/file.cpp"
    best+=("$(seconds "$optimization" | sed -n 1p)")
  done
  awk -v one="${best[0]}" -v all="${best[1]}" -v how="$compiler $optimization" -v what="$what" 'BEGIN {
    printf "run() with %s, %s: %.2f s a file with one call, %.0f ms each further one\n", what, how, one, (all - one) * 50 }'
}

for optimization in -O0 -O2; do
  calls "$optimization" 'reads() and writes()' 'swapmm::reads(a), swapmm::writes(b)'
  calls "$optimization" 'replayable' 'swapmm::reads(a), swapmm::writes(b), swapmm::replayable'
  calls "$optimization" 'a bundle' 'bundle'
done
