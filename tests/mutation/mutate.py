#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""./dev mutate: changes the sources in one place after another, and says which changes no test notices."""
import argparse
import hashlib
import os
import random
import re
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

import equivalent
import judge
from find import find
from results import LEFT, Results, digest_of_code, identities
from schemata import Schemata

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = ROOT / "build" / "mutate"
TREE, BUILD = OUT / "tree", OUT / "build"
RESULTS = OUT / "results.jsonl"
ROOMS = ["include/swapmm/runtime", "include/swapmm/plan/validation", "include/swapmm/pages", "include/swapmm/replicas",
         "backends/opencl/swapmm"]
PROGRAMS = ["unit", "lifetime", "conformance", "property", "faults", "dynamic_programs", "replicas", "opencl"]  # the last for its backend alone
SEEDS = 4000           # random programs of which is known what they come by
SEEDS_OF_ONE = 600     # of them, for one mutant
CASE_SECONDS = 20.0    # of the processor; test cases that take longer are left out
QUICK_SECONDS = 0.5    # the same, with --quick
QUICK_SEEDS = 200
# The same as the random programs.
LEFT_OUT = {"property": ["*/program_property_test.cpp"]}
COUNTED = ("killed", "survived", "not reached", "equivalent", "does not compile")


def words():
    parser = argparse.ArgumentParser(prog="./dev mutate", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE",
                        help="a file, or a folder with all in it (without any: " + ", ".join(ROOMS) + ")")
    parser.add_argument("--sample", type=int, metavar="N", help="N mutants of each file, drawn at random (all)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="they are drawn from (1)")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    parser.add_argument("--survivors", action="store_true",
                        help="only those that were judged before and are left")
    parser.add_argument("--quick", action="store_true",
                        help=f"leave out test cases of more than {QUICK_SECONDS} s, and tests of a backend for other files; "
                             "--survivors judges what is left with all tests")
    parser.add_argument("--tests", metavar="NAME,...", help="only these test programs: " + ", ".join(PROGRAMS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="J", help="processes (one for each core)")
    return parser.parse_args()


# ---- which mutants

def chosen_files(names):
    files = []
    for name in names or ROOMS:
        path = (ROOT / name) if (ROOT / name).exists() else Path(name).resolve()
        if not path.exists():
            sys.exit(f"./dev mutate: {name} does not exist")
        found = sorted(path.rglob("*.?pp")) if path.is_dir() else [path]
        files += [str(file.relative_to(ROOT)) for file in found]
    return list(dict.fromkeys(files))


def mutants_of(name):
    return find(ROOT / name, name, [f"-I{ROOT}/include", f"-I{ROOT}/backends/opencl"])


def find_all(files, jobs):
    with ProcessPoolExecutor(jobs) as pool:
        return dict(zip(files, pool.map(mutants_of, files)))


def draw(found, sample, seed):
    """The same for the same seed and the same text of that file, whatever the other files."""
    if sample is None or len(found) <= sample:
        return found
    chosen = random.Random(f"{seed} {found[0].file}").sample(range(len(found)), sample)
    return [found[i] for i in sorted(chosen)]


def describe(mutant):
    return f"{mutant.file}:{mutant.line}:{mutant.column}: {mutant.operator}, in {mutant.function or 'no function'}: {mutant.source}"


# ---- the copy of the tree

def sources():
    """What git knows, and what it does not ignore."""
    names = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "--", "CMakeLists.txt",
                            "CMakePresets.json", "LICENSE", "NOTICE", "README.md", "include", "backends", "cmake",
                            "examples", "tests", "docs/c.md"], check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n")
    return [name for name in names if name and (ROOT / name).is_file()]


def put(name, text):
    """Only where it differs, so that what need not is not built again."""
    path = TREE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != text:
        path.write_bytes(text)


def digest_of_tests():
    digest = hashlib.sha256()
    for name in sources():
        if name.startswith("tests/") and name.endswith(("pp", ".h", ".json", ".csv")):
            digest.update(name.encode() + b"\0" + hashlib.sha256((ROOT / name).read_bytes()).digest())
    return digest.hexdigest()[:16]


def copy_tree(mutated):
    names = sources()
    for name in names:
        text = (ROOT / name).read_bytes()
        if name == "tests/main.cpp":
            text += b'\n#include "mutation/reached_cases.hpp"\n'
        if name not in mutated:
            put(name, text)
    for path in list(TREE.rglob("*")):
        if path.is_file() and str(path.relative_to(TREE)) not in names:
            path.unlink()


