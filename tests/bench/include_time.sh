#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long a file takes to compile that only includes swapmm: the price every user pays in every file.
#   tests/bench/include_time.sh [compiler]
set -euo pipefail

readonly compiler=${1:-g++} runs=5 target_s=1.5
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

printf '#include <swapmm/swapmm.hpp>\n' >"$folder/includes.cpp"
times=()
for ((run = 0; run < runs; ++run)); do
  start=$(date +%s%N)
  "$compiler" -std=c++20 -O2 -I "$root/include" -c "$folder/includes.cpp" -o "$folder/includes.o"
  times+=($(($(date +%s%N) - start)))
done
median=$(printf '%s\n' "${times[@]}" | sort -n | sed -n "$((runs / 2 + 1))p")
awk -v ns="$median" -v target="$target_s" -v runs="$runs" -v compiler="$compiler" 'BEGIN {
  printf "#include <swapmm/swapmm.hpp>: %.2f s with %s -O2 (median of %d; target: at most %s s)%s\n",
         ns / 1e9, compiler, runs, target, (ns / 1e9 > target) ? ": MISSED" : "" }'
