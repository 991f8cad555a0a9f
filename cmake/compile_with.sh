#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile_with.sh COMPILER [LAUNCHER...] -- THE BUILD'S COMPILER ARGUMENT...
# Puts another compiler in the place of the build's (SWAPMM_PROGRAMS_COMPILER): a launcher of CMake.
compiler=$1
shift
launcher=
while [ "$1" != -- ]; do
  launcher="$launcher $1"
  shift
done
shift 2
# shellcheck disable=SC2086 # a list of words
exec $launcher "$compiler" "$@"
