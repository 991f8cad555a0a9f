# SPDX-License-Identifier: Apache-2.0
# Runs programs one after the other and prints what they print, each line with the program's name before it, and their exit codes.
#   python run_all.py FOLDER NAME...
import pathlib, subprocess, sys
folder = pathlib.Path(sys.argv[1])
failed = False
for name in sys.argv[2:]:
  done = subprocess.run([folder / name], stdout=subprocess.PIPE, text=True, errors="replace")
  for line in done.stdout.splitlines(): print(f"{name}: {line}")
  print(f"{name} ended with {done.returncode}", flush=True)
  failed = failed or done.returncode != 0
sys.exit(1 if failed else 0)
