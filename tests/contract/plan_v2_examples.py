#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Small plans made by hand, with what docs/formats.md says about them: the rules that they break, or their times.

All links copy one byte in a nanosecond if nothing else is said, so that times can be found by hand.

plan_v2_examples.py [PROGRAM]: with the program of cases.cpp, the library must say the same.
"""
import fractions
import hashlib
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import plan_v2  # noqa: E402

CASES = []
GB = 10 ** 9


def tensor(size, kind="persistent", **more):
    return dict(name="t", bytes=size, kind=kind, **more)


def operation(duration, reads=(), writes=(), updates=(), **more):
    return dict(name="o", duration_ns=duration, reads=list(reads), writes=list(writes), updates=list(updates), **more)


def trace(tensors, operations, host_reads=(), version=2):
    return {"format": "swapmm-trace", "version": version, "name": "example", "tensors": tensors,
            "operations": operations,
            "host_reads": [{"tensor": t, "after_operation": i} for t, i in host_reads]}


def link(source, target, rate=GB, latency=0, **more):
    return dict({"name": f"{source}-{target}", "from": source, "to": target, "bytes_per_second": rate,
                 "latency_ns": latency}, **more)


def machine(gpu0=1000, gpu1=1000, host=None, links=None, capacities=(), **more):
    if links is None:
        links = [link("host", "gpu0"), link("gpu0", "host"), link("host", "gpu1"), link("gpu1", "host"),
                 link("gpu0", "gpu1"), link("gpu1", "gpu0"), dict(link("host", "gpu0"), name="slow", engine="gpu0")]
    return {"name": "example", "host": "host", "links": links,
            "memories": [dict(name="gpu0", bytes=gpu0, **more), {"name": "gpu1", "bytes": gpu1},
                         {"name": "host", "bytes": host}],
            "engines": [{"name": "gpu0", "memory": "gpu0"}, {"name": "second", "memory": "gpu0"},
                        {"name": "gpu1", "memory": "gpu1"}, {"name": "copies"}],
            "capacities": [{"name": n, "bytes_per_second": r} for n, r in capacities]}


def plan(a_trace, commands=(), initial=(), a_machine=None, **more):
    digest = plan_v2.digest(plan_v2.read_trace(a_trace))
    return dict({"format": "swapmm-plan", "version": 2, "trace": digest, "planner": "by hand",
                 "machine": a_machine or machine(), "initial": list(initial), "commands": list(commands),
                 "predicted": dict.fromkeys(("iteration_ns", "compute_ns", "lower_bound_ns", "h2d_bytes", "d2h_bytes",
                                            "peak_bytes"), 0)}, **more)


def at(index, memory, offset=None, **more):
    """An entry of `initial`."""
    return dict({"tensor": index, "memory": memory}, **({} if offset is None else {"offset": offset}), **more)


def waits(after, before, more):
    result = dict(more, after=list(after))
    if before is not None:
        result["before_operation"] = before
    return result


def allocate(index, offset, after=(), before=None, memory="gpu0", **more):
    return dict(kind="allocate", tensor=index, memory=memory, offset=offset, **waits(after, before, more))


def release(index, after=(), before=None, memory="gpu0", **more):
    return dict(kind="release", tensor=index, memory=memory, **waits(after, before, more))


def copy(index, name, after=(), before=None, **more):
    return dict(kind="copy", tensor=index, link=name, **waits(after, before, more))


def op(i):
    return {"operation": i}


def cmd(j):
    return {"command": j}


def last(j):
    """Command j of the iteration before."""
    return {"command": j, "iteration": -1}


def case(title, a_trace, a_plan, rules=(), ends=None, mean=None):
    """One example: the rules that it breaks, or else the first end times and the rounded mean."""
    violations = plan_v2.validate(a_trace, a_plan)
    assert sorted({rule for rule, _ in violations}) == list(rules), f"{title}: {violations}"
    if ends:
        found = plan_v2.simulate(a_trace, a_plan, len(ends))
        assert found == (ends, mean), f"{title}: {found}"
    CASES.append((title, {"trace": a_trace, "plan": a_plan}, not rules, ends or []))


def without(command, *fields):
    return {key: value for key, value in command.items() if key not in fields}


def one_device():
    """One weight comes, is updated, and goes in each iteration."""
    t = trace([tensor(100)], [operation(50, updates=[0])])
    come = copy(0, "host-gpu0", [last(2)], 0, offset=0)
    go = copy(0, "gpu0-host", [op(0)])
    give = release(0, [cmd(1)])
    case("nothing to do", trace([], [operation(10)]), plan(trace([], [operation(10)])), [], [10, 20, 30], 10)
    case("resident", t, plan(t, [], [at(0, "gpu0", 0), at(0, "host", valid=False)]), [], [50, 100], 50)
    case("come and go", t, plan(t, [come, go, give]), [], [150, 400, 650], 250)
    case("no wait for the copy", t, plan(t, [without(come, "before_operation"), go, give]), [6])
    case("release during the operation", t, plan(t, [come, go, release(0, [cmd(0)])]), [6])
    case("copy during the operation", t, plan(t, [come, without(go, "after"), give]), [6])
    case("comes back in the instant of its release", t,
         plan(t, [copy(0, "host-gpu0", [last(1)], 0, offset=0), go, give]), [])
    case("comes back before its release", t, plan(t, [copy(0, "host-gpu0", [op(-1)], 0, offset=0), go, give]), [6])
    case("never goes to the host", t, plan(t, [dict(come, after=[last(1)]), release(0, [op(0)])]), [4])
    case("stays behind", t, plan(t, [dict(come, after=[last(1)]), dict(go, before_operation=1)]), [5])
    case("no operation place", t, plan(t), [4])
    case("cycle", t, plan(t, [dict(come, after=[cmd(2)]), go, give]), [7])
    case("waits for itself", t, plan(t, [dict(come, after=[cmd(0)]), go, give]), [7])
    wrong = plan(t, [come, go, give])
    case("wrong digest", t, dict(wrong, trace="0" * 64), [0])
    case("no such link", t, plan(t, [dict(come, link="moon"), go, give]), [0])
    case("no such operation", t, plan(t, [dict(come, before_operation=2), go, give]), [0])
    case("no such command", t, plan(t, [dict(come, after=[last(3)]), go, give]), [0])
    case("no such tensor", t, plan(t, [dict(come, tensor=1), go, give]), [0])
    case("position too high", t, plan(t, [dict(come, position=2), go, give]), [2])
    case("piece of an undivided tensor", t, plan(t, [dict(come, piece=0), go, give]), [0])
    case("offset without limit", t, plan(t, [come, dict(go, offset=0), give]), [0])
    case("release without limit", t, plan(t, [come, go, dict(give, memory="host")]), [0])
    case("not aligned", t, plan(t, [dict(come, offset=8), go, give], [], machine(alignment_bytes=16)), [3])
    case("outside", t, plan(t, [dict(come, offset=901), go, give]), [3])
    arenas = machine(alignment_bytes=10, max_allocation_bytes=150)
    case("arenas crossed", t, plan(t, [dict(come, offset=60), go, give], [], arenas), [3])
    case("arena", t, plan(t, [dict(come, offset=150), go, give], [], arenas), [], [150, 400], 250)
    case("nothing to release", t, plan(t, [release(0, [last(0)], memory="gpu1")], [at(0, "gpu0", 0)]), [3])
    fill = without(dict(come, after=[last(1)]), "offset")
    case("no place to fill", t, plan(t, [fill, dict(go, before_operation=1)]), [4])
    reader = trace([tensor(100)], [operation(50, [0])])
    case("takes a place that is there", reader, plan(reader, [dict(come, after=[op(-1)])], [at(0, "gpu0", 0)]), [3])
    case("copies nothing", t, plan(t, [copy(0, "gpu1-gpu0", [op(-1)], 0)],
                                   [at(0, "gpu0", 0), at(0, "gpu1", 0, valid=False)]), [4])
    two = trace([tensor(100), tensor(100)], [operation(10, [0, 1])])
    case("overlap", two, plan(two, [], [at(0, "gpu0", 0), at(1, "gpu0", 99)]), [3])
    case("side by side", two, plan(two, [], [at(0, "gpu0", 0), at(1, "gpu0", 100)]), [], [10, 20], 10)


def places_in_turn():
    t = trace([tensor(100), tensor(100)], [operation(10, [0]), operation(20, [1])])
    commands = [copy(0, "host-gpu0", [last(3)], 0, offset=0), release(0, [op(0)]),
                copy(1, "host-gpu0", [cmd(1)], 1, offset=50), release(1, [op(1)])]
    case("in turn", t, plan(t, commands), [], [230, 460], 230)
    commands[2] = copy(1, "host-gpu0", [last(3)], 1, offset=50)
    case("overlap if it goes fast", t, plan(t, commands), [6])
    commands[2] = copy(1, "host-gpu0", [op(0)], 1, offset=50)
    case("in turn, with a wait for what the release waits for", t, plan(t, commands), [])


def three_memories():
    """A value is made on one device, goes to another one, and from there to the host."""
    t = trace([tensor(100, "transient")],
              [operation(10, writes=[0], engine="gpu0"), operation(20, [0], engine="gpu1")], [(0, 1)])
    commands = [allocate(0, 0, [last(2)], 0), copy(0, "gpu0-gpu1", [op(0), op(-1), last(3)], 1),
                release(0, [cmd(1)]), copy(0, "gpu1-host", [op(1)])]
    initial = [at(0, "gpu1", 0, valid=False)]
    case("three memories", t, plan(t, commands, initial), [], [130, 350, 570], 220)
    commands[1] = copy(0, "gpu0-gpu1", [op(0), op(-1)], 1)
    case("overwritten while it is copied", t, plan(t, commands, initial), [6])
    commands[1] = copy(0, "gpu0-gpu1", [op(-1), last(3)], 1)
    case("copied while it is made", t, plan(t, commands, initial), [6])
    case("not brought to the device", t, plan(t, [], [at(0, "gpu0", 0), at(0, "gpu1", 0)]), [4])


def limited_host():
    t = trace([tensor(100)], [operation(50, updates=[0])])
    commands = [copy(0, "host-gpu0", [last(2)], 0, offset=0), copy(0, "gpu0-host", [op(0)]), release(0, [cmd(1)])]
    case("limited host", t, plan(t, commands, [at(0, "host", 0)], machine(host=150)), [], [150, 400], 250)
    case("limited host has no place", t, plan(t, commands, [], machine(host=150)), [4])
    case("limited host is too small", t, plan(t, commands, [at(0, "host", 51)], machine(host=150)), [3])
    case("no offset", t, plan(t, commands, [at(0, "host")], machine(host=150)), [0])
    # The place in the host is there only while the value is not on the device.
    commands = [copy(0, "host-gpu0", [last(3)], 0, offset=0), release(0, [cmd(0)], memory="host"),
                copy(0, "gpu0-host", [op(0), cmd(1)], offset=0), release(0, [cmd(2)])]
    case("back and forth", t, plan(t, commands, [at(0, "host", 0)], machine(host=100)), [], [150, 400], 250)


def inputs():
    t = trace([tensor(100, "input")], [operation(10, [0]), operation(30)])
    commands = [copy(0, "host-gpu0", [op(-1), last(1)], 0, offset=0), release(0, [op(0)])]
    case("input", t, plan(t, commands), [], [140, 280], 140)
    case("input in a limited host", t, plan(t, commands, [at(0, "host", 0)], machine(host=100)), [], [140, 280], 140)
    case("input without a place in the host", t, plan(t, commands, [], machine(host=100)), [4])
    case("copied before it is given", t, plan(t, [dict(commands[0], after=[last(1)]), commands[1]]), [6])
    case("yesterday's input", t, plan(t, [], [at(0, "gpu0", 0)]), [4])
    late = trace([tensor(100, "input", available_from=1)], [operation(10), operation(5, [0])])
    commands = [copy(0, "host-gpu0", [op(0), last(1)], 1, offset=0), release(0, [op(1)])]
    case("given late", late, plan(late, commands), [], [115, 230], 115)
    case("given late, copied early", late, plan(late, [dict(commands[0], after=[op(-1), last(1)]), commands[1]]), [6])


def host_reads():
    t = trace([tensor(100, "transient")], [operation(10, writes=[0])], [(0, 0)])
    here = [at(0, "gpu0", 0)]
    case("host reads", t, plan(t, [copy(0, "gpu0-host", [op(0)], 1)], here), [], [10, 120, 230], 110)
    case("host does not get it", t, plan(t, [], here), [4])
    case("overwritten while it goes", t, plan(t, [copy(0, "gpu0-host", [op(0)])], here), [6])
    slow = trace([tensor(100, "transient")], [operation(10, writes=[0]), operation(5, engine="gpu1")], [(0, 1)])
    case("the host finds it", slow, plan(slow, [copy(0, "gpu0-host", [op(0)], 2)], here), [], [10, 120], 110)
    case("the host finds it late", slow, plan(slow, [copy(0, "gpu0-host", [op(0), op(1)], 2)], here), [], [10, 120], 110)


def two_engines():
    t = trace([tensor(100, "transient")],
              [operation(10, writes=[0]), operation(20, [0], engine="second")])
    case("implied waits", t, plan(t, [], [at(0, "gpu0", 0)]), [], [30, 60], 30)
    both = trace([tensor(100)], [operation(10, [0]), operation(20, [0], engine="second")])
    case("two readers", both, plan(both, [], [at(0, "gpu0", 0)]), [], [20, 40], 20)
    ahead = trace([tensor(100)], [operation(10), operation(30, engine="gpu1")])
    commands = [allocate(0, 0, [op(0), last(1)], 1), release(0, [cmd(0)])]
    case("no engine runs ahead", ahead, plan(ahead, commands), [], [40, 80, 120], 40)
    case("two devices, no waits", ahead, plan(ahead), [], [30, 60], 30)
    bad = trace([], [operation(10, engine="copies")])
    case("operation on an engine without memory", bad, plan(bad), [0])


def run_again():
    def make(replayable, second):
        return trace([tensor(100, "transient"), tensor(100)],
                     [operation(10, [1], [0], replayable=replayable), second, operation(20, [0])])
    commands = [allocate(0, 100, [last(4)], 0), release(0, [op(0)]), allocate(0, 100, [cmd(1)]),
                dict(kind="run", operation=0, position=2, after=[cmd(2)]), release(0, [op(2)])]
    here = [at(1, "gpu0", 0)]
    t = make(True, operation(5))
    case("run again", t, plan(t, commands, here), [], [45, 90], 45)
    t = make(False, operation(5))
    case("not replayable", t, plan(t, commands, here), [4])
    t = make(True, operation(5, updates=[1]))
    case("what it read is gone", t, plan(t, commands, here), [4])
    t = make(True, operation(5))
    case("no place to run", t, plan(t, [allocate(0, 100, [last(1), op(-1)], 0), release(0, [op(0)]),
                                        dict(kind="run", operation=0, position=2, after=[cmd(1)])], here), [4])
    t = trace([tensor(100), tensor(100)], [operation(7, [0]), operation(9, [1], [0], replayable=True)])
    commands = [allocate(0, 100, [last(4)]), dict(kind="run", operation=1, position=0, after=[cmd(0)]),
                release(0, [op(0)]), allocate(0, 100, [cmd(2)], 1), release(0, [op(1)])]
    case("the run of the iteration before", t, plan(t, commands, here), [], [25, 50], 25)
    commands[1] = dict(commands[1], operation=0)
    case("runs another operation", t, plan(t, commands, here), [4])


def encodings():
    form = {"name": "zeros", "bytes": 60, "expected_bytes": 30, "encode_ns": 4, "decode_ns": 6}
    t = trace([tensor(100, "transient", forms=[form])], [operation(10, writes=[0]), operation(5), operation(20, [0])])
    encode = dict(kind="encode", tensor=0, form="zeros", engine="gpu0", position=1, offset=100)
    decode = dict(kind="decode", tensor=0, form="zeros", engine="gpu0", position=2, offset=0)
    commands = [allocate(0, 0, [last(4), last(5)], 0), dict(encode, after=[last(4)]), release(0, [cmd(1)]),
                dict(decode, after=[cmd(2)]), release(0, [cmd(3)], form="zeros"), release(0, [op(2)])]
    case("encode and decode", t, plan(t, commands), [], [45, 90], 45)
    case("no such form", t, plan(t, [dict(c, form="ones") if c["kind"] == "encode" else c for c in commands]), [0])
    case("plain is not an encoding", t,
         plan(t, [dict(c, form="plain") if c["kind"] == "encode" else c for c in commands]), [0])
    case("overlaps its own encoding", t,
         plan(t, [dict(c, offset=99) if c["kind"] == "encode" else c for c in commands]), [3])
    case("decode nothing", t, plan(t, [without(decode, "offset")],
                                   [at(0, "gpu0", 0), at(0, "gpu0", 100, form="zeros", valid=False)]), [4])
    commands = [allocate(0, 0, [last(7)], 0), dict(encode, after=[last(8)]),
                copy(0, "gpu0-host", [cmd(1)], form="zeros"), release(0, [cmd(1)]), release(0, [cmd(2)], form="zeros"),
                copy(0, "host-gpu0", [cmd(4)], form="zeros", offset=100), dict(decode, after=[cmd(5), cmd(3)]),
                release(0, [op(2)]), release(0, [cmd(6)], form="zeros")]
    case("encoded to the host and back", t, plan(t, commands), [], [100, 200], 100)
    divided = plan(t, commands, pieces=[{"tensor": 0, "at": [50]}])
    case("no encodings of pieces", t, divided, [0])


def pieces():
    def make(**more):
        return trace([tensor(100)], [operation(10, [0], **more)])
    cut = [{"tensor": 0, "at": [40]}]
    t = make()

    def here(second):
        return [at(0, "gpu0", 0, piece=0), at(0, "gpu0", second, piece=1)]
    case("next to each other", t, plan(t, [], here(40), pieces=cut), [], [10, 20], 10)
    case("not next to each other", t, plan(t, [], here(50), pieces=cut), [3])
    case("the wrong way round", t,
         plan(t, [], [at(0, "gpu0", 60, piece=0), at(0, "gpu0", 0, piece=1)], pieces=cut), [3])
    t = make(in_pieces=True)
    case("takes pieces", t, plan(t, [], here(50), pieces=cut), [], [10, 20], 10)
    case("which piece?", t, plan(t, [], [at(0, "gpu0", 0)], pieces=cut), [0])
    case("no such piece", t, plan(t, [], [at(0, "gpu0", 0, piece=2)], pieces=cut), [0])
    case("cut at the end", t, plan(t, [], [], pieces=[{"tensor": 0, "at": [100]}]), [0])
    half = {"tensor": 0, "first": 0, "bytes": 40}
    t = trace([tensor(100)], [operation(10, writes=[half])])
    case("writes one piece", t, plan(t, [], [at(0, "gpu0", 0, piece=0, valid=False)], pieces=cut), [], [10, 20], 10)
    case("writes a part of a tensor", t, plan(t, [], [at(0, "gpu0", 0, valid=False)]), [4])
    t = trace([tensor(100, "transient")], [operation(10, writes=[half]), operation(10, [half])])
    case("first write of a transient", t, plan(t, [], [at(0, "gpu0", 0, valid=False)]), [], [20, 40], 20)


def orders():
    t = trace([tensor(100)], [operation(10), operation(20, [0])])
    commands = [copy(0, "slow", [last(1)], offset=0, position=1), release(0, [op(1)])]
    case("a copy between two operations", t, plan(t, commands), [], [130, 260], 130)
    behind = dict(commands[0], position=2, before_operation=1)
    case("a copy behind its operation", t, plan(t, [behind, commands[1]]), [7])
    t = trace([tensor(100), tensor(50)], [operation(10, [1]), operation(20, [0])])
    commands = [copy(0, "host-gpu0", [last(2)], 1, offset=0),
                copy(1, "host-gpu0", [last(3)], 0, offset=100, position=0),
                release(0, [op(1)]), release(1, [op(0)])]
    case("the later command is first", t, plan(t, commands), [], [170, 320, 470], 150)


def version_1():
    t = trace([tensor(100), tensor(100)], [operation(50, updates=[0]), operation(50, updates=[1])], version=1)
    commands = []
    for i in (0, 1):
        commands += [{"kind": "swap_in", "tensor": i, "offset": 128 * i, "after": [last(3 * i + 2)],
                      "before_operation": i},
                     {"kind": "swap_out", "tensor": i, "after": [op(i)]},
                     {"kind": "release", "tensor": i, "after": [cmd(3 * i + 1)]}]
    way = {"bytes_per_second": GB, "latency_ns": 0}
    for duplex, ends, mean in (("full", [250, 500, 750], 250), ("half", [400, 900], 500)):
        device = {"name": "old", "device_budget_bytes": 256, "alignment_bytes": 128, "h2d": way, "d2h": way,
                  "duplex": duplex}
        case(f"version 1, {duplex} duplex", t, plan(t, commands, [], device, version=1), [], ends, mean)
    case("version 1 without room", t, plan(t, commands, [], dict(device, device_budget_bytes=227), version=1), [3])
    case("version 1 moves whole tensors", t,
         plan(t, [dict(commands[0], range=[0, 1])] + commands[1:], [], device, version=1), [0])
    one = trace([tensor(100)], [operation(50, [0])], version=1)
    entry = {"tensor": 0, "offset": 0, "host_valid": False}
    case("version 1, resident", one, plan(one, [], [entry], device, version=1), [], [50, 100], 50)
    drop = [{"kind": "release", "tensor": 0, "after": [op(0)]},
            {"kind": "swap_in", "tensor": 0, "offset": 0, "after": [cmd(0)], "before_operation": 1}]
    case("version 1, host copy not valid", one, plan(one, drop, [entry], device, version=1), [4])
    case("version 1, host copy valid", one, plan(one, drop, [dict(entry, host_valid=True)], device, version=1), [],
         [50, 200], 150)


def capacities():
    t = trace([tensor(300), tensor(150)], [operation(10, [1], engine="gpu1"), operation(10, [0], engine="gpu0")])
    commands = [copy(0, "host-gpu0", [op(-1), op(-2), last(2)], 1, offset=0),
                copy(1, "host-gpu1", [op(-1), op(-2), last(3)], 0, offset=0),
                release(0, [op(1)]), release(1, [op(0)], memory="gpu1")]

    def shared(second, root, first_latency=0):
        return machine(links=[link("host", "gpu0", latency=first_latency, capacities=["root"]),
                              link("host", "gpu1", second, capacities=["root"])], capacities=[("root", root)])
    # Both flow with 0.75 bytes/ns until 200; then 150 bytes are left, at 1 byte/ns.
    case("shared fairly", t, plan(t, commands, [], shared(GB, 3 * GB // 2)), [], [360, 720], 360)
    # The second link takes no more than 0.3, so the first one has all of its own rate. 150 / 0.3 is 500.
    case("shared by a slow link", t, plan(t, commands, [], shared(3 * GB // 10, 3 * GB // 2)), [], [510, 1020], 510)
    # The second copy flows alone at 1 for 60 ns. Then both flow at 0.5 for 180 ns. 210 bytes are left at 1.
    case("latency does not flow", t, plan(t, commands, [], shared(GB, GB, 60)), [], [460, 920], 460)
    # 450 bytes at 0.7 in total: each 0.35, 150 bytes in 428.57 ns, 429; the first has 149.85 left, at 0.7 in 214.07.
    case("whole nanoseconds", t, plan(t, commands, [], shared(GB, 7 * GB // 10)), [], [654, 1308], 654)
    case("a capacity below its links", t, plan(t, commands, [], shared(GB, 1)), [0])
    empty = trace([tensor(0)], [operation(10, [0])])
    commands = [copy(0, "host-gpu0", [last(1)], 0, offset=5), release(0, [op(0)])]
    case("no bytes", empty, plan(empty, commands, [], machine(links=[link("host", "gpu0", latency=7)])), [],
         [17, 34], 17)
    case("the same link twice", empty, plan(empty, [], [], machine(links=[link("host", "gpu0")] * 2)), [0])
    case("a link to where it begins", empty, plan(empty, [], [], machine(links=[link("host", "host")])), [0])


def texts():
    """Digest and reading."""
    form = {"name": "zeros", "bytes": 60, "expected_bytes": 30, "encode_ns": 4, "decode_ns": 6}
    t = trace([tensor(100, "transient", forms=[form]), tensor(7, "input")],
              [operation(10, [1], [0], engine="gpu0", in_pieces=True),
               operation(5, [1, {"tensor": 0, "first": 8, "bytes": 4}], replayable=True)])
    written = "T 100 transient\nF zeros 60\nT 7 input\nO r1 w0 u egpu0 p\nO r0[8+4],1 w u a\n"
    assert plan_v2.digest(plan_v2.read_trace(t)) == hashlib.sha256(written.encode()).hexdigest()
    assert plan_v2.rounded(fractions.Fraction(5, 2)) == 3 and plan_v2.rounded(fractions.Fraction(7, 3)) == 2
    assert plan_v2.one_of_many(b"{") == {"valid": False, "rules": [0]}
    assert plan_v2.one_of_many(b'{"trace": {}, "trace": {}, "plan": {}}') == {"valid": False, "rules": [0]}
    for title, bad in (
            ("twice in one operation", trace([tensor(4)], [operation(1, [0], [0])])),
            ("no value yet", trace([tensor(4, "transient")], [operation(1, [0])])),
            ("beyond the end", trace([tensor(4)], [operation(1, [{"tensor": 0, "first": 1, "bytes": 4}])])),
            ("ranges are new", trace([tensor(4)], [operation(1, [{"tensor": 0, "first": 1, "bytes": 3}])], version=1)),
            ("too early", trace([tensor(4, "input", available_from=1)], [operation(1, [0]), operation(1)])),
            ("version 3", trace([], [operation(1)], version=3)),
            ("no operations", trace([], [])),
            ("nothing to read", trace([tensor(4, "transient")], [operation(1), operation(1, writes=[0])], [(0, 0)]))):
        good = trace([], [operation(1)])
        case(title, bad, plan(good), [0])


def found_by_mutants():
    """What validators with a small mistake accept."""
    t = trace([tensor(200)], [operation(10, [0])])
    parts = [at(0, "gpu0", 50, piece=0), at(0, "gpu0", 150, piece=1)]
    arenas = machine(alignment_bytes=10, max_allocation_bytes=150)
    case("pieces side by side in two arenas", t, plan(t, [], parts, arenas, pieces=[{"tensor": 0, "at": [100]}]), [3])

    t = trace([tensor(100)], [operation(50, engine="gpu0"), operation(10, updates=[0], engine="gpu1")], [(0, 0)])
    initial = [at(0, "gpu1", 0)]
    case("next value behind the read", t, plan(t, [copy(0, "gpu1-host", [op(1), op(0)], 3)], initial))
    case("next value during the read", t, plan(t, [copy(0, "gpu1-host", [op(1)], 3)], initial), [6])
    t = trace([tensor(100)], [operation(10, updates=[0], engine="gpu1"), operation(5000, engine="gpu0"),
                              operation(10, updates=[0], engine="gpu1")], [(0, 1)])
    first = copy(0, "gpu1-host", [op(0)], 2)
    case("next value behind a read that waits", t, plan(t, [first, copy(0, "gpu1-host", [op(2), op(1)], 3)], initial))
    case("next value during a read that waits", t, plan(t, [first, copy(0, "gpu1-host", [op(2)], 3)], initial), [6])

    # The place of tensor 0 is free for tensor 1, and its second half, without a wait, for tensor 2.
    t = trace([tensor(100), tensor(50), tensor(50)],
              [operation(5, engine="gpu1"), operation(5, engine="gpu1"), operation(5, engine="gpu1"),
               operation(10, updates=[0]), operation(10, [1]), operation(10, [2])])
    commands = [copy(0, "host-gpu0", [last(4), last(6)], 3, offset=0), copy(0, "gpu0-host", [op(3)]), release(0, [cmd(1)]),
                copy(1, "host-gpu0", [cmd(2)], 4, offset=0), release(1, [op(4)]),
                copy(2, "other", [op(3), op(2), cmd(2)], 5, offset=50), release(2, [op(5)])]
    links = machine()
    links["links"].append(dict(link("host", "gpu0"), name="other"))
    case("halves of a place", t, plan(t, commands, [], links))
    commands[5] = copy(2, "other", [op(3), op(2)], 5, offset=50)
    case("second half of a place too early", t, plan(t, commands, [], links), [6])

    t = trace([tensor(200, "transient")],
              [operation(10, writes=[0]), operation(10, writes=[{"tensor": 0, "first": 0, "bytes": 50}]), operation(10, [0])])
    initial = [at(0, "gpu0", 0, piece=0, valid=False), at(0, "gpu0", 100, piece=1, valid=False)]
    commands = [release(0, [op(0)], piece=0), allocate(0, 0, [cmd(0)], 1, piece=0)]
    case("a part of a piece is written where the rest is lost", t, plan(t, commands, initial, pieces=[{"tensor": 0, "at": [100]}]), [4])


def ask_library(program):
    """1 if the library says something else than this page of examples."""
    lines = "".join(json.dumps(pair) + "\n" for _, pair, _, _ in CASES)
    answers = subprocess.run([program], input=lines, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(answers) == len(CASES), f"{len(answers)} answers"
    wrong = 0
    for (title, _, valid, ends), line in zip(CASES, answers):
        answer = json.loads(line)
        if answer["valid"] == valid and answer["ends"][:len(ends)] == ends:
            continue
        wrong += 1
        print(f"{title}: the library says {answer['messages'] or answer['ends']}")
    return 1 if wrong else 0


if __name__ == "__main__":
    for examples in (one_device, places_in_turn, three_memories, limited_host, inputs, host_reads, two_engines,
                     run_again, encodings, pieces, orders, version_1, capacities, texts, found_by_mutants):
        examples()
    print(f"{len(CASES)} cases")
    sys.exit(ask_library(sys.argv[1]) if len(sys.argv) > 1 else 0)
