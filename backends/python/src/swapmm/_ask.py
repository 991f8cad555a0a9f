# SPDX-License-Identifier: Apache-2.0
"""Questions to the library about traces and plans, and the progress of the answers."""

from __future__ import annotations

import contextlib
import ctypes
import json
import sys
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Union

from . import _native, errors


class Progress(NamedTuple):
    """How far long work is."""

    what: str  #: the part of the work
    iteration_ns: int  #: time of an iteration with the best plan so far; 0: none yet
    lower_bound_ns: int  #: proven so far: no plan is faster

    def __str__(self) -> str:
        if self.iteration_ns == 0:
            return self.what
        return f"{self.what}: {time_text(self.iteration_ns)}, at least {time_text(self.lower_bound_ns)}"


#: True: one line on stderr. False: none. None: a line if stderr is a terminal or the program runs in a notebook. Or a
#: function that is called a few times a second; an exception from it ends the work.
ProgressChoice = Union[None, bool, Callable[[Progress], object]]


def time_text(nanoseconds: float) -> str:
    """1234567 -> "1.235 ms" """
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3f} {unit}"
    return f"{nanoseconds:.0f} ns"


def size_text(nbytes: float) -> str:
    """8000000000 -> "8.00 GB" """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if nbytes >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes:.0f} B"


def whole(value: Any) -> int:
    """A whole number of another library, such as NumPy's, for JSON."""
    try:
        return int(value.__index__())
    except AttributeError:
        raise errors.UsageError(f"{value!r} is of type {type(value).__name__}: no whole number, text or list") from None


class _Line:
    """One line on stderr, rewritten in place, gone at the end."""

    def __init__(self) -> None:
        self._width = 0

    def __call__(self, progress: Progress) -> None:
        text = "".join(c if c.isprintable() else "?" for c in str(progress))[:100]
        sys.stderr.write("\r" + text + " " * (self._width - len(text)))
        sys.stderr.flush()
        self._width = len(text)

    def end(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


def _line_for(choice: ProgressChoice) -> Any:
    if choice is None:
        choice = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    if choice is True:
        return _Line()
    return choice or None


@contextlib.contextmanager
def _dropped_by(callback: Callable[..., Any], raised: List[BaseException]) -> Iterator[None]:
    """Takes note of exceptions that Python drops because they come before the first line of the callback, or behind its
    last one: those of handlers of signals."""
    before = sys.unraisablehook

    def note(dropped: Any) -> None:
        # From Python 3.13 on the message names it.
        is_its = dropped.object is callback or repr(callback) in (dropped.err_msg or "")
        if is_its and dropped.exc_value is not None:
            raised.append(dropped.exc_value)
        else:
            before(dropped)

    sys.unraisablehook = note
    try:
        yield
    finally:
        sys.unraisablehook = before


def ask(
    question: str,
    options: Dict[str, Any],
    trace: Optional[str] = None,
    plan: Optional[str] = None,
    progress: ProgressChoice = False,
) -> Dict[str, Any]:
    """The answer of the library. Ctrl-C ends the work."""
    library = _native.library()
    shown = _line_for(progress)
    raised: List[BaseException] = []

    def tell(what: bytes, iteration_ns: int, lower_bound_ns: int) -> int:
        # Python runs the handlers of signals in here, too.
        try:
            if shown is not None:
                shown(Progress(what.decode("utf-8", "replace"), iteration_ns, lower_bound_ns))
        except BaseException as failure:  # no exception may pass through C
            raised.append(failure)
        return 1 if raised else 0

    answer = ctypes.c_void_p()
    try:
        with _dropped_by(tell, raised):
            status = library.python_ask(
                question.encode(),
                json.dumps(options, default=whole).encode(),
                _native.text(trace),
                _native.text(plan),
                _native.PythonProgress(tell),
                answer,
            )
    finally:
        if isinstance(shown, _Line):
            shown.end()
    if raised:
        library.text_destroy(answer)
        raise raised[0]
    library.check(status)
    result = json.loads(library.take_text(answer))
    if not isinstance(result, dict):
        raise errors.InternalError("an answer is no JSON object")
    return result
