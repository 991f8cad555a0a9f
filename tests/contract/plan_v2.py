#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A validator and a timing simulator for plans, written from docs/formats.md alone.

It knows traces, machines and plans of the versions 1 and 2. Version 1 is converted by the table at the end of the
section "Version 2". It shares no code with the library, so the two can check each other and the page.

    plan_v2.py check TRACE PLAN               violations, one per line as "rule N: text", or "valid"
    plan_v2.py time TRACE PLAN [ITERATIONS]   end times of iterations, then the mean of the long run
    plan_v2.py many FILE                      FILE has one {"trace": ..., "plan": ...} in each line

Rule 0 is everything that is checked before rules 2 to 7 have a meaning: types, names, indices, the digest.
"""
import bisect
import collections
import fractions
import hashlib
import heapq
import json
import re
import sys
import types

LIMIT = 1 << 62
PLAIN = "plain"


class FormatError(Exception):
    """A text, or a part of it, that is not what the page says. The message begins with the place of the error."""


# ---------------------------------------------------------------------------------------------------------------------
# Reading. A check is a function of a JSON value and its place in the file, which returns the value or raises.
# ---------------------------------------------------------------------------------------------------------------------

def integer(low, high):
    """A check for integers with low <= value <= high."""
    def check(value, where):
        if isinstance(value, bool) or not isinstance(value, int):
            raise FormatError(f"{where}: not an integer")
        if not low <= value <= high:
            raise FormatError(f"{where}: {value} is not from {low} to {high}")
        return value
    return check


SIZE = integer(0, LIMIT - 1)
POSITIVE = integer(1, LIMIT - 1)
INDEX = integer(0, (1 << 24) - 1)


def text(value, where):
    if not isinstance(value, str) or len(value.encode("utf-8", "surrogatepass")) > 1024:
        raise FormatError(f"{where}: not a text of at most 1 KiB")
    return value


def name(value, where):
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", value):
        raise FormatError(f"{where}: {value!r} is not a name")
    return value


def boolean(value, where):
    if not isinstance(value, bool):
        raise FormatError(f"{where}: neither true nor false")
    return value


def array(value, where):
    if not isinstance(value, list):
        raise FormatError(f"{where}: not an array")
    return value


def structure(value, where):
    if not isinstance(value, dict):
        raise FormatError(f"{where}: not an object")
    return value


def one_of(*allowed):
    def check(value, where):
        if not isinstance(value, (str, int)) or isinstance(value, bool) or value not in allowed:
            raise FormatError(f"{where}: {value!r} is not one of {', '.join(map(str, allowed))}")
        return value
    return check


def or_null(check):
    return lambda value, where: None if value is None else check(value, where)


REQUIRED = object()


def get(data, field, where, check, default=REQUIRED):
    """The checked field of an object. A field that is missing gives the default, if there is one."""
    structure(data, where or "text")
    place = f"{where}.{field}" if where else field
    if field in data:
        return check(data[field], place)
    if default is REQUIRED:
        raise FormatError(f"{place}: missing")
    return default


def each(data, field, where, default=REQUIRED):
    """Pairs of place and value for the elements of an array."""
    place = f"{where}.{field}" if where else field
    return [(f"{place}[{i}]", value) for i, value in enumerate(get(data, field, where, array, default))]


def parse(content):
    """JSON in which no field stands twice in one object."""
    def pairs(fields):
        result = dict(fields)
        if len(result) != len(fields):
            raise FormatError("a field stands twice in one object")
        return result

    def constant(value):
        raise FormatError(f"not JSON: {value}")
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}") from None


def version_of(data, kind, optional=None):
    """The version of a text. Format and version may be missing if `optional` is the version to assume then."""
    get(data, "format", "", one_of(kind), REQUIRED if optional is None else kind)
    return get(data, "version", "", one_of(1, 2), REQUIRED if optional is None else optional)


def read_trace(data):
    version = version_of(data, "swapmm-trace")
    trace = types.SimpleNamespace(tensors=[], operations=[], host_reads=[])
    get(data, "name", "", text)
    for where, item in each(data, "tensors", ""):
        tensor = types.SimpleNamespace(forms={})
        tensor.bytes = get(item, "bytes", where, SIZE)
        tensor.kind = get(item, "kind", where, one_of("persistent", "input", "transient"))
        get(item, "name", where, text)
        tensor.available_from = get(item, "available_from", where, INDEX, 0)
        if "available_from" in item and tensor.kind != "input":
            raise FormatError(f"{where}.available_from: only inputs have it")
        for place, form in each(item, "forms", where, []) if version == 2 else []:
            title = get(form, "name", place, name)
            if title == PLAIN or title in tensor.forms:
                raise FormatError(f"{place}.name: {title} is taken")
            size = get(form, "bytes", place, SIZE)
            tensor.forms[title] = types.SimpleNamespace(
                bytes=size, expected=get(form, "expected_bytes", place, integer(0, size)),
                encode=get(form, "encode_ns", place, SIZE), decode=get(form, "decode_ns", place, SIZE))
        trace.tensors.append(tensor)
    for where, item in each(data, "operations", ""):
        operation = types.SimpleNamespace(engine=None, replayable=False, in_pieces=False, accesses=[])
        get(item, "name", where, text)
        operation.duration = get(item, "duration_ns", where, SIZE)
        if version == 2:
            operation.engine = get(item, "engine", where, name, None)
            operation.replayable = get(item, "replayable", where, boolean, False)
            operation.in_pieces = get(item, "in_pieces", where, boolean, False)
        for field in ("reads", "writes", "updates"):
            for place, value in each(item, field, where, []):
                operation.accesses.append(read_access(trace, version, field[0], value, place))
        ids = [access.tensor for access in operation.accesses]
        if len(set(ids)) != len(ids):
            raise FormatError(f"{where}: a tensor is accessed twice")
        trace.operations.append(operation)
    for where, item in each(data, "host_reads", "", []):
        tensor = get(item, "tensor", where, integer(0, len(trace.tensors) - 1))
        after = get(item, "after_operation", where, integer(0, len(trace.operations) - 1))
        trace.host_reads.append((tensor, after))
    check_trace(trace)
    return trace


def read_access(trace, version, mode, value, where):
    """An access: mode r, w or u, and the range of bytes if the trace gives one."""
    identity = integer(0, len(trace.tensors) - 1)
    if version == 2 and isinstance(value, dict):
        tensor = get(value, "tensor", where, identity)
        first = get(value, "first", where, SIZE)
        size = get(value, "bytes", where, POSITIVE)
        if first + size > trace.tensors[tensor].bytes:
            raise FormatError(f"{where}: the range goes beyond the end of the tensor")
        return types.SimpleNamespace(mode=mode, tensor=tensor, range=(first, size))
    return types.SimpleNamespace(mode=mode, tensor=identity(value, where), range=None)


def check_trace(trace):
    """The rules that follow from what a trace means."""
    count = len(trace.operations)
    if not count:
        raise FormatError("operations: there is none")
    if sum(tensor.bytes for tensor in trace.tensors) >= LIMIT:
        raise FormatError("tensors: the sizes add up to 2^62 bytes or more")
    if sum(operation.duration for operation in trace.operations) >= LIMIT:
        raise FormatError("operations: the durations add up to 2^62 ns or more")
    written = set()
    first_write = {}
    for i, tensor in enumerate(trace.tensors):
        if tensor.available_from >= count:
            raise FormatError(f"tensors[{i}].available_from: there is no such operation")
    for i, operation in enumerate(trace.operations):
        for access in operation.accesses:
            tensor = trace.tensors[access.tensor]
            if access.mode == "w":
                written.add(access.tensor)
                first_write.setdefault(access.tensor, i)
            elif tensor.kind == "transient" and access.tensor not in written:
                raise FormatError(f"operations[{i}]: tensor {access.tensor} has no value yet")
            if i < tensor.available_from:
                raise FormatError(f"operations[{i}]: input {access.tensor} is not available yet")
    for i, (index, after) in enumerate(trace.host_reads):
        tensor = trace.tensors[index]
        if tensor.kind == "transient" and first_write.get(index, count) > after or after < tensor.available_from:
            raise FormatError(f"host_reads[{i}]: tensor {index} has no value then")


def digest(trace):
    """The digest of a trace that was read."""
    lines = []
    for tensor in trace.tensors:
        lines.append(f"T {tensor.bytes} {tensor.kind}")
        lines += [f"F {title} {form.bytes}" for title, form in tensor.forms.items()]
    for operation in trace.operations:
        line = "O"
        for mode in "rwu":
            accesses = sorted((a for a in operation.accesses if a.mode == mode), key=lambda a: a.tensor)
            line += f" {mode}" + ",".join(
                f"{a.tensor}" + (f"[{a.range[0]}+{a.range[1]}]" if a.range else "") for a in accesses)
        line += f" e{operation.engine}" if operation.engine is not None else ""
        line += " a" * operation.replayable + " p" * operation.in_pieces
        lines.append(line)
    return hashlib.sha256("".join(line + "\n" for line in lines).encode("ascii")).hexdigest()


def read_machine(data, where="machine"):
    """A machine of version 2. Dictionaries keep the order of the file."""
    def unique(table, item, place, value):
        title = get(item, "name", place, name)
        if title in table:
            raise FormatError(f"{place}.name: {title} stands twice")
        table[title] = value
    machine = types.SimpleNamespace(memories={}, engines={}, capacities={}, links={})
    get(data, "name", where, text)
    for place, item in each(data, "memories", where):
        memory = types.SimpleNamespace(bytes=get(item, "bytes", place, or_null(POSITIVE)))
        memory.alignment = get(item, "alignment_bytes", place, integer(1, 1 << 40), 1)
        memory.largest = get(item, "max_allocation_bytes", place, or_null(POSITIVE), None)
        if memory.largest is not None and memory.largest % memory.alignment:
            raise FormatError(f"{place}: the alignment does not divide the largest allocation")
        unique(machine.memories, item, place, memory)
    a_memory = one_of(*machine.memories)
    for place, item in each(data, "engines", where):
        unique(machine.engines, item, place, get(item, "memory", place, a_memory, None))
    for place, item in each(data, "capacities", where, []):
        unique(machine.capacities, item, place, get(item, "bytes_per_second", place, POSITIVE))
    users = collections.Counter()
    for place, item in each(data, "links", where):
        link = types.SimpleNamespace(source=get(item, "from", place, a_memory), target=get(item, "to", place, a_memory))
        link.rate = get(item, "bytes_per_second", place, POSITIVE)
        link.latency = get(item, "latency_ns", place, SIZE)
        link.engine = get(item, "engine", place, one_of(*machine.engines), None)
        link.capacities = [one_of(*machine.capacities)(c, p) for p, c in each(item, "capacities", place, [])]
        if link.source == link.target:
            raise FormatError(f"{place}: from and to are the same memory")
        if len(set(link.capacities)) != len(link.capacities):
            raise FormatError(f"{place}.capacities: a capacity stands twice")
        users.update(link.capacities)
        unique(machine.links, item, place, link)
    machine.host = get(data, "host", where, a_memory)
    if not any(machine.engines.values()):
        raise FormatError(f"{where}.engines: none has a memory")
    for title, count in users.items():
        if machine.capacities[title] < count:
            raise FormatError(f"{where}.capacities: {title} is below the number of its links")
    for table, most in ((machine.memories, 1024), (machine.engines, 65536), (machine.links, 65536),
                        (machine.capacities, 65536), (list(users.elements()), 1 << 20)):
        if len(table) > most:
            raise FormatError(f"{where}: too many")
    return machine


def convert_machine(data, where="machine"):
    """A machine of version 1, checked, as one of version 2."""
    budget = get(data, "device_budget_bytes", where, POSITIVE)
    alignment = get(data, "alignment_bytes", where, integer(1, 1 << 40))
    largest = get(data, "max_allocation_bytes", where, or_null(POSITIVE), None)
    half = get(data, "duplex", where, one_of("full", "half")) == "half"
    links = []
    for title, source, target in (("h2d", "host", "device"), ("d2h", "device", "host")):
        item = get(data, title, where, structure)
        rate = get(item, "bytes_per_second", f"{where}.{title}", POSITIVE)
        latency = get(item, "latency_ns", f"{where}.{title}", SIZE)
        if latency - (-budget * 10 ** 9 // rate) >= LIMIT:
            raise FormatError(f"{where}.{title}: a copy of the whole budget takes 2^62 ns or more")
        links.append({"name": title, "from": source, "to": target, "bytes_per_second": rate, "latency_ns": latency,
                      "engine": "h2d" if half else title})
    return {"name": get(data, "name", where, text),
            "memories": [{"name": "device", "bytes": budget, "alignment_bytes": alignment,
                          "max_allocation_bytes": largest}, {"name": "host", "bytes": None}],
            "engines": [{"name": "compute", "memory": "device"}, {"name": "h2d"}] + [{"name": "d2h"}] * (not half),
            "capacities": [], "links": links, "host": "host"}


def convert_plan(data):
    """A plan of version 1 as one of version 2. What version 2 checks, too, is left to its reader."""
    result = dict(data, version=2, initial=[], commands=[], pieces=[])
    machine = get(data, "machine", "", structure)
    version_of(machine, "swapmm-machine", 1)
    if machine.get("version", 1) != 1:
        raise FormatError("machine.version: a plan of version 1 has a machine of version 1")
    result["machine"] = convert_machine(machine)
    seen = set()
    for where, item in each(data, "initial", ""):
        tensor = get(item, "tensor", where, INDEX)
        if tensor in seen:
            raise FormatError(f"{where}.tensor: {tensor} stands twice")
        seen.add(tensor)
        result["initial"].append({"tensor": tensor, "memory": "device", "offset": get(item, "offset", where, SIZE)})
        if not get(item, "host_valid", where, boolean):
            result["initial"].append({"tensor": tensor, "memory": "host", "valid": False})
    for where, item in each(data, "commands", ""):
        kind = get(item, "kind", where, one_of("allocate", "release", "swap_in", "swap_out"))
        command = {"tensor": get(item, "tensor", where, INDEX), "after": get(item, "after", where, array, []),
                   "before_operation": get(item, "before_operation", where, or_null(SIZE), None)}
        get(item, "tier", where, one_of("host"), "host")
        if "range" in item:
            raise FormatError(f"{where}.range: version 1 moves whole tensors only")
        if kind in ("allocate", "swap_in"):
            command["offset"] = get(item, "offset", where, SIZE)
        if kind in ("allocate", "release"):
            command.update(kind=kind, memory="device")
        else:
            command.update(kind="copy", link="h2d" if kind == "swap_in" else "d2h")
        result["commands"].append(command)
    return result


# The fields of each kind of command: those that are required, and those that may be missing.
COMMANDS = {"allocate": (("tensor", "memory", "offset"), ("piece", "form")),
            "release": (("tensor", "memory"), ("piece", "form")),
            "copy": (("tensor", "link"), ("piece", "form", "offset", "position")),
            "run": (("operation",), ("position",)),
            "encode": (("tensor", "form", "engine"), ("offset", "position")),
            "decode": (("tensor", "form", "engine"), ("offset", "position"))}


def read_plan(data):
    """A plan of version 1 or 2, without a look at the trace: types, and the machine."""
    if version_of(data, "swapmm-plan") == 1:
        data = convert_plan(data)
    else:
        machine = get(data, "machine", "", structure)
        if version_of(machine, "swapmm-machine", 2) != 2:
            raise FormatError("machine.version: a plan of version 2 has a machine of version 2")
    plan = types.SimpleNamespace(pieces=[], initial=[], commands=[])
    plan.trace = get(data, "trace", "", text)
    if not re.fullmatch(r"[0-9a-f]{64}", plan.trace):
        raise FormatError("trace: not 64 lower-case hexadecimal digits")
    get(data, "planner", "", text)
    get(data, "predicted", "", structure, {})
    plan.machine = read_machine(get(data, "machine", "", structure))
    for where, item in each(data, "pieces", "", []):
        plan.pieces.append((get(item, "tensor", where, INDEX), [POSITIVE(v, p) for p, v in each(item, "at", where)]))
    for where, item in each(data, "initial", ""):
        plan.initial.append(types.SimpleNamespace(
            tensor=get(item, "tensor", where, INDEX), piece=get(item, "piece", where, INDEX, None),
            form=get(item, "form", where, name, PLAIN), memory=get(item, "memory", where, name),
            offset=get(item, "offset", where, SIZE, None), valid=get(item, "valid", where, boolean, True)))
    checks = {"tensor": INDEX, "piece": INDEX, "operation": INDEX, "memory": name, "link": name, "engine": name,
              "form": name, "offset": SIZE, "position": integer(0, LIMIT - 1)}
    for where, item in each(data, "commands", ""):
        kind = get(item, "kind", where, one_of(*COMMANDS))
        command = types.SimpleNamespace(kind=kind, after=[], **dict.fromkeys(checks))
        command.form = PLAIN
        for field in COMMANDS[kind][0]:
            setattr(command, field, get(item, field, where, checks[field]))
        for field in COMMANDS[kind][1]:
            setattr(command, field, get(item, field, where, checks[field], getattr(command, field)))
        for place, wait in each(item, "after", where, []):
            structure(wait, place)
            if ("operation" in wait) == ("command" in wait):
                raise FormatError(f"{place}: names one operation or one command")
            if "operation" in wait:
                command.after.append(("operation", get(wait, "operation", place, integer(-LIMIT, LIMIT)), 0))
            else:
                iteration = get(wait, "iteration", place, integer(-1, 0), 0)
                command.after.append(("command", get(wait, "command", place, INDEX), iteration))
        before = item.get("before_operation") if isinstance(item, dict) else None
        command.before = [] if before is None else [INDEX(v, f"{where}.before_operation") for v in
                                                    (before if isinstance(before, list) else [before])]
        plan.commands.append(command)
    return plan


# ---------------------------------------------------------------------------------------------------------------------
# Trace and plan together
# ---------------------------------------------------------------------------------------------------------------------

# A key names what a place is for: a part in a form in a memory. The part with number p is problem.parts[p].
Key = collections.namedtuple("Key", "part form memory")


class Problem:
    """A trace and a plan in which all names and indices are resolved, and what rules 1 and 2 say about order.

    Element x is operation x if x is below the number n of operations, and command x - n otherwise. An edge (y, w) in
    after[x] says: x starts after y of the same iteration (w = 0) or of the iteration before (w = 1) has ended. There
    are no other edges, so no path leads from an iteration back to an earlier one. This is used often below.
    """

    def __init__(self, trace, plan):
        self.trace, self.plan, self.machine = trace, plan, plan.machine
        self.count = len(trace.operations)
        self.size = self.count + len(plan.commands)
        self.violations = []
        self.order = []                                         # stays empty if something hinders further checks
        if plan.trace != digest(trace):
            self.report(0, "the plan has the digest of another trace")
        self.divide()
        if not self.violations:
            self.resolve()
        if not any(rule in (0, 2) for rule, _ in self.violations):
            self.connect()
            self.sort()

    def report(self, rule, message):
        if (rule, message) not in self.violations:
            self.violations.append((rule, message))

    def title(self, x):
        if x < self.count:
            return f"operation {x}"
        return f"command {x - self.count} ({self.plan.commands[x - self.count].kind})"

    def name_of(self, key):
        part = self.parts[key.part]
        piece = f" piece {part.piece}" if self.divided[part.tensor] else ""
        form = f" as {key.form}" if key.form != PLAIN else ""
        return f"tensor {part.tensor}{piece}{form} in {key.memory}"

    # ------------------------------------------------------------------------------------------------------- parts

    def divide(self):
        """Numbers the parts, and finds out which of them an operation accesses: accesses[i] has (part, mode)."""
        tensors = self.trace.tensors
        cuts = {}
        for i, (tensor, at) in enumerate(self.plan.pieces):
            if tensor >= len(tensors) or tensor in cuts:
                self.report(0, f"pieces[{i}].tensor: {tensor} does not exist, or is divided twice")
            elif at != sorted(set(at)) or at and at[-1] >= tensors[tensor].bytes:
                self.report(0, f"pieces[{i}].at: does not ascend, or leaves the tensor")
            cuts[tensor] = at
        self.parts = []
        self.parts_of = []
        self.divided = [t in cuts for t in range(len(tensors))]
        for t, tensor in enumerate(tensors):
            bounds = [0] + cuts.get(t, []) + [tensor.bytes]
            self.parts_of.append(range(len(self.parts), len(self.parts) + len(bounds) - 1))
            for piece, (first, end) in enumerate(zip(bounds, bounds[1:])):
                self.parts.append(types.SimpleNamespace(tensor=t, piece=piece, first=first, end=end))
        self.accesses = []
        touched = set()
        for operation in self.trace.operations:
            result = []
            for access in operation.accesses:
                tensor = tensors[access.tensor]
                first, size = access.range or (0, tensor.bytes)
                for p in self.parts_of[access.tensor]:
                    part = self.parts[p]
                    if tensor.bytes and not (first < part.end and part.first < first + size):
                        continue
                    mode = access.mode
                    covered = first <= part.first and part.end <= first + size
                    if mode == "w" and not covered and not (tensor.kind == "transient" and p not in touched):
                        mode = "u"
                    result.append((p, mode))
            touched.update(p for p, _ in result)
            self.accesses.append(result)

    def bytes_of(self, key):
        part = self.parts[key.part]
        if key.form == PLAIN:
            return part.end - part.first
        return self.trace.tensors[part.tensor].forms[key.form].bytes

    def limited(self, key):
        return self.machine.memories[key.memory].bytes is not None

    def gift(self, x):
        """The parts of inputs that the host gives at the end of operation x: (part, iteration, position)."""
        return self.gifts.get(x, [])

    # ----------------------------------------------------------------------------------------------------- resolve

    def key(self, item, memory, form, where):
        """The key that an entry of `initial` or a command names, or None with a violation."""
        if item.tensor >= len(self.trace.tensors):
            return self.report(0, f"{where}.tensor: {item.tensor} does not exist")
        parts = self.parts_of[item.tensor]
        if self.divided[item.tensor] != (item.piece is not None):
            return self.report(0, f"{where}.piece: required if the tensor is divided, and not allowed otherwise")
        if item.piece is not None and item.piece >= len(parts):
            return self.report(0, f"{where}.piece: {item.piece} does not exist")
        if memory not in self.machine.memories:
            return self.report(0, f"{where}: the memory {memory} does not exist")
        if form != PLAIN and (self.divided[item.tensor] or form not in self.trace.tensors[item.tensor].forms):
            return self.report(0, f"{where}.form: the tensor has no form {form}")
        return Key(parts[item.piece or 0], form, memory)

    def place_fits(self, key, offset, where):
        """Rule 3, as far as one place alone is concerned."""
        memory, size = self.machine.memories[key.memory], self.bytes_of(key)
        if offset % memory.alignment:
            self.report(3, f"{where}.offset: {offset} is not aligned")
        if offset + size > memory.bytes:
            self.report(3, f"{where}: the place does not lie in {key.memory}")
        if memory.largest and size and offset // memory.largest != (offset + size - 1) // memory.largest:
            self.report(3, f"{where}: the place crosses a multiple of max_allocation_bytes")

    def resolve(self):
        """Engines, keys and durations of all elements.

        element.engine is None for allocate and release. element.order is (2p, q) of rule 2. element.source and
        element.target are the keys that a command reads and fills, takes or gives back; element.takes is true if it
        takes the place. element.operation is set for operations and `run`.
        """
        machine, count = self.machine, self.count
        with_memory = [title for title, memory in machine.engines.items() if memory]
        self.elements = []
        for i, operation in enumerate(self.trace.operations):
            engine = operation.engine or with_memory[0]
            if not machine.engines.get(engine):
                self.report(0, f"operations[{i}].engine: {engine} does not exist, or has no memory")
            self.elements.append(types.SimpleNamespace(
                kind="operation", engine=("engine", engine), order=(2 * i, 0), operation=i, source=None, target=None,
                memory=machine.engines.get(engine), takes=False, link=None, duration=operation.duration))
        for j, command in enumerate(self.plan.commands):
            self.elements.append(self.resolve_command(command, j, f"commands[{j}]"))
            for what, index, _ in command.after:
                if what == "operation" and not -count <= index < count or \
                        what == "command" and index >= len(self.plan.commands):
                    self.report(0, f"commands[{j}].after: {what} {index} does not exist")
            for before in command.before:
                if before >= 2 * count:
                    self.report(0, f"commands[{j}].before_operation: {before} does not exist")
            if command.position is not None and command.position > count:
                self.report(2, f"commands[{j}].position: {command.position} is not from 0 to {count}")
        self.initial = {}                                       # key -> (offset, valid)
        for i, item in enumerate(self.plan.initial):
            key = self.key(item, item.memory, item.form, f"initial[{i}]")
            if key is None:
                continue
            if key in self.initial:
                self.report(0, f"initial[{i}]: {self.name_of(key)} stands twice")
            if self.limited(key) != (item.offset is not None):
                self.report(0, f"initial[{i}].offset: required in memories with a limit, not allowed in others")
            elif item.offset is not None:
                self.place_fits(key, item.offset, f"initial[{i}]")
            self.initial[key] = (item.offset, item.valid)
        self.gifts = collections.defaultdict(list)
        self.begins = collections.defaultdict(list)             # part -> positions at which its values begin
        for p, part in enumerate(self.parts):
            tensor = self.trace.tensors[part.tensor]
            if tensor.kind == "input":
                giver = tensor.available_from - 1
                iteration = 0 if giver >= 0 else 1
                self.gifts[giver % count].append((p, iteration, 2 * tensor.available_from - 1))
                self.begins[p].append(2 * tensor.available_from - 1)
        for i, accesses in enumerate(self.accesses):
            for p, mode in accesses:
                if mode != "r":
                    self.begins[p].append(2 * i)

    def resolve_command(self, command, j, where):
        machine, count = self.machine, self.count
        position = count if command.position is None else command.position
        element = types.SimpleNamespace(
            kind=command.kind, engine=None, order=(2 * position - 1, j), operation=None, memory=None, source=None,
            target=None, takes=command.kind == "allocate" or command.offset is not None, link=None, duration=0)
        if command.kind == "run":
            if command.operation >= count:
                self.report(0, f"{where}.operation: {command.operation} does not exist")
                return element
            original = self.elements[command.operation]
            element.operation, element.duration = command.operation, original.duration
            element.engine, element.memory = original.engine, original.memory
            element.back = 0 if position > command.operation else 1     # 1: the operation of the iteration before
            if not self.trace.operations[command.operation].replayable:
                self.report(4, f"{where}.operation: {command.operation} is not replayable")
            return element
        if command.kind in ("allocate", "release"):
            element.target = self.key(command, command.memory, command.form, where)
            if element.target and not self.limited(element.target):
                self.report(0, f"{where}.memory: a memory without limit has no allocate and no release")
        elif command.kind == "copy":
            link = machine.links.get(command.link)
            if not link:
                self.report(0, f"{where}.link: {command.link} does not exist")
                return element
            element.engine = ("engine", link.engine) if link.engine else ("link", command.link)
            element.link = command.link
            element.source = self.key(command, link.source, command.form, where)
            element.target = self.key(command, link.target, command.form, where)
            if element.source:
                tensor = self.trace.tensors[command.tensor]
                encoded = command.form != PLAIN
                element.flow = tensor.forms[command.form].expected if encoded else self.bytes_of(element.source)
        else:
            memory = machine.engines.get(command.engine)
            if not memory:
                self.report(0, f"{where}.engine: {command.engine} does not exist, or has no memory")
                return element
            if command.form == PLAIN:
                self.report(0, f"{where}.form: {command.kind} needs another form than plain")
                return element
            element.engine = ("engine", command.engine)
            keys = [self.key(command, memory, form, where) for form in (PLAIN, command.form)]
            if None not in keys:
                element.source, element.target = keys if command.kind == "encode" else reversed(keys)
                form = self.trace.tensors[command.tensor].forms[command.form]
                element.duration = form.encode if command.kind == "encode" else form.decode
        if element.takes and element.target:
            if not self.limited(element.target):
                self.report(0, f"{where}.offset: a memory without limit has no offsets")
            else:
                self.place_fits(element.target, command.offset, where)
        return element

    # ------------------------------------------------------------------------------------------------------- order

    def connect(self):
        """Rules 1 and 2 as edges."""
        count = self.count
        self.after = [set() for _ in range(self.size)]
        for j, command in enumerate(self.plan.commands):
            x = count + j
            for what, index, iteration in command.after:
                if what == "command":
                    self.after[x].add((count + index, -iteration))
                else:
                    self.after[x].add((index % count, 1 if index < 0 else 0))
            for before in command.before:
                self.after[before % count].add((x, before // count))
        engines = collections.defaultdict(list)
        for x, element in enumerate(self.elements):
            if element.engine:
                engines[element.engine].append(x)
        for line in engines.values():
            line.sort(key=lambda x: self.elements[x].order)
            for x, y in zip(line, line[1:]):
                self.after[y].add((x, 0))
            self.after[line[0]].add((line[-1], 1))
        users = collections.defaultdict(list)                   # (part, memory) -> its operations, in list order
        for i, accesses in enumerate(self.accesses):
            for p, mode in accesses:
                users[p, self.elements[i].memory].append((i, mode))
            for tensor, after in self.trace.host_reads:         # the host does something at the end of the operation
                for p in self.parts_of[tensor] if after == i else ():
                    users[p, self.machine.host].append((i, "r"))
            for p, _, _ in self.gift(i):
                users[p, self.machine.host].append((i, "w"))
        for line in users.values():
            for b, (later, later_mode) in enumerate(line):
                for earlier, earlier_mode in line[:b]:
                    different = self.elements[earlier].engine != self.elements[later].engine
                    if different and (earlier_mode, later_mode) != ("r", "r"):
                        self.after[later].add((earlier, 0))
        for i in range(count):
            self.after[i].update((before, 1) for before in range(count))

    def sort(self):
        """Rule 7. The elements of one iteration in an order that fulfils all waits, and in which what happens at the same
        time comes as rule 6 says.

        Iteration after iteration in this order is one of the orders in which everything may happen, because nothing
        waits for a later iteration.
        """
        chains = [{y for y, w in edges if w == 0} for edges in self.after]
        self.order = self.sorted_by(chains)
        self.levels = []
        self.known = {}                                         # answers of precedes()
        if len(self.order) < self.size:
            stuck = [self.title(x) for x in range(self.size) if x not in self.order]
            self.report(7, "these wait for each other, or for such: " + ", ".join(stuck[:8]))
            self.order = []
            return
        # A command without an engine may come before another element without a chain of waits in this iteration. What
        # happens at the same time is in the order of chains of waits, and then releases come first.
        instant = [x for x in self.order if not self.elements[x].engine]
        depth = dict.fromkeys(instant, 0)
        for x in instant:
            for y, w in self.after[x]:
                if w == 0 and y in depth and self.precedes(x, y, 0):
                    depth[x] = max(depth[x], depth[y] + 1)
        turn = {x: (depth[x], self.elements[x].kind != "release") for x in instant}
        for x in instant:
            for y in range(self.size):
                if y == x or not self.precedes(x, y, 0):
                    continue
                if not self.precedes(y, x, 0) or turn[x] < turn[y]:
                    chains[y].add(x)
        self.order = self.sorted_by(chains)

    def sorted_by(self, before):
        """All elements, each after those of before[x]. Otherwise releases come first, then what takes no time."""
        waiting = [len(some) for some in before]
        followers = [[] for _ in range(self.size)]
        for x, some in enumerate(before):
            for y in some:
                followers[y].append(x)
        turn = {"release": 0, "allocate": 1}
        ready = [(turn.get(self.elements[x].kind, 2), x) for x in range(self.size) if not waiting[x]]
        heapq.heapify(ready)
        order = []
        while ready:
            x = heapq.heappop(ready)[1]
            order.append(x)
            for y in followers[x]:
                waiting[y] -= 1
                if not waiting[y]:
                    heapq.heappush(ready, (turn.get(self.elements[y].kind, 2), y))
        return order

    def precedes(self, x, y, distance):
        """Whether x always ends before y of the iteration that is `distance` later starts.

        levels[d][y] is the set of all x with a chain of waits for distance d, as the bits of an integer.
        """
        if distance < 0:
            return False
        if (x, y, distance) not in self.known:
            self.known[x, y, distance] = True                   # what x waits for through itself adds nothing
            self.known[x, y, distance] = self.find_precedes(x, y, distance)
        return self.known[x, y, distance]

    def find_precedes(self, x, y, distance):
        while len(self.levels) <= distance:
            d = len(self.levels)
            level = [0] * self.size
            self.levels.append(level)
            for z in self.order:
                bits = 0
                for before, w in self.after[z]:
                    if w == d:
                        bits |= 1 << before
                    if w <= d:
                        bits |= self.levels[d - w][before]
                level[z] = bits
        if self.levels[distance][y] >> x & 1:
            return True
        # A command without an engine ends when the last thing that it waits for ends.
        if self.elements[x].engine or (x == y and distance == 0):
            return False
        return distance > 16 or all(self.precedes(b, y, distance + w) for b, w in self.after[x])

    # ------------------------------------------------------------------------------------------------------ values

    def value(self, part, iteration, position):
        """The value of a part that began last before a position of an iteration: where it began.

        Operation i has position 2i; the host gives an input at 2 * available_from - 1. A value that has never been
        written or given has no beginning, it is "constant". Iterations below 0 count as if they had been.
        """
        begins = self.begins.get(part)                          # ascending: no operation uses an input before its gift
        if not begins:
            return "constant"
        before = bisect.bisect_left(begins, position)
        return (iteration, begins[before - 1]) if before else (iteration - 1, begins[-1])

    def uses(self):
        """For each key the elements that use it. True: puts a value into the place, takes it or gives it back."""
        result = collections.defaultdict(lambda: collections.defaultdict(bool))
        for x, element in enumerate(self.elements):
            if element.operation is not None:
                for p, mode in self.accesses[element.operation]:
                    result[Key(p, PLAIN, element.memory)][x] |= mode != "r"
            if element.source:
                result[element.source][x] |= False
            if element.target:
                result[element.target][x] |= True
            for p, _, _ in self.gift(x):
                result[Key(p, PLAIN, self.machine.host)][x] |= True
        return result


# ---------------------------------------------------------------------------------------------------------------------
# Validation
# ---------------------------------------------------------------------------------------------------------------------

UNKNOWN = "unknown"


class Replay:
    """Follows places and values through the iterations, in the order of problem.order.

    If all that uses a place is in order (rule 6), then every other order finds the same values. Places for which this
    is not so are `unclear`: nothing more is said about them, and what they hold is UNKNOWN.
    """

    def __init__(self, problem, unclear, uses):
        self.problem, self.unclear = problem, unclear
        self.offsets = {}                                       # the places in memories with a limit
        self.values = {}                                        # what each place holds; None is nothing
        self.stays = []                                         # [key, offset, size, taken by, given back by]
        self.open = {}
        self.history = collections.defaultdict(list)            # plain places in the host: [value, ended by]
        self.reads = []                                         # by the host: (operation, iteration, key, value)
        keys = set(uses) | set(problem.initial)
        keys |= {Key(p, PLAIN, problem.machine.host) for t, _ in problem.trace.host_reads for p in problem.parts_of[t]}
        for key in keys - unclear:
            in_host = key.memory == problem.machine.host and key.form == PLAIN
            tensor = problem.trace.tensors[problem.parts[key.part].tensor]
            given = in_host and tensor.kind == "input" and tensor.available_from == 0
            offset, valid = problem.initial.get(key, (None, in_host))
            valid = valid or given
            if problem.limited(key):
                if key not in problem.initial:
                    continue
                self.take(key, offset, None)
            if valid:
                self.put(key, problem.value(key.part, 0, 0), None)
        self.initial = dict(self.offsets)
        # A value goes to another place of its part or is replaced in each iteration, or it stays where it is for ever.
        # So a value of an iteration that is older than this can only be one that nobody ever needs.
        self.memory = max(collections.Counter(key.part for key in keys).values(), default=0) + 3

    def take(self, key, offset, who):
        self.offsets[key] = offset
        self.open[key] = [key, offset, self.problem.bytes_of(key), who, None]
        self.stays.append(self.open[key])
        self.values[key] = None

    def put(self, key, value, who):
        """The place holds the value from now on. `who` is (element, iteration, whether the host gives it)."""
        self.values[key] = value
        if key.memory == self.problem.machine.host and key.form == PLAIN:
            self.end_history(key, who)
            self.history[key].append([value, None])

    def end_history(self, key, who):
        if self.history.get(key) and self.history[key][-1][1] is None:
            self.history[key][-1][1] = who

    def there(self, key):
        return key in self.unclear or key in self.offsets or not self.problem.limited(key)

    def value(self, key):
        return UNKNOWN if key in self.unclear else self.values.get(key)

    def iteration(self, k):
        for x in self.problem.order:
            element = self.problem.elements[x]
            if element.operation is not None:
                self.operation(x, element, k)
            else:
                self.command(x, element, k)

    def operation(self, x, element, k):
        problem, i = self.problem, element.operation
        origin = k - element.back if element.kind == "run" else k
        keys = [(Key(p, PLAIN, element.memory), mode) for p, mode in problem.accesses[i]]
        for key, mode in keys:
            if not self.there(key):
                problem.report(4, f"{problem.title(x)} needs a place: {problem.name_of(key)}")
            elif mode != "w" and self.value(key) not in (UNKNOWN, problem.value(key.part, origin, 2 * i)):
                problem.report(4, f"{problem.title(x)} does not find the value that it needs: {problem.name_of(key)}")
        if not problem.trace.operations[i].in_pieces:
            for (a, _), (b, _) in zip(keys, keys[1:]):          # pieces of a tensor stand one after the other
                if problem.parts[a.part].tensor != problem.parts[b.part].tensor or \
                        a not in self.offsets or b not in self.offsets:
                    continue
                largest = problem.machine.memories[a.memory].largest
                last = self.offsets[b] + problem.bytes_of(b) - 1
                if self.offsets[a] + problem.bytes_of(a) != self.offsets[b] or \
                        largest and self.offsets[a] // largest != last // largest:
                    problem.report(3, f"{problem.title(x)} needs pieces that are next to each other: "
                                      f"{problem.name_of(a)}, {problem.name_of(b)}")
        for key, mode in keys:
            if mode != "r" and self.there(key) and key not in self.unclear:
                self.put(key, (origin, 2 * i), (x, k, False))
        if element.kind == "run":
            return
        host = problem.machine.host
        for tensor, after in problem.trace.host_reads:
            for p in problem.parts_of[tensor] if after == i else ():
                self.reads.append((i, k, Key(p, PLAIN, host), problem.value(p, k, 2 * i + 1)))
        for p, later, position in problem.gift(i):
            key = Key(p, PLAIN, host)
            if not self.there(key):
                problem.report(4, f"the host needs a place to give an input: {problem.name_of(key)}")
            elif key not in self.unclear:
                self.put(key, (k + later, position), (x, k, True))

    def command(self, x, element, k):
        problem, title, target = self.problem, self.problem.title(x), element.target
        value = None
        if element.source:
            value = self.value(element.source) if self.there(element.source) else None
            if value is None:
                problem.report(4, f"{title} does not find a value: {problem.name_of(element.source)}")
        if target in self.unclear:
            return
        if element.kind == "release":
            if not self.there(target):
                problem.report(3, f"{title}: no place is there: {problem.name_of(target)}")
                return
            self.end_history(target, (x, k, False))
            self.open.pop(target)[4] = (x, k)
            del self.offsets[target], self.values[target]
            return
        if element.takes:
            if self.there(target):
                problem.report(3, f"{title}: a place is there already: {problem.name_of(target)}")
            else:
                self.take(target, problem.plan.commands[x - problem.count].offset, (x, k))
        if element.source:
            if self.there(target):
                self.put(target, value, (x, k, False))
            else:
                problem.report(4, f"{title} has no place to fill: {problem.name_of(target)}")

    def state(self, k):
        """What places hold, relative to iteration k. Values that are too old for all needs are the same."""
        result = []
        for key in sorted(self.values):
            value = self.values[key]
            if isinstance(value, tuple):
                value = (k - value[0], value[1]) if k - value[0] < self.memory else "old"
            result.append((key, self.offsets.get(key), value))
        return tuple(result)

    def run(self):
        """All iterations until the state repeats, and some more for late host reads. False: rule 5 is broken."""
        seen, last, k = {self.state(0)}, None, 0
        while last is None or k <= last:
            self.iteration(k)
            if self.offsets != self.initial:
                both = set(self.offsets.items()) ^ set(self.initial.items())
                for key in sorted({key for key, _ in both}):
                    self.problem.report(5, f"not in the same place at the end as at the beginning: "
                                           f"{self.problem.name_of(key)}")
                return False
            state = self.state(k + 1)
            if last is None and (state in seen or k > 4 * self.memory):
                last = k + self.memory
            seen.add(state)
            k += 1
        self.check_host_reads(last - self.memory)
        return True

    def check_host_reads(self, last):
        """A stay of the value that ends before the operation has ended in some order of things is no help."""
        precedes = self.problem.precedes
        for i, k, key, value in self.reads:
            if k > last or key in self.unclear:
                continue
            stays = [ended_by for held, ended_by in self.history[key] if held in (value, UNKNOWN)]
            if any(end is None or precedes(i, end[0], end[1] - k) or end[2] and end[:2] == (i, k) for end in stays):
                continue
            when = ", whatever takes how long" if stays else ""
            self.problem.report(6 if stays else 4, f"the host does not find what it reads after operation {i}{when}: "
                                                   f"{self.problem.name_of(key)}")


def check_order_of_uses(problem, uses):
    """Rule 6 for each place. Gives the keys for which it does not hold.

    Two uses must have an order if one of them is exclusive. It is enough to look at the same iteration and the next
    one. An exclusive use x comes before itself one iteration later, so what holds for two neighbouring iterations
    goes on from there. Between different iterations the earlier one must come first, because no path leads back.
    """
    unclear = set()
    for key, users in uses.items():
        for x, x_exclusive in users.items():
            for y, y_exclusive in users.items():
                if not (x_exclusive or y_exclusive):
                    continue
                if not problem.precedes(x, y, 1):
                    problem.report(6, f"{problem.title(x)} and {problem.title(y)} of the next iteration have no order: "
                                      f"{problem.name_of(key)}")
                    unclear.add(key)
                if x < y and not problem.precedes(x, y, 0) and not problem.precedes(y, x, 0):
                    problem.report(6, f"{problem.title(x)} and {problem.title(y)} have no order: "
                                      f"{problem.name_of(key)}")
                    unclear.add(key)
    return unclear


def check_overlap(problem, stays):
    """Rules 3 and 6: occupied places have no byte in common, for any durations.

    Places come and go in the same way in each iteration, and a stay ends in the next iteration at the latest, or it
    lasts for ever. So stays that begin in the first four iterations are enough.
    """
    def follows(first, second):
        """Whether the stay `second` always begins after `first` has ended."""
        _, _, _, _, end = first
        _, _, _, begin, _ = second
        return bool(end and begin) and problem.precedes(end[0], begin[0], begin[1] - end[1])

    def begins_within(first, second):
        """Whether the stay `first` always begins before `second` ends."""
        begin, end = first[3], second[4]
        return not begin or not end or problem.precedes(begin[0], end[0], end[1] - begin[1])

    memories = collections.defaultdict(list)
    for stay in stays:
        if stay[2] and (stay[3] is None or stay[3][1] < 4):
            memories[stay[0].memory].append(stay)
    for line in memories.values():
        line.sort(key=lambda stay: stay[1])
        for a, first in enumerate(line):
            for second in line[a + 1:]:
                if second[1] >= first[1] + first[2]:
                    break
                if first[0] == second[0] or follows(first, second) or follows(second, first):
                    continue
                always = begins_within(first, second) and begins_within(second, first)
                who = [problem.title(s[3][0]) if s[3] else "initial" for s in (first, second)]
                problem.report(3 if always else 6, f"places overlap: {problem.name_of(first[0])} of {who[0]}, "
                                                   f"{problem.name_of(second[0])} of {who[1]}")


def check(problem):
    """All violations of a problem, in the order of the rules."""
    if problem.order:
        uses = problem.uses()
        unclear = check_order_of_uses(problem, uses)
        replay = Replay(problem, unclear, uses)
        if replay.run():
            check_overlap(problem, replay.stays)
    return sorted(problem.violations, key=lambda violation: violation[0])


def load(trace, plan):
    """The problem of a trace and a plan, each as parsed JSON."""
    return Problem(read_trace(trace), read_plan(plan))


def validate(trace, plan):
    """All violations as (rule, message), of a trace and a plan as parsed JSON."""
    try:
        return check(load(trace, plan))
    except FormatError as error:
        return [(0, str(error))]


# ---------------------------------------------------------------------------------------------------------------------
# Times
# ---------------------------------------------------------------------------------------------------------------------

# Elements that nothing holds back may be this many iterations ahead of the last operation. Without a bound, those that
# take no time would never come to an end.
LEAD = 4096


class Simulation:
    """Runs the elements of a valid plan as soon as rules 1 and 2 allow.

    Only what can have an effect on operations takes part: what they wait for, directly or not, and copies that share a
    capacity with such copies, and what these wait for.
    """

    def __init__(self, problem, most):
        self.problem, self.most = problem, most                 # iterations: any number may end at one time
        relevant = self.relevant()
        bound = self.bound()
        self.elements = sorted(relevant & bound)
        self.after = {x: [edge for edge in problem.after[x] if edge[0] in bound] for x in self.elements}
        self.followers = {x: [] for x in self.elements}
        for x, edges in self.after.items():
            for y, w in edges:
                self.followers[y].append((x, w))
        self.now = 0
        self.ends = []                                          # of iterations: all operations have ended
        self.operations = collections.Counter()                 # iteration -> operations that have ended
        self.events = []                                        # heap: time, element, iteration, what
        self.flowing = {}                                       # (element, iteration) -> [billionths of bytes, rate]
        self.waiting = {}                                       # (element, iteration) -> number of waits left
        self.started = dict.fromkeys(self.elements, 0)
        self.held = []
        self.work = []                                          # what happens now: (what, element, iteration)
        self.changed = False
        self.seen = {}
        self.mean = None
        for x in self.elements:
            if not any(w == 0 for _, w in self.after[x]):
                self.work.append(("start", x, 0))

    def bound(self):
        """The elements with an engine, and all that wait for them. The others end at once, in all iterations."""
        line = [x for x, element in enumerate(self.problem.elements) if element.engine]
        followers = collections.defaultdict(list)
        for x, edges in enumerate(self.problem.after):
            for y, _ in edges:
                followers[y].append(x)
        result = set(line)
        for x in line:                                          # grows while it is read
            for y in followers[x]:
                if y not in result:
                    result.add(y)
                    line.append(y)
        return result

    def relevant(self):
        problem = self.problem
        links = problem.machine.links
        sharing = collections.defaultdict(list)
        for x, element in enumerate(problem.elements):
            for capacity in links[element.link].capacities if element.link else ():
                sharing[capacity].append(x)
        result = set(range(problem.count))
        line = list(result)
        for x in line:                                          # grows while it is read
            link = problem.elements[x].link
            more = [y for y, _ in problem.after[x]]
            more += [y for capacity in (links[link].capacities if link else ()) for y in sharing[capacity]]
            for y in more:
                if y not in result:
                    result.add(y)
                    line.append(y)
        return result

    def step(self):
        """Everything that happens at this time; then rates change, and time goes on to the next event."""
        ended = len(self.ends)
        while self.work and len(self.ends) < self.most:
            what, x, k = self.work.pop()
            getattr(self, what)(x, k)
            if not self.work and self.held:
                self.work = [("start", y, i) for y, i in self.held if i <= len(self.ends) + LEAD]
                self.held = [(y, i) for y, i in self.held if i > len(self.ends) + LEAD]
        if self.work:
            return
        if self.changed:
            self.set_rates()
        if len(self.ends) > ended and self.mean is None:
            self.note_state()
        self.advance()

    def start(self, x, k):
        if k > len(self.ends) + LEAD:
            self.held.append((x, k))
            return
        element = self.problem.elements[x]
        self.started[x] += 1
        latency = self.problem.machine.links[element.link].latency if element.link else element.duration
        self.later(latency, "flow" if element.link else "end", x, k)

    def later(self, delay, what, x, k):
        if delay:
            heapq.heappush(self.events, (self.now + delay, x, k, what))
        else:
            self.work.append((what, x, k))

    def flow(self, x, k):
        size = self.problem.elements[x].flow
        if size:
            self.flowing[x, k] = [size * 10 ** 9, 0]
            self.changed = True
        else:
            self.end(x, k)

    def end(self, x, k):
        if x < self.problem.count:
            self.operations[k] += 1
            if self.operations[k] == self.problem.count:
                self.ends.append(self.now)
                del self.operations[k]
        for y, w in self.followers[x]:
            key = (y, k + w)
            if key not in self.waiting:
                self.waiting[key] = sum(1 for _, v in self.after[y] if v <= key[1])
            self.waiting[key] -= 1
            if not self.waiting[key]:
                del self.waiting[key]
                self.work.append(("start", *key))

    def set_rates(self):
        self.changed = False
        machine = self.problem.machine
        links = {copy: machine.links[self.problem.elements[copy[0]].link] for copy in self.flowing}
        opened = set(self.flowing)
        while opened:
            number, used = collections.Counter(), collections.Counter()
            for copy, link in links.items():
                for capacity in link.capacities:
                    number[capacity] += copy in opened
                    used[capacity] += 0 if copy in opened else self.flowing[copy][1]
            offers = {copy: min([links[copy].rate] + [(machine.capacities[c] - used[c]) // number[c]
                                                      for c in links[copy].capacities]) for copy in opened}
            lowest = min(offers.values())
            for copy, offer in offers.items():
                if offer == lowest:
                    self.flowing[copy][1] = lowest
                    opened.remove(copy)

    def advance(self):
        times = [self.now - (-left // rate) for left, rate in self.flowing.values()]
        if self.events:
            times.append(self.events[0][0])
        time = min(times)                                       # a valid plan always goes on
        for copy, flow in list(self.flowing.items()):
            flow[0] -= flow[1] * (time - self.now)
            if flow[0] <= 0:
                del self.flowing[copy]
                self.changed = True
                self.work.append(("end", *copy))
        self.now = time
        while self.events and self.events[0][0] == time:
            _, x, k, what = heapq.heappop(self.events)
            self.work.append((what, x, k))

    def note_state(self):
        """If all is as it was at the end of an earlier iteration, then the time since then repeats for ever.

        How many iterations of each element have started, and what is left of those that run, decides about
        everything that follows.
        """
        k = len(self.ends)
        state = (tuple(self.started[x] - k for x in self.elements),
                 tuple(sorted((x, i - k, time - self.now, what) for time, x, i, what in self.events)),
                 tuple(sorted((x, i - k, left, rate) for (x, i), (left, rate) in self.flowing.items())))
        if state in self.seen:
            earlier, time = self.seen[state]
            self.mean = fractions.Fraction(self.now - time, k - earlier)
        self.seen[state] = (k, self.now)


def mean_of_lengths(ends):
    """The mean for plans whose state never repeats, as one engine gets further and further ahead of another one.

    The lengths of iterations repeat nevertheless in most of them; otherwise the mean is that of the second half.
    """
    lengths = [b - a for a, b in zip(ends, ends[1:])][len(ends) // 2:]
    for period in range(1, len(lengths) // 3 + 1):
        if lengths[period:] == lengths[:-period]:
            return fractions.Fraction(sum(lengths[:period]), period)
    return fractions.Fraction(sum(lengths), len(lengths))


def times(problem, iterations, most=600):
    """The end times of the iterations, and the mean of the long run as a fraction.

    If the state has not repeated after `most` iterations, the mean is found from the lengths of the iterations.
    """
    most = max(most, iterations)
    simulation = Simulation(problem, most)
    while len(simulation.ends) < iterations or simulation.mean is None and len(simulation.ends) < most:
        simulation.step()
    mean = simulation.mean
    return simulation.ends[:iterations], mean_of_lengths(simulation.ends) if mean is None else mean


def simulate(trace, plan, iterations):
    """The ends of the iterations, and the rounded mean, of a valid plan."""
    ends, mean = times(load(trace, plan), iterations)
    return ends, rounded(mean)


def rounded(mean):
    return (2 * mean.numerator + mean.denominator) // (2 * mean.denominator)


# ---------------------------------------------------------------------------------------------------------------------
# Command line
# ---------------------------------------------------------------------------------------------------------------------

def one_of_many(line):
    result = {"valid": False, "rules": [0]}
    try:
        pair = parse(line)
        problem = load(get(pair, "trace", "", structure), get(pair, "plan", "", structure))
        violations = check(problem)
    except FormatError:
        return result
    result = {"valid": not violations, "rules": sorted({rule for rule, _ in violations})}
    if not violations:
        result["ends"] = times(problem, 12, 12)[0]
    return result


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "many":
        with open(arguments[1], "rb") as file:
            for line in file:
                if line.strip():
                    print(json.dumps(one_of_many(line)), flush=True)
        return 0
    if len(arguments) not in (3, 4) or arguments[0] not in ("check", "time") or \
            len(arguments) == 4 and arguments[0] == "check":
        print(__doc__.strip(), file=sys.stderr)
        return 2
    texts = []
    for path in arguments[1:3]:
        with open(path, "rb") as file:
            texts.append(file.read())
    try:
        problem = load(*map(parse, texts))
        violations = check(problem)
    except FormatError as error:
        violations = [(0, str(error))]
    for rule, message in violations:
        print(f"rule {rule}: {message}")
    if violations:
        return 1
    if arguments[0] == "check":
        print("valid")
        return 0
    ends, mean = times(problem, int(arguments[3]) if len(arguments) == 4 else 12)
    for end in ends:
        print(end)
    print(f"mean {rounded(mean)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
