# SPDX-License-Identifier: Apache-2.0
"""What scripts check one thing after another with: they go on after a failure, and end with the number of FAILURES."""

FAILURES = []


def check(holds, what):
    if not holds:
        FAILURES.append(what)
        print(f"    FAILED: {what}")


def same(got, wanted, what):
    check(got == wanted, f"{what}: {got!r}, should be {wanted!r}")
