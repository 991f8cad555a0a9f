#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The chain of peers/ on swapmm, on the program written by hand, and on StarPU where it was built: by turns in one run,
# medians of steady iterations, megabytes moved per iteration.
# usage: compare.sh FOLDER_OF_THE_PROGRAMS [ROUNDS]
set -euo pipefail
cd "$1"
rounds=${2:-9}
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT

export STARPU_NCPU=0 STARPU_NOPENCL=1 STARPU_OPENCL_ON_CPUS=1 STARPU_NCUDA=0 STARPU_CALIBRATE=1 STARPU_SCHED=lws
export STARPU_HOME=$log STARPU_SILENT=1 STARPU_BUS_STATS=1 STARPU_BUS_STATS_FILE=$log/bus

warm_up=5 # observed, planned, and the way into the plan

# steady FILE: its iterations behind the warm-up
steady() { grep '^iter ' "$1" | awk -v from="$warm_up" '$2 >= from'; }
median() { sort -n | awk '{v[NR] = $1} END {if (NR) printf "%.1f", v[int((NR + 1) / 2)]; else printf "-"}'; }

# compare MB INNER LIMIT_MB ITERATIONS
compare() {
  local mb=$1 inner=$2 limit=$3 iterations=$4 who
  rm -f "$log"/*.times "$log"/*.bytes "$log"/*.sums
  for ((round = 0; round < rounds; ++round)); do
    for who in hand_written starpu swapmm; do
      case $who in
        hand_written) ./swapmm_bench_opencl_hand_written 16 "$mb" "$inner" "$iterations" "$limit" >"$log/out" ;;
        swapmm) ./swapmm_bench_opencl_chain 16 "$mb" "$inner" "$iterations" "$limit" >"$log/out" 2>/dev/null ;;
        starpu)
          [[ -x ./swapmm_bench_opencl_starpu ]] || continue
          ((limit == 0)) && unset STARPU_LIMIT_OPENCL_MEM || export STARPU_LIMIT_OPENCL_MEM=$limit
          ./swapmm_bench_opencl_starpu 16 "$mb" "$inner" "$iterations" 1 >"$log/out" 2>"$log/err"
          ;;
      esac
      steady "$log/out" | awk '{print $3}' >>"$log/$who.times"
      [[ $who == starpu ]] || steady "$log/out" | awk '{print $6 " + " $9}' >"$log/$who.bytes"
      grep '^checksum' "$log/out" | awk '{print $2}' >>"$log/$who.sums"
    done
  done
  if [[ $(cat "$log"/*.sums | sort -u | wc -l) != 1 ]]; then
    echo "the programs do not agree on the result: $(cat "$log"/*.sums | sort -u | tr '\n' ' ')"
    exit 1
  fi
  local hand starpu ours
  hand=$(median <"$log/hand_written.times")
  ours=$(median <"$log/swapmm.times")
  starpu=$([[ -f $log/starpu.times ]] && median <"$log/starpu.times" || echo -)
  printf '%4d MB x%-4d %-8s %10s %10s %10s   %6s   %-12s %-12s\n' "$mb" "$inner" \
    "$( ((limit == 0)) && echo none || echo "$limit MB")" "$hand" "$starpu" "$ours" \
    "$(awk -v a="$ours" -v b="$hand" 'BEGIN {printf "%.2f", a / b}')" \
    "$(tail -n 1 "$log/hand_written.bytes")" "$(tail -n 1 "$log/swapmm.bytes")"
}

printf '%-13s %-8s %10s %10s %10s   %6s   %-12s %-12s\n' "tensors work" budget "by hand" StarPU swapmm ratio "MB by hand" "MB swapmm"
printf '%-13s %-8s %10s %10s %10s   %6s\n' "" "" ms ms ms "to hand"
for limit in 0 68 34; do compare 4 8 $limit 15; done
for limit in 0 17 9; do compare 1 8 $limit 25; done
rounds=1 # seconds an iteration
for limit in 0 68 34; do compare 4 128 $limit 9; done
