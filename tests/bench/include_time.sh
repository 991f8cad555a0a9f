#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long a file takes to compile that only includes swapmm, alone and with the OpenCL backend: the price every user
# pays in every file.
#   tests/bench/include_time.sh [compiler]
set -euo pipefail

readonly compiler=${1:-g++} runs=5
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# measure TARGET_S OPTIMIZATION HEADER...
measure() {
  local target_s=$1 optimization=$2 times=() run start median
  shift 2
  printf '#include <%s>\n' "$@" >"$folder/includes.cpp"
  for ((run = 0; run < runs; ++run)); do
    start=$(date +%s%N)
    "$compiler" -std=c++20 "$optimization" -I "$root/include" -I "$root/backends/opencl" -c "$folder/includes.cpp" \
      -o "$folder/includes.o"
    times+=($(($(date +%s%N) - start)))
  done
  median=$(printf '%s\n' "${times[@]}" | sort -n | sed -n "$((runs / 2 + 1))p")
  awk -v ns="$median" -v target="$target_s" -v runs="$runs" -v how="$compiler $optimization" -v headers="$*" 'BEGIN {
    printf "#include %s: %.2f s with %s (median of %d; target: at most %s s)%s\n",
           headers, ns / 1e9, how, runs, target, (ns / 1e9 > target) ? ": MISSED" : "" }'
}

measure 1.5 -O2 swapmm/swapmm.hpp
if echo '#include <CL/cl.h>' | "$compiler" -D CL_TARGET_OPENCL_VERSION=120 -x c++ -fsyntax-only - 2>/dev/null; then
  measure 3 -O0 swapmm/swapmm.hpp swapmm/opencl/backend.hpp
else
  echo "skipped: with the OpenCL backend, for there is no CL/cl.h (Debian: opencl-headers)"
fi
