# SPDX-License-Identifier: Apache-2.0
"""How the adapter sees a program: its operators, its other looks at tensors, the modules that run, and its threads."""

from __future__ import annotations

import _thread
import contextlib
import copy
import functools
import importlib
import inspect
import os
import sys
import threading
import types
import weakref
from concurrent.futures.thread import _WorkItem
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

import torch
import torch.overrides
import torch.utils._device
from torch.jit import _builtins  # type: ignore[attr-defined]
from torch.utils._python_dispatch import TorchDispatchMode

from .. import errors
from .adapter import Adapter
from .guard import require_bytes
from .kept import ATTRIBUTE, PACKED_REASON
from .operators import copy_storage, has_own_dispatch, nbytes_of, storage_of


#: PyTorch can leave a mode alone while it compiles, since 2.8.
COMPILES = hasattr(TorchDispatchMode, "ignore_compile_internals")
_mode_at = torch._C._get_dispatch_mode
_no_torch_function = torch._C.DisableTorchFunctionSubclass
_FAKE, _PROXY = torch._C._TorchDispatchModeKey.FAKE, torch._C._TorchDispatchModeKey.PROXY


class Dispatch(TorchDispatchMode):
    """Sees each operator below autograd, backward included."""

    compiles = COMPILES

    def __init__(self, adapter: Adapter) -> None:
        super().__init__()
        self.adapter = adapter

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Nothing has bytes; or the budget has ended, and another thread still has the mode.
        if _mode_at(_FAKE) is not None or not self.adapter.open:
            return function(*args, **(kwargs or {}))
        if has_own_dispatch(types):
            # A mode of PyTorch's that stands for the class comes after this one, and the class does nothing then.
            return function(*args, **(kwargs or {})) if _mode_at(_PROXY) is not None else NotImplemented
        with _no_torch_function():  # what the adapter asks a tensor is not for the program's subclasses to see
            return self.adapter.run(self, function, args, kwargs or {})

    def enter_below(self) -> None:
        """Becomes a mode of this thread, below those of the program that are there: these end before it does."""
        above = _leave_modes(None)
        self.__enter__()
        _enter_modes(above)

    def leave(self) -> None:
        """Is no mode of this thread any more, in whatever modes of the program it is called."""
        above = _leave_modes(self)
        if _top_mode() is self:
            self.__exit__(None, None, None)
        _enter_modes(above)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """PyTorch would wrap the function above, which costs microseconds each time. regions.py says it in another way."""
        return not COMPILES

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """PyTorch compiles below the mode. What it makes is not compiled of operators that the mode sees: regions.py."""
        return cls.compiles


def _top_mode() -> Any:
    count = torch._C._len_torch_dispatch_stack()
    return torch._C._get_dispatch_stack_at(count - 1) if count else None


def _leave_modes(until: Any) -> List[Any]:
    """Takes modes of programs off, down to that one. Their own functions for it do not run: to them, nothing happens."""
    modes: List[Any] = []
    while (mode := _top_mode()) is not None and mode is not until and not hasattr(mode, "_mode_key"):  # one of PyTorch's
        TorchDispatchMode.__exit__(mode, None, None, None)
        modes.append(mode)
    return modes


def _enter_modes(modes: List[Any]) -> None:
    for mode in reversed(modes):
        TorchDispatchMode.__enter__(mode)


_Tensor = torch.Tensor
_NUMBERS = {bool, int, float, complex}
#: What storages do with their bytes while they run, and what may be done with them later, or changes them.
_STORAGE_LOOKS = ("nbytes", "size", "__len__", "__iter__", "__repr__", "__copy__", "__deepcopy__", "__reduce__",
                  "clone", "tolist", "cpu", "cuda", "to", "_write_file")
