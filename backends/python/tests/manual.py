# SPDX-License-Identifier: Apache-2.0
"""`manual.py PAGE`: runs each piece of Python of the page, one after the other, in one program and an empty folder."""

import os
import re
import sys
import tempfile

page = open(sys.argv[1], encoding="utf-8").read()
pieces = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
assert len(pieces) >= 3, f"{len(pieces)} pieces of Python"
names = {"__name__": "__main__"}
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for number, piece in enumerate(pieces, 1):
        exec(compile(piece, f"piece {number} of {sys.argv[1]}", "exec"), names)
    os.chdir("/")
print(f"{len(pieces)} pieces of Python ran")
