# SPDX-License-Identifier: Apache-2.0
"""What became of each mutant, kept in a file from run to run.

A mutant is known again by its file's code (comments and spaces aside), its function, operator and source, and its place
among those that are alike. What was killed stays killed as long as that code is the same. What was left is judged again
when the code, a test, or what was asked for has changed."""
import hashlib
import json
import re

from find import blank

SETTLED = ("killed", "does not compile")
LEFT = ("survived", "not reached")


def digest_of_code(data):
    """Of a file's bytes, without comments and spaces."""
    return hashlib.sha256(re.sub(r"\s+", " ", blank(data.decode("latin-1"), literals=False)).encode()).hexdigest()[:16]


def identities(found, codes):
    """{mutant: identity} of all mutants of all files, in order. codes: {file: digest_of_code()}."""
    seen, names = {}, {}
    for mutant in found:
        nth = seen[mutant.key] = seen.get(mutant.key, -1) + 1
        names[mutant] = (codes[mutant.file], *mutant.key, nth)
    return names


class Results:
    def __init__(self, path, names, tests, equivalents):
        """path: of the file. names: identities(). tests: what the tests are, and what of them is asked. equivalents: as
        equivalent.py reads them."""
        self.names, self.tests, self.equivalents = names, tests, equivalents
        self.known = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                self.known[tuple(record["identity"])] = record
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("a", encoding="utf-8")

    def outcome(self, mutant):
        """As it was judged before, by whatever tests; None if it was not."""
        record = self.known.get(self.names[mutant])
        if record is None:
            return None
        return "equivalent" if record["outcome"] in LEFT and mutant.key in self.equivalents else record["outcome"]

    def is_done(self, mutant):
        """Whether it need not be judged again."""
        outcome = self.outcome(mutant)
        return outcome in (*SETTLED, "equivalent") or outcome in LEFT and self.known[self.names[mutant]]["tests"] == self.tests

    def add(self, mutant, what, by="", seconds=0.0):
        record = {"identity": self.names[mutant], "outcome": what, "by": by, "seconds": round(seconds, 2), "tests": self.tests}
        self.known[self.names[mutant]] = record
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    def record(self, mutant):
        """For the report."""
        known = self.known[self.names[mutant]]
        return {"file": mutant.file, "line": mutant.line, "column": mutant.column, "function": mutant.function,
                "operator": mutant.operator, "source": mutant.source, "outcome": self.outcome(mutant), "by": known["by"],
                "seconds": known["seconds"]}