def configure(opencl):
    header = TREE / "tests/mutation/mutation.hpp"
    options = {"CMAKE_CXX_COMPILER": "g++", "CMAKE_BUILD_TYPE": "RelWithDebInfo", "SWAPMM_WERROR": "OFF",
               "CMAKE_CXX_FLAGS_RELWITHDEBINFO": "-O1 -g0 -D_GLIBCXX_ASSERTIONS",
               # Tests that run for long do a part of their work: random programs come on top.
               "CMAKE_CXX_FLAGS": f"-w -include {header} -DSWAPMM_TEST_IS_SLOW",
               "SWAPMM_QUICK_BUILD": "ON", "SWAPMM_UNITY_BUILD": "ON", "SWAPMM_UNITY_TESTS": "ON",
               "SWAPMM_BUILD_BENCH": "OFF", "SWAPMM_CUDA": "OFF", "SWAPMM_BUILD_ILP": "OFF",
               "SWAPMM_OPENCL": "ON" if opencl else "OFF"}
    subprocess.run(["cmake", "-S", str(TREE), "-B", str(BUILD), "-G", "Ninja", "--log-level=NOTICE",
                    *(f"-D{name}={value}" for name, value in options.items())], check=True, stdout=subprocess.DEVNULL)


def name_of(path):
    """What a path in a compiler's message is called by in the repository."""
    path = os.path.normpath(BUILD / path)
    return os.path.relpath(path, TREE)


def build(mutants, programs, jobs):
    originals = {name: (ROOT / name).read_bytes() for name in {mutant.file for mutant in mutants}}
    schemata = Schemata(originals, mutants)
    copy_tree(originals)
    for name, text in schemata.texts.items():
        put(name, text)
    configure("opencl" in programs)
    command = ["nice", "ninja", "-C", str(BUILD), f"-j{jobs}", "-k0"]
    # The smallest program first: it shows most of what does not compile.
    schemata.build(put, [*command, "swapmm_mutation_programs"], name_of)
    schemata.build(put, [*command, *(f"swapmm_{program}_tests" for program in programs)], name_of)
    return schemata


# ---- what comes by each of them

def reached_by_tests(program):
    path = OUT / f"reached-{program}.txt"
    path.unlink(missing_ok=True)
    command = [str(BUILD / "tests" / f"swapmm_{program}_tests"), "--no-version"]
    left_out = LEFT_OUT.get(program)
    if left_out:
        command.append("--source-file-exclude=" + ",".join(left_out))
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                         env={**os.environ, "SWAPMM_MUTANTS_REACHED": str(path)})
    if ran.returncode != 0:
        sys.exit(f"./dev mutate: without any mutant swapmm_{program}_tests fails:\n{ran.stdout[-4000:]}")
    return judge.Step(program, command, judge.read_reached(path), judge.doctest_filter, CASE_SECONDS)


def reached_by_programs():
    path = OUT / "reached-programs.txt"
    program = str(BUILD / "tests" / "swapmm_mutation_programs")
    ran = subprocess.run([program, "--reached", str(path), str(SEEDS)], stdout=subprocess.PIPE, text=True)
    if ran.returncode != 0:
        sys.exit(f"./dev mutate: without any mutant a random program fails:\n{ran.stdout[-2000:]}")
    return judge.Step("programs", [program], judge.read_reached(path), list, CASE_SECONDS, SEEDS_OF_ONE, 1e9, True)


def programs_for(files, wished):
    if wished:
        return wished.split(",")
    return PROGRAMS if any(file.startswith("backends/opencl") for file in files) else PROGRAMS[:-1]


# ---- results

