# SPDX-License-Identifier: Apache-2.0
"""The declarations are those of the headers, and libraries are found, or not found with a reason."""

import ctypes
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import swapmm
from swapmm import _native, errors

PYTHON = Path(__file__).resolve().parents[1]
CORE = PYTHON / "core" if (PYTHON / "core").is_dir() else PYTHON.parents[1]
HEADERS = {
    "include/swapmm/swapmm.h": _native.CORE,
    "backends/opencl/swapmm/c/opencl.h": _native.OPENCL,
    "backends/cuda/swapmm/c/cuda.h": _native.CUDA,
    "backends/file/swapmm/c/file.h": _native.FILE,
    "backends/python/native/python.h": _native.PYTHON,
}
SIZES = {"swapmm_options": _native.Options, "swapmm_numbers": _native.Numbers, "swapmm_use": _native.Use,
         "swapmm_output": _native.Output, "swapmm_operation": _native.Operation,
         "swapmm_simulated_options": _native.SimulatedOptions}  # fmt: skip


def header(name):
    return re.sub(r"//[^\n]*", "", (CORE / name).read_text(encoding="utf-8"))


def kind(declared):
    """A type in C as ctypes has it, where pointers are all alike."""
    declared = declared.strip()
    if "(" in declared or declared.startswith(("swapmm_python_progress", "swapmm_python_work")):
        return "function"
    if "*" in declared:
        return "text" if declared.startswith("const char*") else "pointer"
    word = declared.replace("const ", "").split(" ")[0]
    return {"swapmm_status": "int32", "int": "int32", "swapmm_tensor": "uint64", "void": "void"}.get(word, word.replace("_t", ""))


def kind_of_ctypes(type_):
    if type_ is None:
        return "void"
    if type_ is ctypes.c_char_p:
        return "text"
    if isinstance(type_, type) and issubclass(type_, ctypes._CFuncPtr):
        return "function"
    if type_ is ctypes.c_void_p or hasattr(type_, "contents"):
        return "pointer"
    return {ctypes.c_int: "int32", ctypes.c_int32: "int32", ctypes.c_uint32: "uint32", ctypes.c_uint64: "uint64",
            ctypes.c_int64: "int64", ctypes.c_uint8: "uint8", ctypes.c_double: "double"}[type_]  # fmt: skip


def parameters(text):
    """Split at the commas between parameters."""
    if text.strip() in ("", "void"):
        return []
    return [part for part in re.split(r",(?![^(]*\))", text)]


@unittest.skipIf(not (CORE / "include").is_dir(), "no headers beside the tests")
class Declarations(unittest.TestCase):
    def test_every_function_of_the_headers_is_declared_with_its_types(self):
        for name, declared in HEADERS.items():
            found = re.findall(r"SWAPMM_C_EXPORT\s+([\w\s]+[*\s])\s*(swapmm_\w+)\((.*?)\);", header(name), re.S)
            self.assertEqual({function for _, function, _ in found}, set(declared), name)
            for result, function, given in found:
                restype, argtypes = declared[function]
                wanted = [kind(part) for part in parameters(given)]
                actual = [kind_of_ctypes(type_) for type_ in argtypes]
                if function == "swapmm_text_destroy":  # texts to be destroyed must stay pointers
                    wanted = ["pointer"]
                self.assertEqual(actual, wanted, function)
                self.assertEqual(kind_of_ctypes(restype), kind(result + "*" if "*" in result else result), function)

    def test_structs_have_the_fields_of_the_header(self):
        text = header("include/swapmm/swapmm.h")
        for name, struct in SIZES.items():
            body = re.search(rf"typedef struct {name} {{(.*?)}} {name};", text, re.S)[1]
            fields = re.findall(r"[\w\s*]+?(\w+)\s*;", body)
            self.assertEqual([field[0] for field in struct._fields_], fields, name)
            # All fields but two have 8 bytes.
            small = sum(1 for _, type_ in struct._fields_ if type_ is ctypes.c_uint32)
            self.assertEqual(ctypes.sizeof(struct), 8 * (len(fields) - small) + 4 * small, name)
            self.assertEqual(small, 2 if name == "swapmm_options" else 0)

    def test_every_code_has_an_exception_of_its_name(self):
        codes = re.findall(r"SWAPMM_([A-Z_]+) = (\d+)", re.search(r"enum swapmm_status {(.*?)}", header("include/swapmm/swapmm.h"), re.S)[1])
        names = {int(code): "".join(word.title() for word in name.split("_")) for name, code in codes if name != "OK"}
        self.assertEqual({code: type_.__name__ for code, type_ in errors.of_status.items()}, names)
        for name, number in re.findall(r"SWAPMM_(CHECK_ACCESS|SCRUB|UNDEFINED_READS|IDENTIFY_BY_PRODUCER|PROVEN_DROPS|READ|WRITE|UPDATE) = (\d+)", header("include/swapmm/swapmm.h")):
            self.assertEqual(getattr(_native, name), int(number))


class Libraries(unittest.TestCase):
    def run_python(self, program, **environment):
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env={**os.environ, **environment})

    def test_versions(self):
        self.assertEqual(swapmm.__version__, _native.library().version().decode())
        self.assertRegex(swapmm.__version__, r"^\d+\.\d+\.\d+$")
        with self.assertRaisesRegex(AttributeError, "no function swapmm_nothing"):
            _native.library().nothing

    def test_only_functions_of_the_interface_are_exported(self):
        nm = subprocess.run(["nm", "-D", "--defined-only", str(_native.path_of("core"))], capture_output=True, text=True)
        if nm.returncode != 0:
            self.skipTest("no nm")
        names = {line.split()[-1].split("@")[0] for line in nm.stdout.splitlines()}
        self.assertEqual({name for name in names if not name.startswith("swapmm_")}, set())
        self.assertLessEqual({*_native.CORE, *_native.PYTHON}, names)

    def test_import_loads_no_api_of_a_device(self):
        run = self.run_python("import swapmm; print([l for l in open('/proc/self/maps') if 'OpenCL' in l or 'cuda' in l])")
        self.assertEqual(run.stdout, "[]\n", run.stderr)

    def test_a_library_that_is_not_there(self):
        run = self.run_python("import swapmm", SWAPMM_PYTHON_LIBRARY="/nowhere/at/all")
        self.assertIn("/nowhere/at/all does not exist", run.stderr)
        self.assertIn("BackendError", run.stderr)
        program = (
            "import swapmm\n"
            "from swapmm import _native\n"
            "_native._FILES['cuda'] = ('libswapmm_python_other.so', {})\n"
            "try: swapmm.cuda.pick()\n"
            "except swapmm.BackendError as error: print(error)\n"
        )
        self.assertIn("this installation of swapmm has no cuda backend", self.run_python(program).stdout)


if __name__ == "__main__":
    unittest.main()
