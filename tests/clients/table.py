# SPDX-License-Identifier: Apache-2.0
"""The client programs: programs that know nothing of swapmm, where they come from, and what their result is."""
from dataclasses import dataclass, field

TINYGRAD = ("tinygrad==0.14.0", "numpy==2.4.6")
EVERYTHING = r"."


@dataclass(frozen=True)
class Client:
    """In `command`, {python} is that of the virtual environment, {programs} the folder tests/clients/programs, {work} a folder
    of the client's own, {built} where programs of `sources` are."""
    name: str
    command: tuple
    result: str = EVERYTHING  # the lines of standard output that count: those in which this is found, or its groups
    pypi: tuple = ()
    pypi_sources: tuple = ()  # whose archives are unpacked, for tests that no wheel has; they are in {sources}
    debian: tuple = ()
    sources: tuple = ()       # C++ files of programs/ to build, each with its libraries
    repository: tuple = ()    # address and commit of one with tests of its own; a clone of it is in build/clients/clones
    tests: tuple = ()         # C++ files of that clone to build, without ".cpp"; the programs are in {built}/NAME
    options: tuple = ()       # of the compiler, for these
    environment: dict = field(default_factory=dict)
    limit: int = 600          # seconds
    fractions: tuple = (1.0, 0.5, 0.25)
    cold: bool = False        # with empty caches each time
    code: int = 0             # the exit code of a native run
    prepare: tuple = ()       # a command that is run once before
    input: str = ""           # standard input
    evict: bool = False       # also with everything evicted after every command: some launch needs nearly all of the memory
    quick: bool = False       # a small one for ./dev test
    needs_files: tuple = ()   # that the installation must have, as glob in the virtual environment


def tinygrad(name, program, *arguments, **more):
    environment = {"DEV": "CL", **more.pop("environment", {})}
    pypi = TINYGRAD + more.pop("pypi", ())
    return Client(name, ("{python}", f"{{programs}}/{program}.py", *arguments), r"^(?:losses|weights) ", pypi,
                  environment=environment, **more)


CNN, CNN_SMALL = ("6", "64", "32", "6"), ("3", "8", "8", "2")
GPT, GPT_SMALL = ("4", "8", "128", "6", "192", "6", "512"), ("3", "2", "16", "1", "32", "2", "64")
NO_CACHE = {"LRU": "0"}
# For ./dev test: as small as they get. tinygrad compiles in the process itself, for starting others takes longer.
CNN_TINY, CNN_TINY_JIT, GPT_TINY = ("2", "4", "4", "1"), ("4", "4", "4", "1"), ("2", "2", "16", "1", "32", "2", "64")
ALONE = {"PARALLEL": "0"}


def pyopencl(name, *files, without="", **more):
    """PyOpenCL's own tests in these files. `without`: an expression for tests that are left out."""
    tests = tuple("{sources}/pyopencl-2026.1.4/test/" + file for file in files)
    chosen = ("-k", f"not ({without})") if without else ()
    return Client(name, ("{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", "--tb=short", *chosen, *tests),
                  r"^(?:PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) ",
                  ("pyopencl==2026.1.4", "numpy==2.4.6", "pytest==9.2.0", "Mako==1.4.3"), ("pyopencl==2026.1.4",), evict=True, **more)


VIENNACL_TESTS = ("scan", "iterators", "matrix_product_float", "self_assign", "vector_int")
INTEL = {"LD_LIBRARY_PATH": "{venv}/lib", "OCL_ICD_VENDORS": "{venv}/lib/libintelocl.so",
         "OCL_ICD_FILENAMES": "{venv}/lib/libintelocl.so"}
# tinygrad asks ldconfig for the library before it looks elsewhere.