def table(records):
    lines = ["| file | mutants | do not compile | killed | by random programs | by hanging | equivalent | not reached | survived | s per mutant |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    files = sorted({record["file"] for record in records})
    for file in [*files, "all"]:
        own = [record for record in records if file in ("all", record["file"])]
        count = {what: sum(record["outcome"] == what for record in own) for what in COUNTED}
        killed = [record for record in own if record["outcome"] == "killed"]
        judged = [record["seconds"] for record in own if record["outcome"] in ("killed", "survived")]
        lines.append("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1f} |".format(
            file.removeprefix("include/swapmm/"), len(own), count["does not compile"], count["killed"],
            sum(record["by"].startswith("programs: ") for record in killed),
            sum(record["by"].endswith("out of time") for record in killed), count["equivalent"], count["not reached"],
            count["survived"], sum(judged) / max(1, len(judged))))
    return "\n".join(lines)


def report(records):
    left = [record for record in records if record["outcome"] in ("survived", "not reached")]
    for what, title in (("not reached", "nothing comes by"), ("survived", "nobody notices")):
        own = [record for record in left if record["outcome"] == what]
        if own:
            print(f"\n{title}:")
        for r in own:
            print(f"  {r['file']}:{r['line']}:{r['column']}: {r['operator']}, in {r['function']}: {r['source']}")
    print("\n" + table(records))
    (OUT / "table.md").write_text(table(records) + "\n")
    print(f"\neach with its outcome: {RESULTS.relative_to(ROOT)}")
    return not left


def main():
    wishes = words()
    files = chosen_files(wishes.files)
    found = find_all(files, wishes.jobs)
    equivalents = equivalent.read(HERE / "equivalent.txt")
    known = {mutant.key for mutants in found.values() for mutant in mutants}
    for key in equivalents:
        if key not in known and (key[0] in files or not (ROOT / key[0]).exists()):
            print("listed as equivalent, and not there: " + " ".join(key), flush=True)
    codes = {name: digest_of_code((ROOT / name).read_bytes()) for name in files}
    names = identities([mutant for name in files for mutant in found[name]], codes)
    mutants = [mutant for name in files for mutant in draw(found[name], wishes.sample, wishes.seed)]
    programs = programs_for(files, wishes.tests)
    asked = f"{digest_of_tests()} {','.join(programs)}{' quick' if wishes.quick else ''}"
    results = Results(RESULTS, names, asked, equivalents)
    if wishes.survivors:
        mutants = [mutant for mutant in mutants if results.outcome(mutant) in LEFT]
    if wishes.list:
        for mutant in mutants:
            print(describe(mutant))
        print(f"{len(mutants)} mutants in {len(files)} files")
        return 0
    if not mutants:
        print("no mutants")
        return 0
    todo = [mutant for mutant in mutants if not results.is_done(mutant)]
    print(f"{len(mutants)} mutants in {len(files)} files, {len(mutants) - len(todo)} of them judged before", flush=True)
    if todo:
        judge_all(todo, programs, results, wishes)
    return 0 if report([results.record(mutant) for mutant in mutants]) else 1


def find_steps(programs, jobs):
    """What comes by which mutants."""
    start = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(reached_by_programs), *(pool.submit(reached_by_tests, program) for program in programs)]
        steps = [job.result() for job in running]
    print(f"what comes by them: {time.monotonic() - start:.0f} s, " +
          ", ".join(f"{step.name} {len(step.parts)}" for step in steps), flush=True)
    return steps


def steps_for(mutant, steps, quick):
    """The tests that judge a mutant."""
    if not quick:
        return steps
    own = [step for step in steps if step.name != "opencl" or mutant.file.startswith("backends/opencl")]
    return [replace(step, most_seconds=min(step.most_seconds, QUICK_SECONDS),
                    most_parts=min(step.most_parts, QUICK_SEEDS if step.name == "programs" else step.most_parts))
            for step in own]


def judge_all(todo, programs, results, wishes):
    start = time.monotonic()
    schemata = build(todo, programs, wishes.jobs)
    print(f"built in {time.monotonic() - start:.0f} s; {len(schemata.refused)} do not compile", flush=True)
    for mutant in schemata.refused.values():
        results.add(mutant, "does not compile")
    steps = find_steps(programs, wishes.jobs)
    killers = judge.Killers()

    def outcome_of(number, mutant):
        own = steps_for(mutant, steps, wishes.quick)
        outcome = judge.judge(number, own, list(killers.of(mutant.file, number, own)))
        killers.add(mutant.file, outcome.by, steps)
        return outcome

    start = time.monotonic()
    counts = {}
    with ThreadPoolExecutor(wishes.jobs) as pool:
        running = {pool.submit(outcome_of, number, mutant): mutant for number, mutant in schemata.alive.items()}
        for i, job in enumerate(as_completed(running), 1):
            outcome, mutant = job.result(), running[job]
            results.add(mutant, outcome.what, outcome.by, outcome.seconds)
            what = results.outcome(mutant)
            counts[what] = counts.get(what, 0) + 1
            if outcome.what == "killed" and mutant.key in results.equivalents:
                print(f"listed as equivalent, and yet {outcome.by}: {describe(mutant)}", flush=True)
            if what in LEFT:
                print(f"{what}: {describe(mutant)}", flush=True)
            if i % 50 == 0:
                print(f"{i} of {len(running)} after {time.monotonic() - start:.0f} s: " +
                      ", ".join(f"{n} {what}" for what, n in counts.items()), flush=True)
    print(f"{len(running)} judged in {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
