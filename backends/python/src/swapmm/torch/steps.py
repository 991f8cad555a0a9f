# SPDX-License-Identifier: Apache-2.0
"""Steps of optimizers end iterations. Where several make steps one after another, the last one ends it, as soon as they have
done so once."""

from __future__ import annotations

import weakref
from typing import Any, List

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook


class Steps:
    """Sees each step of torch.optim."""

    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter
        self._hooks: List[Any] = []
        self._before_others: weakref.WeakSet[Any] = weakref.WeakSet()  # after whose steps those of others have come at once
        self._passed: weakref.WeakSet[Any] = weakref.WeakSet()  # of these, those whose steps were no end, since the last one
        self._last: Any = None  # the optimizer that has made the last step
        self._operations = 0  # then
        self._just_before: Any = None  # while an optimizer makes its step: the one whose step has come just before
        self._backward = -1  # the last backward() in which an optimizer made a step

    def install(self) -> None:
        self._hooks = [register_optimizer_step_pre_hook(lambda optimizer, *_: self._begins(optimizer)),
                       register_optimizer_step_post_hook(lambda optimizer, *_: self._ended(optimizer))]

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()

    def _begins(self, optimizer: Any) -> None:
        last = self._last() if self._last is not None else None
        at_once = last is not optimizer and self.adapter.operations == self._operations
        self._just_before = last if at_once else None

    def _ended(self, optimizer: Any) -> None:
        backward = torch._C._current_graph_task_id()
        if backward != -1:
            self._ended_within(backward)
            return
        if self._just_before is not None:
            self._before_others.add(self._just_before)
            self._just_before = None
        self._last, self._operations = weakref.ref(optimizer), self.adapter.operations
        if optimizer in self._passed:  # the others have made no step since
            self._before_others.discard(optimizer)
        if optimizer in self._before_others:
            self._passed.add(optimizer)
        else:
            self._passed.clear()
            self.adapter.end_iteration()

    def _ended_within(self, backward: int) -> None:
        """Steps within backward(), of optimizers that have a parameter each, end the iteration together, when it has run."""
        if backward != self._backward:
            self._backward = backward
            torch.autograd.Variable._execution_engine.queue_callback(self.adapter.end_iteration)