CLIENTS = (
    tinygrad("tg_cnn_small", "tg_cnn", *CNN_SMALL),
    tinygrad("tg_cnn_small_jit", "tg_cnn", *CNN_SMALL, "--jit"),
    tinygrad("tg_cnn_small_no_buffer_cache", "tg_cnn", *CNN_SMALL, environment=NO_CACHE),
    tinygrad("tg_cnn_small_cold", "tg_cnn", *CNN_SMALL, cold=True),
    tinygrad("tg_gpt_small", "tg_gpt", *GPT_SMALL),
    tinygrad("tg_gpt_small_jit", "tg_gpt", *GPT_SMALL, "--jit"),
    tinygrad("tg_gpt_small_no_buffer_cache", "tg_gpt", *GPT_SMALL, environment=NO_CACHE),
    tinygrad("tg_gpt_small_cold", "tg_gpt", *GPT_SMALL, cold=True),
    tinygrad("tg_cnn", "tg_cnn", *CNN),
    tinygrad("tg_cnn_jit", "tg_cnn", *CNN, "--jit"),
    tinygrad("tg_cnn_no_buffer_cache", "tg_cnn", *CNN, environment=NO_CACHE),
    tinygrad("tg_gpt", "tg_gpt", *GPT, fractions=(1.0, 0.5, 0.25, 1 / 16)),
    tinygrad("tg_gpt_jit", "tg_gpt", *GPT, "--jit"),
    tinygrad("tg_gpt_no_buffer_cache", "tg_gpt", *GPT, environment=NO_CACHE),
    Client("pyclesperanto", ("{python}", "{programs}/cle_pipeline.py", "128", "4"), r"^images ",
           ("pyclesperanto==0.25.1", "numpy==2.4.6")),
    Client("opencv", ("{python}", "{programs}/cv_pipeline.py"), r"^(round \d+ \w+)", ("opencv-python-headless==5.0.0.93", "numpy==2.4.6"),
           environment={"OPENCV_OPENCL_DEVICE": ":CPU:0", "OPENCV_OPENCL_CACHE_ENABLE": "0"}),
    pyopencl("pyopencl", "test_wrapper.py", "test_enqueue_copy.py", "test_arrays_in_structs.py", limit=900),
    # They compile hundreds of kernels, which takes long the first time.
    pyopencl("pyopencl_arrays", "test_array.py", limit=7200),
    pyopencl("pyopencl_algorithms", "test_algorithm.py", limit=7200),
    pyopencl("pyopencl_functions", "test_clmath.py", "test_clrandom.py", limit=7200),
    # Two OpenCL loaders in one process.
    Client("pyvkfft", ("{python}", "{programs}/vkfft_transforms.py"), r"^rounds ",
           ("pyvkfft==2025.1.1", "pyopencl==2026.1.4", "numpy==2.4.6"), debian=("ocl-icd-opencl-dev",), evict=True),
    Client("openmm", ("{python}", "{programs}/omm.py", "14", "40"), r"hash (\w+)$", ("openmm==8.6.1", "numpy==2.4.6")),
    Client("gprmax", ("{python}", "{programs}/gpr_wave.py", "64", "200", "{work}"), r"^fields ",
           ("gprMax==4.0.1", "pyopencl==2026.1.4", "numpy==2.4.6")),
    Client("viennacl", ("{built}/viennacl_products",), debian=("libboost1.81-dev",), sources=(("viennacl_products", ()),)),
    # Its own tests, those that end soon. Debian's package has none of them.
    Client("viennacl_tests", ("{python}", "{programs}/run_all.py", "{built}/viennacl_tests", *VIENNACL_TESTS),
           debian=("libboost1.81-dev",), repository=("https://github.com/viennacl/viennacl-dev", "dc552a8d4bba2bb028a346dc611deea0c67e3eed"),
           tests=tuple(f"tests/src/{name}" for name in VIENNACL_TESTS), options=("-DVIENNACL_WITH_OPENCL",), limit=900),
    Client("clblast", ("{built}/clblast_routines",), debian=("libclblast-dev",), sources=(("clblast_routines", ("clblast",)),)),
    Client("boost_compute", ("{built}/boost_compute_programs",), debian=("libboost1.81-dev",),
           sources=(("boost_compute_programs", ()),)),
    Client("hashcat", ("hashcat", "--quiet", "--force", "--potfile-disable", "--backend-ignore-cuda", "-m", "0", "-a", "3",
                       "ab56b4d92b40713acc5af89985d4b786", "?l?l?l?l?l"), r"^[0-9a-f]{32}:", debian=("hashcat",)),
    Client("leela_zero", ("/usr/games/leelaz", "--gpu", "0", "--precision", "single", "--weights", "{work}/net.txt", "--gtp", "--noponder",
                          "-t", "1", "-b", "1", "-p", "60", "-r", "0", "-s", "1", "-m", "0", "-d"), r"^[=?]",
           debian=("leela-zero",), prepare=("{programs}/leela_random_net.py", "4", "32", "{work}/net.txt"),
           input="genmove b\ngenmove w\ngenmove b\nquit\n", limit=900),
    Client("clpeak", ("clpeak", "--kernel-latency", "--transfer-bandwidth"),
           r"^\s*((?:Platform|Device): .*|Transfer bandwidth|Kernel launch latency)", debian=("clpeak",), limit=900),
    tinygrad("quick_tg_cnn", "tg_cnn", *CNN_TINY, environment=ALONE, quick=True),
    tinygrad("quick_tg_cnn_jit", "tg_cnn", *CNN_TINY_JIT, "--jit", environment=ALONE, quick=True),
    tinygrad("quick_tg_cnn_no_buffer_cache", "tg_cnn", *CNN_TINY, environment={**ALONE, **NO_CACHE}, quick=True),
    tinygrad("quick_tg_gpt", "tg_gpt", *GPT_TINY, environment=ALONE, quick=True),
    Client("quick_pyclesperanto", ("{python}", "{programs}/cle_pipeline.py", "32", "2"), r"^images ",
           ("pyclesperanto==0.25.1", "numpy==2.4.6"), quick=True),
    # Khronos' own loader, with the driver that comes with it.
    tinygrad("tg_cnn_small_khronos_loader", "tg_cnn", *CNN_SMALL, environment=INTEL, pypi=("intel-opencl-rt==2026.2.0", "intel-cmplr-lib-rt==2026.2.0")),
)
