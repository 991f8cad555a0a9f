#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""plan_v2_compare.py PROGRAM [FIRST_SEED] [SEEDS]: random plans of version 2, judged and timed by the library and by
plan_v2.py, which was written from docs/formats.md alone. Both must say the same. PROGRAM prints the cases (cases.cpp)."""
import collections
import json
import subprocess
import sys

import plan_v2


def differences(case):
    violations = plan_v2.validate(case["trace"], case["plan"])
    if bool(violations) == case["valid"]:
        said = "; ".join(f"rule {rule}: {text}" for rule, text in violations[:3]) or "valid"
        return f"plan_v2.py says {said}; the library says {'; '.join(case['messages']) or 'valid'}"
    if not case["valid"]:
        return None
    ends, _ = plan_v2.simulate(case["trace"], case["plan"], len(case["ends"]))
    return None if ends == case["ends"] else f"plan_v2.py ends iterations at {ends}, the library at {case['ends']}"


def main():
    program, first, seeds = sys.argv[1], int((sys.argv + ["1"])[2]), int((sys.argv + ["1", "300"])[3])
    cases = subprocess.run([program, str(first), str(seeds)], check=True, capture_output=True, text=True).stdout
    seen, wrong = collections.Counter(), 0
    for line in cases.splitlines():
        case = json.loads(line)
        kind = "valid" if case["valid"] else "not valid"
        seen[f"{kind}, {'changed' if case['changes'] else 'of a planner'}"] += 1
        found = differences(case)
        if found:
            wrong += 1
            print(f"seed {case['seed']}, {case['changes']} changes: {found}")
        if case["valid"]:
            commands = case["plan"]["commands"]
            seen.update(f"valid with {kind}" for kind in {command["kind"] for command in commands})
            seen["valid with pieces"] += bool(case["plan"]["pieces"]) if "pieces" in case["plan"] else 0
    for kind, count in sorted(seen.items()):
        print(f"{kind}: {count}")
    print(f"{wrong} differences")
    return 1 if wrong or not seen["valid, of a planner"] or seen["not valid, of a planner"] else 0


if __name__ == "__main__":
    sys.exit(main())
