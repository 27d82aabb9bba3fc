# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Compiles call_sites.c under <tailrace/stdio.h> in many ways, as C and as C++, as programs and shared libraries. In each, no call whose result
somebody uses may come without it, and with optimization no other call may come with one. Arguments: the compilers of C and C++, the folder of the
sources, the options of MPI. Compilers of clang are tried as well where they are installed."""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

c_compiler, cpp_compiler, source, *options = sys.argv[1:]
source = Path(source)
here = source / "tests/files"
options = [f"-I{source}/include", *options, "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
failed = []


def run(command, directory):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout + done.stderr


def try_one(compiler, language, compile_options, link_options, directory):
    """Returns what went wrong, or nothing."""
    steps = [[compiler, "-x", language, *compile_options, *options, "-c", str(here / "call_sites.c"), "-o", "calls.o"]]
    if "-fPIC" in compile_options:
        steps.append([compiler, *link_options, "-shared", "calls.o", "-o", "libcalls.so"])
        steps.append([cpp_compiler, "recorder.o", "sites.o", "-rdynamic", "-o", "program", "./libcalls.so", "-Wl,-rpath,."])
    else:
        steps.append([compiler, *link_options, "calls.o", "recorder.o", "sites.o", "-o", "program"])
    exact = "-O0" not in compile_options and "-Wl,--gc-sections" not in link_options
    for step in [*steps, ["./program", *(["exact"] if exact else [])]]:
        ended_well, said = run(step, directory)
        if not ended_well:
            return f"{' '.join(step)}\n{said}"
    return ""


ways = [(c_compiler, "c", ["-std=c99", "-O2"], []),
        (c_compiler, "c", ["-std=gnu11", "-O1", "-fPIE"], ["-pie"]),
        (c_compiler, "c", ["-std=c17", "-O3", "-fno-pie"], ["-no-pie"]),
        (c_compiler, "c", ["-std=c11", "-O2", "-fPIC"], []),
        (c_compiler, "c", ["-std=c99", "-O0"], []),
        (c_compiler, "c", ["-O2", "-flto"], ["-O2", "-flto"]),
        (cpp_compiler, "c++", ["-std=c++17", "-O2", "-fPIE"], ["-pie"]),
        (cpp_compiler, "c++", ["-std=c++11", "-O3", "-fPIC"], []),
        (cpp_compiler, "c++", ["-std=c++20", "-O1"], []),
        (cpp_compiler, "c++", ["-std=c++17", "-O0"], [])]
clang, clangpp = (next((found for name in names if (found := shutil.which(name))), None)
                  for names in (("clang", "clang-14"), ("clang++", "clang++-14")))
if clang:
    ways += [(clang, "c", ["-std=c99", "-O1"], []), (clang, "c", ["-O2", "-fPIC"], [])]
if clangpp:
    ways += [(clangpp, "c++", ["-std=c++17", "-O2", "-fPIE"], ["-pie"]), (clangpp, "c++", ["-std=c++17", "-O3", "-fPIC"], [])]
if shutil.which("ld.lld") and clang:
    # This linker drops the section, so that every result counts as used.
    ways += [(clang, "c", ["-O2", "-ffunction-sections"], ["-fuse-ld=lld", "-Wl,--gc-sections"])]

with tempfile.TemporaryDirectory() as directory:
    for step in ([c_compiler, "-O1", "-fPIE", "-c", str(here / "call_sites_recorder.c"), "-o", "recorder.o"],
                 [cpp_compiler, "-std=c++20", "-O1", "-fPIE", *options, f"-I{source}/src", "-c", str(source / "src/api/c/call_sites.cpp"), "-o", "sites.o"]):
        ended_well, said = run(step, directory)
        if not ended_well:
            sys.exit(f"FAILED: {' '.join(step)}\n{said}")
    failed = [said for way in ways if (said := try_one(*way, directory))]
for said in failed:
    print("FAILED:", said)
print(len(ways), "ways of compiling")
sys.exit(bool(failed))