_STORAGE_CHANGES = ("fill_", "__setitem__", "byteswap", "_set_from_file")
#: These need another storage besides, or change the size.
_STORAGE_MOVES = ("copy_", "resize_")
_STORAGE_ADDRESSES = ("data_ptr", "pin_memory", "share_memory_", "_share_fd_cpu_", "_share_filename_cpu_", "_share_cuda_")
#: A slice is a storage that shares the bytes.
_STORAGE_ARRAYS = ("__getitem__",)
#: They read the bytes while they run.
_LOOKS = ("tolist", "__repr__", "__deepcopy__", "__format__", "untyped_storage", "storage", "_typed_storage")
#: They tell the program the address of the bytes, which it may use until the iteration ends.
_ADDRESSES = ("data_ptr", "share_memory_", "pin_memory")
#: What functions below call for an address.
_ON_THE_WAY_TO_ADDRESSES = {"data_ptr", "untyped_storage", "storage", "_typed_storage"}
#: Functions of libraries that save models and compare addresses with one another, to find out which tensors share their bytes.
#: They read none, and no other function gets these addresses.
_COMPARING = {"storage_ptr", "_end_ptr", "_filter_shared_not_shared", "_is_complete", "id_tensor_storage", "_get_unique_id",
              "get_torch_storage_id", "_find_disjoint", "_find_identical"}
_SAVING_LIBRARIES = {"safetensors", "huggingface_hub", "transformers", "accelerate", "diffusers"}
#: They change the bytes, and call the program for each element meanwhile. The other tensors are read.
_LOOPS = ("apply_", "map_", "map2_")
#: How TorchScript writes its files: in C++, past the operators.
_SCRIPT_FILES = ("save", "save_to_buffer", "_save_for_mobile", "_save_to_buffer_for_mobile")
#: They make something that shares the bytes. PyTorch never moves such a storage again.
_ARRAYS = ("numpy", "__array__", "__dlpack__")


