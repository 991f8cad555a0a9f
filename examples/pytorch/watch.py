# SPDX-License-Identifier: Apache-2.0
"""Sees the operators of a PyTorch program below autograd, and notes what each does to which storage."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

# PyTorch 2 renamed it.
storage_of = getattr(torch.Tensor, "untyped_storage", None) or torch.Tensor._storage

# In-place operations that leave nothing of the old value.
OVERWRITING = {"zero_", "fill_", "copy_", "normal_", "uniform_", "random_", "exponential_", "cauchy_", "log_normal_",
               "geometric_", "bernoulli_", "_foreach_zero_", "_foreach_copy_"}
# These change arguments that their schemas do not mark.
BATCH_NORMS = {"native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "batch_norm_update_stats",
               "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts"}
RUNNING = {"running_mean", "running_var"}
# What touches no data: it asks or changes the shape alone.
DATALESS = {"is_same_size", "is_pinned", "record_stream", "resize_", "resize_as_", "set_", "sym_size", "sym_stride",
            "sym_numel", "sym_storage_offset", "dim", "is_contiguous"}


class Storage:
  """One storage for as long as it exists. The weak reference keeps the storage's record, not its bytes: until the
  recording ends no other storage has its id, wherever the allocator places new bytes."""
  __slots__ = ("reference", "bytes", "name", "made_in", "has_value")

  def __init__(self, handle, made_in):
    self.reference = StorageWeakRef(handle)
    self.bytes = handle.nbytes()
    self.name = ""
    self.made_in = made_in  # the step in which an operation returned it; None: it came from elsewhere
    self.has_value = made_in is None


class Storages:
  """All storages of a recording, on one device, and whose they are."""

  def __init__(self, device):
    self.device = device
    self.known = {}  # by id
    self.host_handles = {}  # on this device, but the host's by nature; by id
    self.inputs, self.parameters = set(), set()

  def find(self, handle, made_in=None):
    """`made_in`: the step that made it, if it is new."""
    found = self.known.get(handle._cdata)
    if found is None:
      found = self.known[handle._cdata] = Storage(handle, made_in)
    found.bytes = max(found.bytes, handle.nbytes())  # resize_ and out= make it grow
    return found

  def keep_on_host(self, handle):
    self.host_handles[handle._cdata] = handle  # and so its id stays taken

  def on_host(self, tensor, handle):
    return tensor.device.type != self.device.type or handle._cdata in self.host_handles


class Signature:
  """What an operator's schema says about its arguments, and what is known beyond it."""

  def __init__(self, function):
    namespace, name = function._schema.name.split("::")
    plain = function.__name__[:-len(".default")] if function.__name__.endswith(".default") else function.__name__
    self.base = name
    self.name = plain if namespace == "aten" else f"{namespace}.{plain}"
    reshapes = any(getattr(tag, "name", "") == "inplace_view" for tag in getattr(function, "tags", ()))
    self.dataless = namespace in ("prim", "profiler") or name in DATALESS or reshapes or _always_views(function)
    self.allocates = name.lstrip("_").startswith(("empty", "new_empty"))
    for_shape_only = name.endswith("_like") or name.startswith("new_") or self.allocates
    self.training = None
    self.names, self.ways = [], []
    for position, argument in enumerate(function._schema.arguments):
      written = argument.alias_info is not None and argument.alias_info.is_write
      if written:
        way = "overwrite" if argument.kwarg_only or name in OVERWRITING else "change"
      elif name in BATCH_NORMS and argument.name in RUNNING:
        way = "change"
      else:
        way = "look" if for_shape_only else "read"
      if argument.name == "training" and name in BATCH_NORMS:
        self.training = position
      self.names.append(argument.name)
      self.ways.append(way)
    self.ways_of = dict(zip(self.names, self.ways))

  def operands(self, args, kwargs):
    """(tensor, way) of each tensor argument; ways are look, read, change and overwrite."""
    frozen = self.training is not None and not (
        args[self.training] if self.training < len(args) else kwargs.get("training", True))
    for way, value in [*zip(self.ways, args), *((self.ways_of.get(name, "read"), v) for name, v in kwargs.items())]:
      for tensor in _flat_tensors(value):
        yield tensor, "read" if frozen and way == "change" else way


def _always_views(function):
  """By its schema alone. Operators made of others, as reshape, may return a view and may not."""
  schema = function._schema
  aliases = [value.alias_info for value in schema.returns]
  if not aliases or any(alias is None or alias.is_write for alias in aliases):
    return False
  name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
  return not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")


_signatures = {}


def _signature_of(function):
  found = _signatures.get(function)
  if found is None:
    found = _signatures[function] = Signature(function)
  return found


def _flat_tensors(value):
  if isinstance(value, torch.Tensor):
    yield value
  elif isinstance(value, (list, tuple)):
    for element in value:
      yield from _flat_tensors(element)


def _covers(tensor, handle):
  """Whether the elements of the tensor are all bytes of the storage, each once."""
  if tensor.numel() * tensor.element_size() != handle.nbytes():
    return False
  expected = 1
  for stride, size in sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape) if size != 1):
    if stride != expected:
      return False
    expected *= size
  return True


