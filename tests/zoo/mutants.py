# SPDX-License-Identifier: Apache-2.0
"""The mutants: patches of the library, each with a text above it; and the copy of the sources that they are applied to."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
LEAST = 24  # RELIABILITY: known bugs, every one noticed
# What the judging programs are built from.
SOURCES = ["CMakeLists.txt", "CMakePresets.json", "LICENSE", "cmake", "include", "backends", "examples", "tests"]


@dataclass(frozen=True)
class Mutant:
  """One patch. Its first sentence says what the bug is, `Kind:` which known bug it is one of, `Look first:` which check is
  likely to notice."""
  name: str
  title: str
  kind: str
  first: str
  patch: Path
  files: tuple


def read_mutant(path):
  head, _, diff = path.read_text(encoding="utf-8").partition("\ndiff --git ")
  title = re.match(r"(.+?)(?:\.\s|\.?$|\n\n)", head.strip() + "\n\n", re.DOTALL)
  kind = re.search(r"^Kind(?: of bug)?: (.+?)(?:\.\s|\.?\n\n|\nTo be noticed|\nA user|\nLook first|\Z)", head + "\n\n", re.MULTILINE | re.DOTALL)
  files = tuple(re.findall(r"^\+\+\+ b/(\S+)", diff, re.MULTILINE))
  first = re.search(r"^Look first: (\S+)", head, re.MULTILINE)
  one_line = [" ".join(found[1].split()) if found else "" for found in (title, kind, first)]
  return Mutant(path.stem, *one_line, path, files)


def all_mutants(folder=HERE):
  return [read_mutant(path) for path in sorted(folder.glob("*.patch"))]


def git_apply(root, patch, *options):
  """Why the patch cannot be applied below `root`, or nothing. Git must not see a repository around it: there it would
  leave out, without a word, what lies outside of the folder it is called in."""
  around = dict(os.environ, GIT_CEILING_DIRECTORIES=str(root.parent))
  result = subprocess.run(["git", "apply", *options, str(patch)], cwd=root, env=around, capture_output=True, text=True,
                          check=False)
  return result.stderr.strip() if result.returncode != 0 else ""


def problems(mutants):
  """What is wrong with the zoo as it lies there: texts."""
  found = [] if len(mutants) >= LEAST else [f"{len(mutants)} mutants; there are to be at least {LEAST}"]
  for mutant in mutants:
    what = []
    if not mutant.title or mutant.title.startswith(("diff ", "---")):
      what.append("no text above the patch says what the bug is")
    if not mutant.kind:
      what.append("no line \"Kind: ...\" says which known bug it is one of")
    if not mutant.files:
      what.append("no file is changed")
    what += [f"changes {name}, which is no part of the library" for name in mutant.files
             if not name.startswith(("include/", "backends/"))]
    why = git_apply(ROOT, mutant.patch, "--check")
    if why:
      what.append("does not apply: " + why)
    found += [f"{mutant.name}: {text}" for text in what]
  return found


def copy_sources(source, target):
  """Makes `target` the same. Files that stay the same keep their time, so that no more is compiled than has changed."""
  target.mkdir(parents=True, exist_ok=True)
  wanted = set()
  for name in SOURCES:
    path = source / name
    paths = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    wanted.update(p.relative_to(source) for p in paths)
  for name in wanted:
    old, new = target / name, source / name
    if old.is_file() and old.stat().st_size == new.stat().st_size and old.read_bytes() == new.read_bytes():
      continue
    old.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(new, old)
    shutil.copymode(new, old)
  for top in SOURCES:
    for path in (target / top).rglob("*"):
      if path.is_file() and path.relative_to(target) not in wanted:
        path.unlink()


class Tree:
  """A copy of the sources with at most one patch in it."""

  def __init__(self, root, sources):
    self.root = root
    self.build = root / "build" / "dev"
    self._sources = sources

  def reset(self):
    """As the sources are."""
    copy_sources(self._sources, self.root)

  def apply(self, mutant):
    why = git_apply(self.root, mutant.patch)
    if why:
      raise RuntimeError(f"{mutant.name} does not apply: {why}")