class Looks:
    """Wraps the functions of tensors that touch the bytes beside the operators. So it holds in all threads, and costs
    nothing elsewhere."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self._originals: Dict[Tuple[Any, str], Any] = {}
        self.codes: Set[Any] = set()  # of the functions that stand for them
        self._functions: List[Tuple[Any, str, Any, Any]] = []  # those that belong to no tensor, and what stands for them
        self._scripted: List[Any] = []  # functions that TorchScript takes for the originals
        self._inside = threading.local()
        self._twins: Dict[Any, Any] = {}  # while torch.save() runs

    def install(self) -> None:
        _remember_functions()
        names: Iterable[str]
        for names, prepare in ((_LOOKS, self._look), (_ADDRESSES, self._address), (_ARRAYS, self._array)):
            for name in names:
                if hasattr(_Tensor, name):
                    self._wrap(_Tensor, name, prepare, self._storage)
        for names, prepare, storage_in in ((_STORAGE_LOOKS, self._look, self._known_storage),
                                           (_STORAGE_CHANGES, self._change, self._known_storage),
                                           (_STORAGE_MOVES, self._address, self._known_storage),
                                           (_STORAGE_ADDRESSES, self._address, self._any_storage),
                                           (_STORAGE_ARRAYS, self._array, self._any_storage)):
            for name in names:
                if hasattr(torch.UntypedStorage, name):
                    self._wrap(torch.UntypedStorage, name, prepare, storage_in)
        self._originals[_Tensor, "__reduce_ex__"] = _Tensor.__dict__.get("__reduce_ex__")
        self._originals[_Tensor, "__copy__"] = _Tensor.__dict__.get("__copy__")
        _Tensor.__copy__ = self._copying(_Tensor.__reduce_ex__)  # type: ignore[attr-defined]
        _Tensor.__reduce_ex__ = self._reducing(_Tensor.__reduce_ex__)  # type: ignore[method-assign]

        for module in (torch.utils.dlpack, torch):
            self._replace(module, "to_dlpack", self._exported)
        for name in ("tensor", "as_tensor", "asarray", "sparse_coo_tensor", "sparse_compressed_tensor", "sparse_csr_tensor",
                     "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor"):
            self._replace_by(torch, name, self._from_list)
        for name in ("new_tensor", "new"):
            self._replace_by(_Tensor, name, self._from_list)
        for name in _LOOPS:
            self._replace_by(_Tensor, name, self._looping)
        for where in (torch, _Tensor):
            self._replace_by(where, "tensor_split", self._from_numbers)
        for where in (torch.random, torch):
            self._replace_by(where, "set_rng_state", self._reading)
        for where in (torch.serialization, torch):
            self._replace_by(where, "save", self._saving)
        for kind in (torch._C.ScriptModule, torch._C.ScriptFunction):
            for name in _SCRIPT_FILES:
                if hasattr(kind, name):
                    self._replace_by(kind, name, self._all_at_once)
        if self.adapter.type == "cpu":
            self._replace(torch.nn.utils.rnn.PackedSequence, "__new__", self._packed)
            self._replace(torch._VF, "_pad_packed_sequence", self._padded, alone=True)
            with contextlib.suppress(Exception):  # it is not there, or broken
                safetensors = importlib.import_module("safetensors.torch")
                for name in ("save", "save_file", "_flatten", "_flatten_as_ptr"):  # the last two for who has imported the first
                    if hasattr(safetensors, name):
                        self._replace_by(safetensors, name, self._saved)
        self._replace_imported({id(original): wrapped for _, _, original, wrapped in self._functions})

    def remove(self) -> None:
        self._replace_imported({id(wrapped): original for _, _, original, wrapped in self._functions})
        for (kind, name), original in self._originals.items():
            if original is None:
                delattr(kind, name)  # it was inherited
            else:
                setattr(kind, name, original)
        for wrapped in self._scripted:
            _builtins._get_builtin_table().pop(id(wrapped), None)
        self._scripted.clear()
        self._originals.clear()

    @contextlib.contextmanager
    def functions_as_before(self) -> Iterator[None]:
        """PyTorch's own functions are where they were meanwhile, but for methods of tensors."""
        for where, name, original, _ in self._functions:
            setattr(where, name, original)
        try:
            yield
        finally:
            for where, name, _, wrapped in self._functions:
                setattr(where, name, wrapped)

    def _wrap(self, kind: type, name: str, prepare: Callable[[Any, str], None], storage_in: Callable[[Any], Any]) -> None:
        original = getattr(kind, name)
        inside = self._inside

        @functools.wraps(original)
        def wrapped(value: Any, *args: Any, **kwargs: Any) -> Any:
            # These functions call one another.
            if getattr(inside, "now", False):
                return original(value, *args, **kwargs)
            if name in _ON_THE_WAY_TO_ADDRESSES and _is_comparing(sys._getframe(1)):
                storage = storage_in(value) if name == "data_ptr" else None
                return original(value, *args, **kwargs) if storage is None else _identity(value, storage)
            inside.now = True
            try:
                storage = storage_in(value)
                if storage is None and name != "copy_":  # it is not the adapter's, and may take as long as it likes
                    inside.now = name != "__deepcopy__" or kind is not _Tensor
                    return original(value, *args, **kwargs)
                with self.adapter.lock:  # no other thread takes the bytes away meanwhile
                    if self.adapter.in_operator:
                        if storage is not None:
                            require_bytes(storage, f"{name}()")
                        return original(value, *args, **kwargs)
                    if storage is not None:
                        prepare(storage, name)
                    if name == "copy_" and args and isinstance(args[0], torch.UntypedStorage):
                        self.adapter.hold(args[0])
                    # It goes on to what the program has added to the tensor, which looks for itself.
                    inside.now = name != "__deepcopy__" or kind is not _Tensor
                    result = original(value, *args, **kwargs)
                    if name == "resize_":
                        self.adapter.resized(value)
                    return result
            finally:
                inside.now = False

        self._originals[kind, name] = kind.__dict__.get(name)
        self.codes.add(wrapped.__code__)  # type: ignore[attr-defined]
        setattr(kind, name, wrapped)

    @staticmethod
    def _replace_imported(others: Dict[int, Any]) -> None:
        """The same in modules that have imported a function by its name: `from torch.utils.dlpack import to_dlpack`."""
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in ("torch", "swapmm") or not isinstance(module, types.ModuleType):
                continue
            for key, value in list(object.__getattribute__(module, "__dict__").items()):  # lazy ones stay lazy
                other = others.get(id(value))
                if other is not None:
                    setattr(module, key, other)

    def _replace(self, where: Any, name: str, prepare: Callable[..., None], alone: bool = False) -> None:
        """The same for a function that belongs to no tensor. `alone`: the adapter does not see what it does."""

        def call(original: Any, *args: Any, **kwargs: Any) -> Any:
            prepare(*args, **kwargs)
            if not alone:
                return original(*args, **kwargs)
            with torch.utils._python_dispatch._disable_current_modes():
                return original(*args, **kwargs)

        self._replace_by(where, name, call)

    def _replace_by(self, where: Any, name: str, call: Callable[..., Any]) -> None:
        original = getattr(where, name)

        @functools.wraps(original)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return call(original, *args, **kwargs)

        self._originals[where, name] = where.__dict__.get(name)
        self.codes.add(wrapped.__code__)  # type: ignore[attr-defined]
        self._functions.append((where, name, original, wrapped))
        setattr(where, name, wrapped)
        operator = _builtins._find_builtin(original)
        if operator is not None:  # TorchScript knows functions by their identity
            _builtins._register_builtin(wrapped, operator)
            self._scripted.append(wrapped)

    def _exported(self, tensor: torch.Tensor) -> None:
        storage = self._storage(tensor)
        if storage is not None:
            self._array(storage, "to_dlpack")

    def _from_list(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():  # PyTorch's compiler looks at this code, too, and at no values
            return original(*args, **kwargs)
        return original(*(self._alone(value) if isinstance(value, (list, tuple)) else value for value in args),
                        **{name: self._alone(value) if isinstance(value, (list, tuple)) else value
                           for name, value in kwargs.items()})

    def _alone(self, value: Any, depth: int = 64) -> Any:
        """Elements of lists are read past the operators: those of large tensors are copied out before."""
        if isinstance(value, _Tensor):
            storage = self._storage(value) if value.numel() == 1 else None
            return value if storage is None else value.detach().clone()
        if depth == 0 or not isinstance(value, (list, tuple)) or all(element.__class__ in _NUMBERS for element in value):
            return value
        return [self._alone(element, depth - 1) for element in value]

    def _from_numbers(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        """A function that reads its second argument past the operators, if that is a tensor."""
        name = "tensor_indices_or_sections"
        given = args[1] if len(args) > 1 else kwargs.get(name)
        if (isinstance(given, _Tensor) and given.dtype is torch.int64 and given.device.type == "cpu"
                and not torch.compiler.is_compiling()):
            numbers = given.tolist()
            if len(args) > 1:
                args = (args[0], numbers, *args[2:])
            else:
                del kwargs[name]
                kwargs["indices" if isinstance(numbers, list) else "sections"] = numbers
        return original(*args, **kwargs)

    def _reading(self, original: Any, new_state: Any) -> Any:
        storage = self._storage(new_state)
        with self.adapter.lock:  # no other thread takes the bytes away meanwhile
            if storage is not None:
                self.adapter.hold(storage)
            return original(new_state)

    def _looping(self, original: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        """It calls the program for each element, which may do anything. So it works on copies in host memory."""
        others = [value for value in (*args, *kwargs.values()) if isinstance(value, _Tensor)]
        storage = self._storage(tensor)
        if storage is None or self.adapter.in_operator or any(value.requires_grad for value in (tensor, *others)):
            return original(tensor, *args, **kwargs)
        copy_of = self._copied_out(tensor)
        try:
            original(copy_of, *map(self._copied_out, args), **{name: self._copied_out(value) for name, value in kwargs.items()})
        finally:
            with self.adapter.lock, torch.utils._python_dispatch._disable_current_modes():
                self.adapter.change(storage)
                tensor.copy_(copy_of)
        return tensor

    def _copied_out(self, value: Any) -> Any:
        storage = self._storage(value)
        if storage is None:
            return value
        with self.adapter.lock, torch.utils._python_dispatch._disable_current_modes():
            self.adapter.hold(storage)
            return value.clone()

    def _all_at_once(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        """A function that reads any tensors past the operators: all bytes are there meanwhile, or it is an error."""
        if self.adapter.in_operator or not self.adapter.open:
            return original(*args, **kwargs)
        try:
            with self.adapter.all_held():
                return original(*args, **kwargs)
        except errors.Error as reason:
            raise type(reason)(
                "torch.jit.save() needs the bytes of all tensors at once, and the budget has no room for them: "
                f"{reason}. Save state_dict(), or call swapmm.torch.off() before"
            ) from reason

    def _packed(self, _class: type, data: Any, batch_sizes: Any = None, *_args: Any, **_kwargs: Any) -> None:
        """PyTorch reads the sizes of batches past the operators. They are on the host."""
        sizes = batch_sizes if batch_sizes is not None or not isinstance(data, (list, tuple)) else data[1]
        storage = self._storage(sizes)
        if storage is not None:
            self.adapter.release(storage, PACKED_REASON, until_step=False)

    def _padded(self, data: Any, *_args: Any, **_kwargs: Any) -> None:
        """PyTorch writes to memory of the host that an operator has made, while others run."""
        storage = self._storage(data)
        if storage is not None:
            self._address(storage, "pad_packed_sequence")

    def _storage(self, tensor: Any) -> Any:
        if not isinstance(tensor, _Tensor) or has_own_dispatch((tensor.__class__,)) or not self.adapter.is_ours(tensor):
            return None
        storage = storage_of(tensor)
        return storage if hasattr(storage, ATTRIBUTE) or nbytes_of(storage) else None

    def _known_storage(self, storage: Any) -> Any:
        return storage if getattr(storage, ATTRIBUTE, None) is not None else None

    def _any_storage(self, storage: Any) -> Any:
        """Also one that the adapter has not seen yet, and would move."""
        if not hasattr(storage, ATTRIBUTE):
            return storage if self.adapter.has(storage.device) and nbytes_of(storage) else None
        return self._known_storage(storage)

    def _look(self, storage: Any, _name: str) -> None:
        self.adapter.hold(storage)

    def _change(self, storage: Any, _name: str) -> None:
        self.adapter.change(storage)

    def _address(self, storage: Any, name: str) -> None:
        self.adapter.release(storage, f"the program called {name}()", until_step=True)

    def _array(self, storage: Any, name: str) -> None:
        self.adapter.release(storage, f"the program called {name}()", until_step=False)

    # ---- copying and saving

    def _copying(self, original: Any) -> Any:
        """copy.copy() makes another tensor of the same storage. It asks __reduce_ex__ otherwise, as saving does."""

        @functools.wraps(copy.copy)
        def copied(tensor: Any) -> Any:
            storage = self._storage(tensor)
            if storage is None or type(tensor) is not _Tensor:
                return copy._reconstruct(tensor, None, *tensor.__reduce_ex__(4))  # type: ignore[attr-defined]
            with self.adapter.lock, torch.utils._python_dispatch._disable_current_modes():
                self.adapter.hold(storage)
                return copy._reconstruct(tensor, None, *original(tensor, 4))  # type: ignore[attr-defined]

        return copied

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

    def _saving(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        """The copies that it makes are gone when it returns."""
        try:
            return original(*args, **kwargs)
        finally:
            self._twins.clear()

    def _saved(self, original: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
        """A function that reads all tensors of a dictionary at once, past the operators."""
        if not isinstance(tensors, dict):
            return original(tensors, *args, **kwargs)
        return self._saving(
            lambda: original({name: self._in_host(value) for name, value in tensors.items()}, *args, **kwargs))

    def _in_host(self, value: Any) -> Any:
        storage = self._storage(value)
        return value if getattr(storage, ATTRIBUTE, None) is None else self._twin(value, storage)

    def _twin(self, tensor: torch.Tensor, storage: Any) -> torch.Tensor:
        """A tensor with the same values and the same view, of a storage in host memory. Tensors that share a storage
        have twins that do, as long as no operator runs in between."""
        key = id(storage)
        known = self._twins.get(key)
        if known is None or known[0]() is not storage or known[1] != self.adapter.operations:
            with self.adapter.lock, torch.utils._python_dispatch._disable_current_modes():
                self.adapter.hold(storage)
                copy = torch.UntypedStorage(nbytes_of(storage))
                with self.adapter.memory.in_order():
                    copy_storage(copy, storage)
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
        twin.__dict__.update(tensor.__dict__)  # what the program has added
        return twin.requires_grad_(tensor.requires_grad)


def _remember_functions() -> None:
    """PyTorch looks functions up by what they are, in tables that it makes when it first needs them: of those that make
    tensors, for `with torch.device(...)`, and of those that classes may override. They are to have its own functions, not what stands for
    them here."""
    for module in (torch.overrides, torch.utils._device):
        for function in list(vars(module).values()):
            if hasattr(function, "cache_info") and not inspect.signature(function).parameters:
                function()


def _is_comparing(frame: Any) -> bool:
    """Whether a call for an address comes from a function that only compares it with others."""
    while frame is not None and frame.f_globals.get("__name__") == "torch.storage":
        frame = frame.f_back
    if frame is None or frame.f_code.co_name not in _COMPARING:
        return False
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _SAVING_LIBRARIES


def _identity(value: Any, storage: Any) -> int:
    """A number in place of an address: those of two tensors differ as their addresses would, wherever the bytes are."""
    begin = storage._cdata << 64
    return begin + value.storage_offset() * value.element_size() if isinstance(value, _Tensor) else begin


def running_module() -> str:
    """The path of the innermost module that runs in this thread, for messages."""
    call = getattr(torch.nn.Module._call_impl, "__code__", None)
    running: List[Any] = []
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code is call:
            running.append(frame.f_locals.get("self"))
        frame = frame.f_back  # type: ignore[assignment]
    if not running:
        return ""
    innermost, root = running[0], running[-1]
    path = next((name for name, module in root.named_modules() if module is innermost), "")
    return f"module {type(root).__name__}{'.' + path if path else ''} ({type(innermost).__name__})"


class Threads:
    """Gives the mode to threads that begin later, and tells the adapter that it is in the child of a fork."""

    def __init__(self, mode: Dispatch) -> None:
        self.mode = mode
        self._original: Any = None
        self._replaced: List[Tuple[Any, str, Any, Any]] = []  # where, the name, ours, the original
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
        start, make, run = _thread.start_new_thread, _WorkItem.__init__, _WorkItem.run

        def start_with_mode(function: Any, *arguments: Any) -> int:
            def with_mode(*args: Any, **kwargs: Any) -> Any:
                with mode:
                    return function(*args, **kwargs)

            alone = self._in_operator() or not callable(function)
            return start(function if alone else with_mode, *arguments)

        def made(item: Any, *args: Any, **kwargs: Any) -> None:
            make(item, *args, **kwargs)
            item.swapmm_alone = self._in_operator()

        # Threads of a pool may be older than the budget.
        def run_with_mode(item: Any, *args: Any) -> None:
            alone = getattr(item, "swapmm_alone", True)
            if alone or mode in torch.utils._python_dispatch._get_current_dispatch_mode_stack():
                return run(item, *args)
            with mode:
                run(item, *args)

        self._replaced = [(_thread, "start_new_thread", start_with_mode, start), (_WorkItem, "__init__", made, make),
                          (_WorkItem, "run", run_with_mode, run)]
        for where, name, ours, _ in self._replaced:
            setattr(where, name, ours)

    def _in_operator(self) -> bool:
        """Whether an operator that is written in Python runs in this thread. It has the lock, and may wait for what it starts:
        that belongs to the operator."""
        adapter = self.mode.adapter
        return adapter.in_operator and adapter.lock._is_owned()

    def remove(self) -> None:
        threading.Thread._bootstrap_inner = self._original  # type: ignore[attr-defined]
        for where, name, ours, original in self._replaced:
            if getattr(where, name) is ours:  # nobody has replaced it since
                setattr(where, name, original)