class Step:
  """What one step did, in order."""

  def __init__(self, number):
    self.number = number
    self.operations = []  # (name, [(storage, access)], measured)
    self.first_access = {}  # storage -> operation, in the order of first accesses
    self.last_write = {}
    self.lives_in = set()  # storages that this step accesses and did not make
    self.uploads = {}  # storage -> the operation before which the host gave it a value
    self.host_reads = []  # (storage, the operation that wrote the value; None: an earlier step did)

  def add(self, name, accesses, measured):
    position = len(self.operations)
    for storage, access in accesses:
      if storage not in self.first_access:
        self.first_access[storage] = position
        if storage.made_in != self.number:
          self.lives_in.add(storage)
      if access != "reads":
        self.last_write[storage] = position
        storage.has_value = True
    self.operations.append((name, accesses, measured))

  def bundles(self):
    """The sequence without identities: equal for two steps of the same program."""
    ids = {storage: i for i, storage in enumerate(self.first_access)}
    return [(name, [(ids[storage], access) for storage, access in accesses]) for name, accesses, _ in self.operations]


class Watch(TorchDispatchMode):
  """Sees each operator of one step below autograd, backward included, and notes what it does to storages."""

  def __init__(self, storages, step, probe):
    super().__init__()
    self.storages, self.step, self.probe = storages, step, probe

  def __torch_dispatch__(self, function, types, args=(), kwargs=None):
    kwargs = kwargs or {}
    signature = _signature_of(function)
    if signature.dataless:
      return function(*args, **kwargs)
    operands = [(tensor, storage_of(tensor), way) for tensor, way in signature.operands(args, kwargs)]
    token = self.probe.before()
    results = function(*args, **kwargs)
    measured = self.probe.after(token)
    made = [(tensor, storage_of(tensor)) for tensor in _flat_tensors(results)]
    if not self._crosses(signature, operands, made):
      self._note(signature, operands, made, measured)
    return results

  def _crosses(self, signature, operands, made):
    """Copies between host and device are no operations; what they say about values is noted. True where it is one."""
    on_host = self.storages.on_host
    if signature.base in ("_local_scalar_dense", "item"):
      self._host_read(*operands[0][:2])
      return True
    if signature.base == "copy_":
      (target, target_handle, _), (source, source_handle, _) = operands[:2]
    elif len(operands) == 1 and len(made) == 1:
      (source, source_handle, _), (target, target_handle) = operands[0], made[0]
    else:
      return False
    from_host, to_host = on_host(source, source_handle), on_host(target, target_handle)
    if to_host:
      self._host_read(source, source_handle)
    elif from_host:
      return self._upload(target, target_handle, signature.base != "copy_")
    return to_host

  def _host_read(self, tensor, handle):
    if self.storages.on_host(tensor, handle) or tensor.numel() == 0:
      return
    storage = self.storages.find(handle)
    if storage.has_value:
      self.step.host_reads.append((storage, self.step.last_write.get(storage)))

  def _upload(self, tensor, handle, fresh):
    """The host gives a whole new value to a storage that this step has not touched: an input. Otherwise the copy is an
    operation like any other."""
    storage = self.storages.find(handle, self.step.number if fresh else None)
    if storage in self.step.first_access or storage in self.storages.parameters or not _covers(tensor, handle):
      return False
    self.step.uploads[storage] = len(self.step.operations)
    storage.has_value = True
    return True

  def _note(self, signature, operands, made, measured):
    storages, number = self.storages, self.step.number
    known = {handle._cdata for _, handle, _ in operands}
    fresh = [(tensor, handle) for tensor, handle in made if handle._cdata not in known]
    changes = any(way in ("change", "overwrite") for _, _, way in operands)
    if made and not fresh and not changes:
      return  # a view
    if signature.allocates:
      for tensor, handle in fresh:
        if not storages.on_host(tensor, handle):
          storages.find(handle, number)
      return
    found = {}  # storage -> [is read, is changed, all of it is overwritten]
    for tensor, handle, way in operands:
      if way == "look" or tensor.numel() == 0 or storages.on_host(tensor, handle):
        continue
      facts = found.setdefault(storages.find(handle), [False, False, False])
      facts[0] |= way == "read"
      facts[1] |= way != "read"
      facts[2] |= way == "overwrite" and _covers(tensor, handle)
    for tensor, handle in fresh:
      if tensor.numel() != 0 and not storages.on_host(tensor, handle):
        found.setdefault(storages.find(handle, number), [False, True, True])
    if not found:
      return
    accesses = []
    for storage, (is_read, is_changed, is_whole) in found.items():
      access = "reads" if not is_changed else "writes" if is_whole and not is_read else "updates"
      if not storage.has_value:
        # Nobody needs what an allocation left there: whatever is written first is the whole value. What is read
        # without having been written gets an operation that stands for the undefined bytes.
        if access == "reads":
          self.step.add("uninitialised", [(storage, "writes")], None)
        else:
          access = "writes"
      accesses.append((storage, access))
      if not storage.name and access == "writes":
        storage.name = f"{signature.name}.{len(self.step.operations)}"
    self.step.add(signature.name, accesses, measured)
