#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Builds the library with one safeguard taken out at a time: the tests of checkpoints, GRIB2, lines, shared files,
global arrays, whole objects and collective calls of streams must notice each.

    tests/mutants/run.py BUILD          what ./dev test --mutants runs
    tests/mutants/run.py BUILD --only directory
    tests/mutants/run.py --check        only looks whether each mutant's text stands in its file

BUILD holds a copy of the sources and their build; the second run is quick."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
NEEDED = ("CMakeLists.txt", "CMakePresets.json", "bindings", "cmake", "include", "src", "tests", "third_party", "tools")
# A mutant without "test" is the first one's; "filter" names those of its cases that are run.
TARGETS = ("checkpoint_files_test", "copy_on_write_test", "grib2_test", "journal_test", "record_memory_test", "repeated_bytes_test", "shared_flush_test", "sim_line_test", "sim_pages_test", "sim_served_test", "sim_shared_test", "sim_streams_test", "storage_object_files", "storage_posix", "storage_replace", "stream_resume_test", "zarr_test")
TIME_LIMIT = 300


def copy_sources(tree):
    """Copies the sources into `tree`. Files that have not changed keep their times, so that they are not built
    again."""
    for top in NEEDED:
        paths = [SOURCE / top] if (SOURCE / top).is_file() else [path for path in (SOURCE / top).rglob("*") if path.is_file()]
        for path in paths:
            to = tree / path.relative_to(SOURCE)
            if to.exists() and to.read_bytes() == path.read_bytes():
                continue
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to)


def configure(tree, build):
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DTAILRACE_FORTRAN=OFF", "-DTAILRACE_MPI_TESTS=OFF",
               "-DTAILRACE_BUILD_EXAMPLES=OFF", "-DTAILRACE_BUILD_BENCH=OFF", "-DTAILRACE_CLI=OFF", "-DTAILRACE_BUILD_TESTS=ON",
               "-DMPI_C_COMPILER=" + os.environ.get("TEST_MPICC", "mpicc")]
    subprocess.run(["cmake", "-S", tree, "-B", build, "-G", "Ninja", *options], check=True, stdout=subprocess.DEVNULL)


def passes(build, target, cases="*"):
    """Builds a target. Returns True if its tests pass, and False if one fails or they hang: the mutant is noticed."""
    made = subprocess.run(["cmake", "--build", build, "--target", target], capture_output=True, text=True)
    if made.returncode != 0:
        sys.exit(f"does not build:\n{made.stdout[-3000:]}")
    program = next(path for path in build.rglob(target) if path.is_file() and os.access(path, os.X_OK))
    try:
        return subprocess.run([program, "--gtest_brief=1", f"--gtest_filter={cases}"], capture_output=True, timeout=TIME_LIMIT, cwd=build).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def changed(text, mutant):
    if text.count(mutant["from"]) != 1:
        sys.exit(f"'{mutant['name']}': its text stands {text.count(mutant['from'])} times in {mutant['file']}: mend tests/mutants/mutants.json")
    return text.replace(mutant["from"], mutant["to"])


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build", type=Path, nargs="?")
    options.add_argument("--check", action="store_true", help="only look whether each mutant's text stands in its file")
    options.add_argument("--only", default="", metavar="TEXT", help="only mutants whose name has this in it")
    args = options.parse_args()
    mutants = json.loads((Path(__file__).parent / "mutants.json").read_text())
    for mutant in mutants:  # before anything is built
        changed((SOURCE / mutant["file"]).read_text(), mutant)
    if args.check:
        return
    if args.build is None:
        options.error("BUILD is missing: the folder for the copy of the sources and their build")
    tree, build = args.build.absolute() / "tree", args.build.absolute() / "build"
    copy_sources(tree)
    configure(tree, build)
    if not all(passes(build, target) for target in TARGETS):
        sys.exit("the tests fail without any mutant")
    print("ok       no mutant")
    missed = 0
    for mutant in (each for each in mutants if args.only in each["name"]):
        path = tree / mutant["file"]
        before, start = path.read_text(), time.monotonic()
        path.write_text(changed(before, mutant))
        try:
            caught = not passes(build, mutant.get("test", TARGETS[0]), mutant.get("filter", "*"))
        finally:
            path.write_text(before)
        print(f"{'caught' if caught else 'MISSED':<8} {mutant['name']} ({time.monotonic() - start:.0f} s)", flush=True)
        missed += not caught
    sys.exit(f"{missed} mutants were not noticed" if missed else 0)


if __name__ == "__main__":
    main()
