# SPDX-License-Identifier: Apache-2.0
"""How the adapter sees a program: its operators, its other looks at tensors, the modules that run, and its threads."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional

import torch
from torch.nn.modules import module as _module
from torch.utils._python_dispatch import TorchDispatchMode

from .adapter import Adapter
from .kept import ATTRIBUTE
from .operators import has_own_dispatch


class Dispatch(TorchDispatchMode):
    """Sees each operator below autograd, backward included."""

    def __init__(self, adapter: Adapter) -> None:
        super().__init__()
        self.adapter = adapter

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if has_own_dispatch(types):
            return NotImplemented
        return self.adapter.run(self, function, args, kwargs or {})


_Tensor = torch.Tensor
#: They read the bytes while they run.
_LOOKS = ("tolist", "__repr__", "__deepcopy__", "__format__", "untyped_storage", "storage", "_typed_storage")
#: They tell the program the address of the bytes, which it may use until the iteration ends.
_ADDRESSES = ("data_ptr", "share_memory_", "pin_memory")
#: They make something that shares the bytes. PyTorch never moves such a storage again.
_ARRAYS = ("numpy", "__array__", "__dlpack__")


class Looks:
    """Wraps the functions of tensors that touch the bytes beside the operators. So it holds in all threads, and costs
    nothing elsewhere."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self._originals: Dict[str, Any] = {}
        self._inside = threading.local()
        self._twins: Dict[Any, Any] = {}  # while torch.save() runs

    def install(self) -> None:
        for names, prepare in ((_LOOKS, self._look), (_ADDRESSES, self._address), (_ARRAYS, self._array)):
            for name in names:
                if hasattr(_Tensor, name):
                    self._wrap(name, prepare)
        self._originals["__reduce_ex__"] = _Tensor.__dict__.get("__reduce_ex__")
        _Tensor.__reduce_ex__ = self._reducing(_Tensor.__reduce_ex__)  # type: ignore[method-assign]

        # The function is not torch.Tensor's.
        plain = self._to_dlpack = torch.utils.dlpack.to_dlpack

        def to_dlpack(tensor: torch.Tensor) -> Any:
            self._array(tensor, "to_dlpack")
            return plain(tensor)

        torch.utils.dlpack.to_dlpack = torch.to_dlpack = to_dlpack  # type: ignore[assignment]

    def remove(self) -> None:
        torch.utils.dlpack.to_dlpack = torch.to_dlpack = self._to_dlpack  # type: ignore[assignment]
        for name, original in self._originals.items():
            if original is None:
                delattr(_Tensor, name)  # it was inherited
            else:
                setattr(_Tensor, name, original)
        self._originals.clear()

    def _wrap(self, name: str, prepare: Callable[[torch.Tensor, str], None]) -> None:
        original = getattr(_Tensor, name)
        inside = self._inside

        @functools.wraps(original)
        def wrapped(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            # These functions call one another.
            if getattr(inside, "now", False):
                return original(tensor, *args, **kwargs)
            inside.now = True
            try:
                prepare(tensor, name)
                return original(tensor, *args, **kwargs)
            finally:
                inside.now = False

        self._originals[name] = _Tensor.__dict__.get(name)
        setattr(_Tensor, name, wrapped)

    def _storage(self, tensor: torch.Tensor) -> Any:
        if not isinstance(tensor, _Tensor) or not self.adapter.is_ours(tensor):
            return None
        storage = torch._C.TensorBase.untyped_storage(tensor)
        return storage if storage.nbytes() or hasattr(storage, ATTRIBUTE) else None

    def _look(self, tensor: torch.Tensor, _name: str) -> None:
        storage = self._storage(tensor)
        if storage is not None:
            self.adapter.hold(storage)

    def _address(self, tensor: torch.Tensor, name: str) -> None:
        storage = self._storage(tensor)
        if storage is not None:
            self.adapter.release(storage, f"the program called {name}()", until_step=True)

    def _array(self, tensor: torch.Tensor, name: str) -> None:
        storage = self._storage(tensor)
        if storage is not None:
            self.adapter.release(storage, f"the program called {name}()", until_step=False)

    # ---- saving

    def _reducing(self, original: Any) -> Any:
        """torch.save() and pickle: they read storages later than they meet their tensors, and never all of them are
        there. So they get copies in host memory."""

        @functools.wraps(original)
        def reduce(tensor: torch.Tensor, protocol: Any) -> Any:
            storage = self._storage(tensor)
            if storage is None or type(tensor) is not _Tensor or not hasattr(storage, ATTRIBUTE):
                return original(tensor, protocol)
            return original(self._twin(tensor, storage), protocol)

        return reduce

    def _twin(self, tensor: torch.Tensor, storage: Any) -> torch.Tensor:
        """A tensor with the same values and the same view, of a storage in host memory. Tensors that share a storage
        have twins that do, as long as no operator runs in between."""
        key = id(storage)
        known = self._twins.get(key)
        if known is None or known[0]() is not storage or known[1] != self.adapter.operations:
            self.adapter.hold(storage)
            copy = torch.UntypedStorage(storage.nbytes())
            with torch.utils._python_dispatch._disable_current_modes():
                copy.copy_(storage)
            setattr(copy, ATTRIBUTE, None)
            self._twins = {k: v for k, v in self._twins.items() if v[1] == self.adapter.operations}
            known = self._twins[key] = (weakref.ref(storage), self.adapter.operations, copy)
        with torch.utils._python_dispatch._disable_current_modes():
            twin = torch.empty(0, dtype=tensor.dtype).set_(
                known[2], tensor.storage_offset(), tensor.size(), tensor.stride()
            )
            if tensor.is_conj():
                twin = twin.conj()
            if tensor.is_neg():
                twin = torch._neg_view(twin)
        return twin.requires_grad_(tensor.requires_grad)


class Modules:
    """Which modules run, for messages."""

    def __init__(self) -> None:
        self._stack = threading.local()
        self._hooks: List[Any] = []

    def install(self) -> None:
        self._hooks = [
            _module.register_module_forward_pre_hook(self._enter),
            _module.register_module_forward_hook(self._leave, always_call=True),
        ]

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _running(self) -> List[Any]:
        stack: Optional[List[Any]] = getattr(self._stack, "modules", None)
        if stack is None:
            stack = self._stack.modules = []
        return stack

    def _enter(self, module: Any, _inputs: Any) -> None:
        self._running().append(module)

    def _leave(self, module: Any, _inputs: Any, _output: Any) -> None:
        stack = self._running()
        while stack and stack.pop() is not module:
            pass

    def where(self) -> str:
        """The path of the innermost module."""
        stack = self._running()
        if not stack:
            return ""
        root, innermost = stack[0], stack[-1]
        path = next((name for name, module in root.named_modules() if module is innermost), "")
        return f"module {type(root).__name__}{'.' + path if path else ''} ({type(innermost).__name__})"


class Threads:
    """Gives the mode to threads that begin later, and tells the adapter that it is in the child of a fork."""

    def __init__(self, mode: Dispatch) -> None:
        self.mode = mode
        self._original: Any = None
        weak = weakref.ref(mode.adapter)

        # Python keeps such functions for ever.
        def tell(name: str) -> Callable[[], None]:
            def told() -> None:
                adapter = weak()
                if adapter is not None and adapter.open:
                    getattr(adapter, name)()

            return told

        os.register_at_fork(
            before=tell("before_fork"),
            after_in_parent=tell("after_fork"),
            after_in_child=tell("after_fork_in_child"),
        )

    def install(self) -> None:
        mode = self.mode
        self._original = original = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

        def begin(thread: threading.Thread) -> None:
            with mode:
                original(thread)

        threading.Thread._bootstrap_inner = begin  # type: ignore[attr-defined]

    def remove(self) -> None:
        threading.Thread._bootstrap_inner = self._original  # type: ignore[attr-defined]
