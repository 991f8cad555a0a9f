# SPDX-License-Identifier: Apache-2.0
"""Reads the format swapmm-log, written from docs/formats.md alone and not from the library's code: a second opinion."""

import struct
import zlib

KINDS = ("other create retain release build set_argument launch write read copy fill map unmap migrate mark foreign flush finish "
         "wait set_event").split()
OBJECTS = "none context queue buffer part image program kernel event user_event sampler other".split()
CALL = {2: "sequence", 3: "ended_before", 4: "thread", 5: "begin_ns", 6: "end_ns", 7: "kind", 8: "function", 9: "status",
        10: "object_kind", 11: "object", 12: "parent", 13: "queue", 14: "objects", 15: "waits", 16: "event", 17: "blocking",
        18: "flags", 19: "offset", 20: "bytes", 21: "value", 22: "operands", 23: "host", 24: "argument", 25: "name",
        26: "offsets", 27: "global", 28: "local", 29: "source", 30: "source_digest", 31: "is_binary", 32: "options"}
LISTS = {"objects", "waits", "operands", "offsets", "global", "local"}
TEXTS = {"function", "name"}
BYTES = {"source", "source_digest", "options"}
SIGNED = {"status", "value"}
OPERAND = {1: "object", 2: "access", 3: "offset", 4: "bytes", 5: "box", 6: "argument"}
HOST = {1: "address", 2: "bytes", 3: "box", 4: "digest"}
BOX = {1: "origin", 2: "region", 3: "row", 4: "slice"}
ARGUMENT = {1: "index", 2: "type", 3: "object", 4: "bytes", 5: "value"}
ACCESS = ("read", "write", "update")
ARGUMENT_TYPES = ("value", "object", "local", "opaque")


def varint(text, at):
    value = shift = 0
    while True:
        byte = text[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(text):
    at = 0
    while at < len(text):
        key, at = varint(text, at)
        value, at = varint(text, at)
        if key & 1:
            value, at = text[at:at + value], at + value
        yield key >> 1, value


def signed(value):
    return (value >> 1) ^ -(value & 1)


def box_of(text):
    box = {"origin": [], "region": [], "row": 0, "slice": 0}
    for number, value in fields(text):
        if number in (1, 2):
            box[BOX[number]].append(value)
        elif number in BOX:
            box[BOX[number]] = value
    return box


def structure(text, names):
    result = {name: 0 for name in names.values()}
    result["box"] = None
    result["digest"] = result["value"] = b""
    result["argument"] = None
    for number, value in fields(text):
        if number in names:
            result[names[number]] = box_of(value) if names[number] == "box" else value
    return result


def call_of(text):
    call = {name: [] if name in LISTS else b"" if name in BYTES else "" if name in TEXTS else 0 for name in CALL.values()}
    call.update(host=None, argument=None, duration_ns=None)
    for number, value in fields(text):
        name = CALL.get(number)
        if name is None:
            continue
        if name == "operands":
            value = structure(value, OPERAND)
            value["access"] = ACCESS[value["access"]]
        elif name == "host":
            value = dict(structure(value, HOST), content=b"")
        elif name == "argument":
            value = structure(value, ARGUMENT)
            value["type"] = ARGUMENT_TYPES[value["type"]]
        elif name in TEXTS:
            value = value.decode()
        elif name in SIGNED:
            value = signed(value)
        elif name == "kind":
            value = KINDS[value]
        elif name == "object_kind":
            value = OBJECTS[value]
        if name in LISTS:
            call[name].append(value)
        else:
            call[name] = value
    return call


def read(path):
    """The calls in the order in which they began, and whether the process came to its exit."""
    with open(path, "rb") as file:
        text = file.read()
    line = b"swapmm-log 1\n"
    assert text.startswith(line), text[:40]
    at = len(line)
    calls, durations, digests, contents, ended = {}, {}, {}, {}, False
    while at + 8 <= len(text):
        size, checksum = struct.unpack_from("<II", text, at)
        record = text[at + 8:at + 8 + size]
        if len(record) < size:
            break
        assert zlib.crc32(record) == checksum, f"checksum at byte {at}"
        at += 8 + size
        values = dict(fields(record))
        sequence = values.get(2, 0)
        if values[1] == 2:
            calls[sequence] = call_of(record)
        elif values[1] == 3:
            durations[sequence] = values.get(3, 0)
        elif values[1] == 4:
            digests[sequence] = values[3]
        elif values[1] == 5:
            assert values.get(3, 0) == len(contents.get(sequence, b"")), "a gap in content"
            contents[sequence] = contents.get(sequence, b"") + values[4]
        elif values[1] == 6:
            ended = True
    for sequence, call in calls.items():
        call["duration_ns"] = durations.get(sequence)
        if sequence in digests:
            call["host"]["digest"] = digests[sequence]
        if sequence in contents:
            call["host"]["content"] = contents[sequence]
    return [calls[each] for each in sorted(calls)], ended


def with_changed_content(text):
    """The log with one bit of each piece of content changed, and right checksums."""
    at = len(b"swapmm-log 1\n")
    changed = text[:at]
    while at + 8 <= len(text):
        size, _ = struct.unpack_from("<II", text, at)
        record = text[at + 8:at + 8 + size]
        values = dict(fields(record))
        if values[1] == 5:
            begin = record.index(values[4])
            record = record[:begin] + bytes([record[begin] ^ 1]) + record[begin + 1:]
        changed += struct.pack("<II", size, zlib.crc32(record)) + record
        at += 8 + size
    return changed
