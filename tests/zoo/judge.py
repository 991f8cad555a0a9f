# SPDX-License-Identifier: Apache-2.0
"""The judging programs: what is built and run for a mutant."""

import hashlib
import os
import subprocess
from dataclasses import dataclass

from failures import failure_in

SEEDS = 500  # random programs of the first check; the last one takes as many as ./dev test
WATCHDOG = 900  # seconds for one check. A hang that no test reports is no kill.


@dataclass(frozen=True)
class Check:
  """One run of a test program."""
  name: str
  target: str
  words: tuple = ()
  variables: tuple = ()


# Unit tests of what mutants are likely to change come first.
_NEAR = ("callables host_access following budget lifetimes errors timeline place_map host_pool compiled_plan diverging "
         "running report views access_check program plans capturing keeping_up profiling round_times").split()
_AT_ONCE = 4  # unit tests that are built together


class Judge:
  """Builds and runs what is in a tree; what that says goes to a log."""

  def __init__(self, tree, compilers):
    self.tree = tree
    self.log = None
    self.pristine = {}  # target -> digest of the program without any patch
    self._compilers = compilers  # at a time
    self._targets = set()

  def write_to(self, log):
    """From now on, and nothing else stands there."""
    self.log = log
    log.write_text("", encoding="utf-8")

  def configure(self):
    """Once for a tree."""
    options = ["-DSWAPMM_BUILD_EXAMPLES=OFF", "-DSWAPMM_BUILD_ILP=OFF", "-DSWAPMM_BUILD_BENCH=OFF"]
    if not (self.tree.build / "build.ninja").is_file():
      if self._run(["cmake", "--preset", "dev", *options]) != 0:
        return False
    listing = subprocess.run(["ninja", "-C", str(self.tree.build), "-t", "targets", "all"], capture_output=True, text=True,
                             check=False)
    self._targets = {line.split(":")[0] for line in listing.stdout.splitlines()}
    return listing.returncode == 0

  def groups(self, quick=False, first=""):
    """The checks, the cheapest first, in groups that are built together; before them that of the name `first`."""
    programs = "swapmm_zoo_programs"
    near = [Check("programs", programs, ("--source-file=*/program_property_test.cpp",),
                  (("SWAPMM_TEST_SEEDS", str(SEEDS)),)),
            Check("interleavings", programs, ("--source-file=*/interleaving_property_test.cpp",))]
    names = sorted(path.name[:-len("_test.cpp")] for path in (self.tree.root / "tests" / "unit").glob("*_test.cpp"))
    names.sort(key=lambda name: _NEAR.index(name) if name in _NEAR else len(_NEAR))
    unit = [Check(f"unit.{name}", f"swapmm_zoo_unit_{name}") for name in names]
    groups = [near, [Check("failures", "swapmm_zoo_failures")], [Check("faults", "swapmm_zoo_faults")]]
    groups += [unit[i:i + _AT_ONCE] for i in range(0, len(unit), _AT_ONCE)]
    groups += [[Check(name, f"swapmm_{name}_tests")] for name in ("cuda_calls", "conformance", "opencl")]
    groups += [[Check("all properties", "swapmm_property_tests")], [Check("all faults", "swapmm_faults_tests")]]
    groups = [group for group in groups if all(check.target in self._targets for check in group)]
    chosen = [[check] for group in groups for check in group if check.name == first]
    return chosen + (groups[:1] if quick else groups)

  def build(self, targets):
    """False where something does not compile."""
    return self._run(["ninja", "-j", str(self._compilers), "-C", str(self.tree.build), *sorted(set(targets))]) == 0

  def is_changed(self, target):
    """The program is another one than without a patch."""
    return self.pristine.get(target) != self.digest(target)

  def digest(self, target):
    return hashlib.sha256(self._program(target).read_bytes()).hexdigest()

  def run(self, check):
    """What the check found: a Failure, or None."""
    start = self.log.stat().st_size
    status = self._run([str(self._program(check.target)), *check.words, "--abort-after=1", "--no-colors=1"],
                       dict(check.variables), WATCHDOG)
    with self.log.open("rb") as log:
      log.seek(start)
      said = log.read().decode("utf-8", "replace")
    return failure_in(said, status)

  def _program(self, target):
    return self.tree.build / "tests" / target

  def _run(self, words, variables=None, limit=None):
    """The exit status, negative for a signal; None where it took too long."""
    # Compiled anywhere, found everywhere: to the compiler cache this tree is the same as the one it was copied from.
    own = {"CCACHE_BASEDIR": str(self.tree.root), "CCACHE_NOHASHDIR": "1", "CCACHE_ABSSTDERR": "1"}
    with self.log.open("a", encoding="utf-8") as out:
      out.write("\n$ " + " ".join(words) + "\n")
      out.flush()
      with subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT, cwd=self.tree.root,
                            env={**os.environ, **own, **(variables or {})}) as process:
        try:
          return process.wait(limit)
        except subprocess.TimeoutExpired:
          process.kill()
          return None
