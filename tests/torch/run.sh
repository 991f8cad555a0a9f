#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh [--everything] PYTHON TEST...: runs a test with that Python, if it has PyTorch 2.4 or newer. --everything: a test
# that ./dev test leaves out.
if [ "$1" = --everything ]; then
  shift
  if [ -z "$SWAPMM_TEST_EVERYTHING" ]; then
    echo "skipped: it runs with PyTorch 1.13; with PyTorch 2 only in ./dev pytorch"
    exit 0
  fi
fi
python=$1
shift
# Not by an import, which takes seconds.
if ! "$python" -c "import sys, importlib.metadata as m; sys.exit(tuple(map(int, m.version('torch').split('.')[:2])) < (2, 4))" 2>/dev/null; then
  echo "skipped: $python has no PyTorch 2: ./dev pytorch installs it"
  exit 0
fi
exec "$python" "$@"
