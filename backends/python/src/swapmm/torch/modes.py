# SPDX-License-Identifier: Apache-2.0
"""How the adapter sees a program: its operators, its other looks at tensors, and the ends of its iterations."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .adapter import Adapter


class Dispatch(TorchDispatchMode):
    """Sees each operator below autograd, backward included."""

    def __init__(self, adapter: Adapter) -> None:
        super().__init__()
        self.adapter = adapter

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.adapter.run(self, function, args, kwargs or {})


_T = torch.Tensor
#: They read the bytes while they run.
_LOOKS = {_T.tolist, _T.__repr__, _T.__deepcopy__, _T.__format__, _T.share_memory_}
#: They give the program the address of the bytes.
_GIVES = {_T.numpy, _T.data_ptr, _T.__array__, _T.__dlpack__, _T.untyped_storage, _T.storage, _T.share_memory_}
if hasattr(_T, "_typed_storage"):
    _GIVES.add(_T._typed_storage)


class Looks(TorchFunctionMode):
    """Sees what reads a tensor's bytes beside its operators."""

    def __init__(self, adapter: Adapter) -> None:
        super().__init__()
        self.adapter = adapter

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if args and isinstance(args[0], torch.Tensor):
            if function in _GIVES:
                self._give(args[0], function)
            elif function in _LOOKS:
                self._look(args[0])
            elif function is _T.__reduce_ex__:
                return self._reduce(*args)
        return function(*args, **(kwargs or {}))

    def _own_storage(self, tensor: torch.Tensor) -> Any:
        if tensor.device.type != self.adapter.type or tensor.layout is not torch.strided:
            return None
        with torch._C.DisableTorchFunction():
            storage = tensor.untyped_storage()
        return storage if storage.nbytes() or hasattr(storage, "_swapmm") else None

    def _look(self, tensor: torch.Tensor) -> None:
        storage = self._own_storage(tensor)
        if storage is not None:
            self.adapter.hold(storage)

    def _give(self, tensor: torch.Tensor, function: Any) -> None:
        storage = self._own_storage(tensor)
        if storage is not None:
            self.adapter.release(storage, f"the program called {function.__name__}()")

    def _reduce(self, tensor: torch.Tensor, protocol: Any = 2) -> Any:
        return tensor.__reduce_ex__(protocol)
