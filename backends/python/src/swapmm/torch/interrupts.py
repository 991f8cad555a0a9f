# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, and other signals with handlers in Python, wait until the adapter is done. Python runs such a handler between any
two steps of the main thread; an error that it raises would leave the manager in the middle of an operation."""

from __future__ import annotations

import _thread
import os
import signal
import threading
import weakref
from typing import Any, Callable, List, Tuple

# The class of threading.RLock(), with the functions of C.
_RLock: Any = type(threading.RLock())


class Lock(_RLock):
    """A lock that may be taken again by its thread. Signals that come while the main thread has it are handled when it is
    free again."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: List[Tuple[Callable[..., Any], int, Any]] = []  # handlers, with their signals and frames

    def __exit__(self, *_error: Any) -> None:
        try:
            self.release()
        finally:
            if self.waiting and not self._is_owned() and threading.current_thread() is threading.main_thread():
                self.handle()

    def handle(self) -> None:
        """Calls the handlers of the signals that have come, the later ones also if one raises an error."""
        handler, number, frame = self.waiting.pop(0)
        try:
            handler(number, frame)
        finally:
            if self.waiting:
                self.handle()

    def send_again(self) -> None:
        """The same where Python would drop an error: the signals come again, a little later."""
        waiting, self.waiting = self.waiting, []
        for _, number, _ in waiting:
            _thread.start_new_thread(os.kill, (os.getpid(), number))


class Interrupts:
    """Stands for Python's handlers of signals, those that are set later included."""

    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter
        self._set, self._get = signal.signal, signal.getsignal

    def install(self) -> None:
        signal.signal, signal.getsignal = self._signal, self._getsignal
        self._replace_handlers(self._waiting)

    def remove(self) -> None:
        self._replace_handlers(_given)
        if signal.signal == self._signal:  # nobody has replaced it since
            signal.signal, signal.getsignal = self._set, self._get

    def _replace_handlers(self, other: Callable[[Any], Any]) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # Python lets no other thread set them
        for number in signal.valid_signals():
            before = self._get(number)
            handler = other(before)
            if handler is not before:
                self._set(number, handler)

    def _waiting(self, handler: Any) -> Any:
        """What stands for a handler, if that is a function of Python's."""
        if not callable(handler) or isinstance(handler, signal.Handlers):
            return handler
        handler = _given(handler)
        weak = weakref.ref(self.adapter)

        def handle(number: int, frame: Any) -> Any:
            adapter = weak()
            if adapter is None or not adapter.lock._is_owned():
                return handler(number, frame)
            lock = adapter.lock
            # What an operator does in Python may never end; it can be told to.
            if adapter.in_operator and any(waiting[1] == number for waiting in lock.waiting):
                lock.waiting = [waiting for waiting in lock.waiting if waiting[1] != number]
                return handler(number, frame)
            lock.waiting.append((handler, number, frame))

        handle.swapmm_handler = handler  # type: ignore[attr-defined]
        return handle

    def _signal(self, signalnum: int, handler: Any) -> Any:
        return _given(self._set(signalnum, self._waiting(handler)))

    def _getsignal(self, signalnum: int) -> Any:
        return _given(self._get(signalnum))


def _given(handler: Any) -> Any:
    """The handler as the program has set it."""
    return getattr(handler, "swapmm_handler", handler)
