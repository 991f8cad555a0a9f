#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a test with that Python, if it has PyTorch 2.4 or newer.
python=$1
shift
if ! "$python" -c "import sys, torch; sys.exit(tuple(map(int, torch.__version__.split('.')[:2])) < (2, 4))" 2>/dev/null; then
  echo "skipped: $python has no PyTorch 2: ./dev pytorch installs it"
  exit 0
fi
exec "$python" "$@"
