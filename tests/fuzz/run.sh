#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM TARGET SECONDS FOLDER: gives PROGRAM all inputs in corpus/TARGET, then new ones made of them for SECONDS.
# What it learns is kept in FOLDER/TARGET for the next time, and an input that ends it as FOLDER/TARGET-...
set -euo pipefail
program=$1 target=$2 seconds=$3 folder=$4
here=$(dirname "${BASH_SOURCE[0]}")
options=()
case $target in
  chain) ;; # decodes its bytes: no text
  packing) options=("-dict=$here/packing.dict") ;;
  *) options=("-dict=$here/json.dict") ;;
esac
mkdir -p "$folder/$target"
exec "$program" "${options[@]}" -max_total_time="$seconds" -timeout=20 -verbosity=0 -print_final_stats=1 \
  -artifact_prefix="$folder/$target-" "$folder/$target" "$here/corpus/$target"
