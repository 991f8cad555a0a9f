#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What swapmm-kernel-facts says of kernels, against what their text says.

    run.py PROGRAM [--show]

Each kernel of kernels.cl has its facts in the comment before it: `// pure rW`, one letter for each argument
(backends/opencl/kernel_facts/analysis.hpp). Programs beside them are those of which nothing may be said."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

FIRST = "swapmm-kernel-facts 2\n"


def request(source, options="", part=False, headers=(), **fields):
    values = {"address_bits": "64", "version": "120", "c_version": "CL1.2", "extensions": "cl_khr_fp64 cl_khr_byte_addressable_store",
              "images": "1", "part": "1" if part else "0", "options": options, "source": source, **fields}
    pairs = list(values.items())
    for name, text in headers:
        pairs += [("header_name", name), ("header", text)]
    return FIRST + "".join(f"{name} {len(value.encode())}\n{value}\n" for name, value in pairs)


def ask(program, text):
    done = subprocess.run([program], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=120)
    return done.returncode, done.stdout.decode()


def facts(program, text):
    """Facts by kernel, or the reason why there are none."""
    code, out = ask(program, text)
    lines = out.split("\n")
    if code != 0 or lines[0] + "\n" != FIRST or lines[-2:] != ["end", ""]:
        return f"exit code {code}, output {out!r}"
    if lines[1].startswith("unknown "):
        return lines[1]
    return {line.split()[1]: " ".join(line.split()[2:]) for line in lines[1:-2]}


def expected_of(source):
    found = re.findall(r"^// (pure|effects) (\S+)[^\n]*\n(?:^[^\n]*\n)*?^kernel[^\n]*?void (\w+)\(", source, re.M)
    return {name: f"{kind} {letters}" for kind, letters, name in found}


TRIPLE = "uint triple(uint x);\nkernel void tripled(global uint* to, global const uint* from) { to[get_global_id(0)] = triple(from[get_global_id(0)]); }"
ONE = "kernel void one(global int* a) { a[get_global_id(0)] = 1; }"
CHOICE = """
#if %s
kernel void one(global int* a) { a[get_global_id(0)] = 1; }
#else
kernel void one(global int* a) { a[get_global_id(0)] += 1; }
#endif
"""

# (name, request, what is said)
PROGRAMS = [
    ("defined by an option", request(CHOICE % "defined(WHOLE)", "-DWHOLE"), {"one": "pure W"}),
    ("not defined", request(CHOICE % "defined(WHOLE)", ""), {"one": "pure u"}),
    ("defined with a value apart", request(CHOICE % "WHOLE == 3", "-cl-fast-relaxed-math -D WHOLE=3"), {"one": "pure W"}),
    ("quoted", request("kernel void one(global TYPE* a) { a[get_global_id(0)] = 1; }", '-D "TYPE=unsigned int"'), {"one": "pure W"}),
    ("the device's extension", request(CHOICE % "defined(cl_khr_fp64)"), {"one": "pure W"}),
    ("not the device's extension", request(CHOICE % "defined(cl_khr_fp16)"), {"one": "pure u"}),
    ("an extension that clang does not know", request(CHOICE % "defined(cl_vendor_thing)", extensions="cl_vendor_thing"), {"one": "pure W"}),
    ("the device's version", request(CHOICE % "__OPENCL_VERSION__ >= 300", version="300"), {"one": "pure W"}),
    ("the language's version", request(CHOICE % "__OPENCL_C_VERSION__ >= 200", "-cl-std=CL2.0"), {"one": "pure W"}),
    ("fast mathematics", request(CHOICE % "defined(__FAST_RELAXED_MATH__)", "-cl-fast-relaxed-math"), {"one": "pure W"}),
    ("a name of one compiler", request(CHOICE % "defined(__SPIR__)"), "unknown it uses __SPIR__"),
    ("a name of one compiler behind a continued line", request(CHOICE % "defined(\\\n__clang__)"), "unknown it uses __clang__"),
    ("a name of a driver", request(CHOICE % "POCL_DEVICE_ADDRESS_BITS == 64"), "unknown it uses POCL_DEVICE_ADDRESS_BITS"),
    ("such names in comments", request("// __SPIR__\n/* __clang__ */" + ONE), {"one": "pure W"}),
    ("included", request('#include "other.h"\n' + ONE), "unknown it includes files"),
    ("included by a macro", request('#define F "other.h"\n#  include F\n' + ONE), "unknown it includes files"),
    ("included after a continued line", request('#\\\ninclude "other.h"\n' + ONE), "unknown it includes files"),
    ("an option that is not known", request(ONE, "-fsomething"), "unknown option -fsomething"),
    ("broken", request("kernel void one(global int* a) { a[0] = ; }"), "unknown clang does not compile it"),
    ("a function from elsewhere", request(TRIPLE, part=True), {"tripled": "effects Wr"}),
    ("a part that needs nothing from elsewhere", request(ONE + "kernel void root(global float* a, global const float* b) { a[get_global_id(0)] = sqrt(b[get_global_id(0)]); }", part=True),
     {"one": "pure W", "root": "pure Wr"}),
    ("a function from elsewhere that looks like one of the language", request(
        "float __attribute__((overloadable, const)) strange(float);\nkernel void one(global float* a) { a[(int)strange(1)] = 1; }",
        part=True), {"one": "effects w"}),
    ("given headers", request('#include <part/triple.h>\nkernel void one(global uint* a) { a[0] = triple(a[1]); }', part=True,
                              headers=[("part/triple.h", "uint triple(uint x) { return 3u * x; }\n")]), {"one": "pure u"}),
    ("a header outside of the folder", request('#include "x.h"\n' + ONE, part=True, headers=[("../x.h", "")]),
     "unknown its headers cannot be written"),
    ("a header that was not given", request('#include "y.h"\n' + ONE, part=True, headers=[("x.h", "")]), "unknown clang does not compile it"),
    ("32 bits", request(ONE, address_bits="32"), {"one": "pure W"}),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--show", action="store_true", help="print all facts")
    options = parser.parse_args()
    source = Path(__file__).with_name("kernels.cl").read_text(encoding="utf-8")
    version_2 = Path(__file__).with_name("kernels_2.cl").read_text(encoding="utf-8")
    programs = PROGRAMS + [("kernels.cl", request(source), expected_of(source)),
                           ("kernels_2.cl", request(version_2, "-cl-std=CL2.0", version="300"), expected_of(version_2))]
    failed = 0
    for name, text, expected in programs:
        told = facts(options.program, text)
        if options.show:
            print(name, told)
        if told == expected:
            continue
        failed += 1
        print(f"FAILED: {name}")
        if isinstance(told, str) or isinstance(expected, str):
            print(f"    {told}, expected {expected}")
        else:
            for kernel in sorted(set(told) | set(expected)):
                if told.get(kernel) != expected.get(kernel):
                    print(f"    {kernel}: {told.get(kernel)}, expected {expected.get(kernel)}")
    for broken in ("", FIRST, FIRST + "source 5\nabc", FIRST + "source x\n\n", "swapmm-kernel-facts 1\n", FIRST + "other 1\n1\n"):
        code, out = ask(options.program, broken)
        if (code, out) != (2, ""):
            failed += 1
            print(f"FAILED: {broken!r} gives exit code {code}, output {out!r}")
    count = len(expected_of(source)) + len(expected_of(version_2))
    print(f"{len(programs)} programs with {count} kernels in two of them, {failed} failed")
    return 1 if failed or count < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
