# SPDX-License-Identifier: Apache-2.0
"""A copy of some sources with all their mutants in it, built once; those that do not compile are taken out."""
import bisect
import re
import subprocess
import sys

from rewrite import rewrite

ERROR = re.compile(r"^(?:In file included from |\s+from )?(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+):\s+"
                   r"(?P<what>error|fatal error|required from|in .*constexpr. expansion)", re.M)


class Schemata:
    def __init__(self, originals, mutants):
        """originals: {name: bytes}; mutants: those of all files, in order. They are numbered from 1."""
        self.originals = originals
        self.alive = {number: mutant for number, mutant in enumerate(mutants, 1)}
        self.refused = {}  # number: mutant
        self.where = {}
        self.texts = {}
        self.write_texts(originals)

    def write_texts(self, names):
        for name in names:
            own = {number: mutant for number, mutant in self.alive.items() if mutant.file == name}
            self.texts[name], self.where[name] = rewrite(self.originals[name], own)

    def take_out(self, errors):
        """errors: [(name, line, column)], of the texts as they are. Returns how many mutants were refused."""
        out = set()
        for name, line, column in errors:
            if name not in self.where:
                continue
            text = self.texts[name]
            starts = [0] + [match.end() for match in re.finditer(b"\n", text)]
            if line > len(starts):
                continue
            at = starts[line - 1] + column - 1
            around = [(end - start, number) for number, (start, end) in self.where[name].items()
                      if number not in self.refused and start <= at < end]
            if around:
                narrowest = min(around)[0]
                out.update(number for size, number in around if size == narrowest)
            else:  # somewhere on that line
                out.update(number for number, (start, end) in self.where[name].items()
                           if bisect.bisect_right(starts, start) <= line <= bisect.bisect_right(starts, end))
        for number in out:
            if number in self.alive:
                self.refused[number] = self.alive.pop(number)
        self.write_texts({mutant.file for mutant in self.refused.values()})
        return len(out)

    def build(self, write, command, name_of, rounds=12):
        """write(name, text) puts a file where the command finds it; name_of(path) is what a path in an error message is
        called by here. Raises RuntimeError where it cannot be built."""
        for name, text in self.texts.items():
            write(name, text)
        for _ in range(rounds):
            built = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            if built.returncode == 0:
                return
            errors = [(name_of(match["file"]), int(match["line"]), int(match["column"]), match["what"])
                      for match in ERROR.finditer(built.stdout)]
            direct = [error[:3] for error in errors if error[3].endswith("error") and error[0] in self.where]
            # In a template of mutation.hpp: who asked for it is at fault.
            indirect = [error[:3] for error in errors if error[3].startswith("required") and error[0] in self.where]
            gone = self.take_out(sorted(set(direct))) or self.take_out(sorted(set(indirect)))
            if not gone:
                raise RuntimeError("the mutated sources cannot be built:\n" + built.stdout[-8000:])
            print(f"{gone} mutants do not compile: built again without them", file=sys.stderr, flush=True)
            for name in {mutant.file for mutant in self.refused.values()}:
                write(name, self.texts[name])
        raise RuntimeError(f"still not built after {rounds} rounds:\n" + built.stdout[-8000:])
