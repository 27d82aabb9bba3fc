#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Takes the programs and commands out of README.md, docs/checkpoints.md, docs/shared-files.md, docs/streams.md and docs/input.md and
runs them as a reader would, against an installed tree; then tries what the tables of the last two say.

A fenced block whose first line is "```LANGUAGE NAME" is a file to write, or commands to run if LANGUAGE is sh.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import input_guide
import streams_guide

SOURCE, BUILD = Path(os.environ["TEST_SOURCE"]), Path(os.environ["TEST_BUILD"])
PROGRAMS = {"c": "c_006.grib2", "cpp": "cpp_006.grib2", "fortran": "fortran_006.grib2"}


def blocks(text):
    """(language, name, content) of each named block."""
    return re.findall(r"^```(\w+) (\S+)\n(.*?)^```$", text, re.M | re.S)


def run(command, **further):
    answer = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **further)
    if answer.returncode:
        sys.exit(f"FAILED: {command[0]} ended with {answer.returncode}\n{answer.stdout}")
    return answer.stdout


def write_tools(folder):
    """A bin folder in which README's short names mean the MPI of this build."""
    folder.mkdir()
    tools = {"mpicc": os.environ["TEST_MPICC"], "mpicxx": os.environ["TEST_MPICXX"], "mpifort": os.environ["TEST_MPIFORT"],
             "mpirun": os.environ["TEST_MPIRUN"]}
    for name, command in tools.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / name).chmod(0o755)


def check_lengths(named):
    """README promises programs that can be read at a glance."""
    for language, name, content in named:
        lines = [line for line in content.splitlines() if line.strip()]
        if language != "sh" and len(lines) > 28:
            sys.exit(f"FAILED: {name} has {len(lines)} lines")


def run_blocks(named, here, env):
    """Writes the files, then runs all commands in their order; what they printed."""
    script = "set -eux\n"
    for language, name, content in named:
        if language == "sh":
            script += content
        else:
            (here / name).write_text(content)
    answer = run(["bash", "-c", script], cwd=here, env=env)
    print(answer)
    return answer


def decoded(path):
    listing = run(["grib_get", "-p", "shortName,typeOfLevel,level,stepRange,dataDate,Ni,Nj,min,max", str(path)]).split()
    return listing[:7] + [round(float(value), 2) for value in listing[7:]]


def check_checkpoints(here, env):
    """The programs of docs/checkpoints.md go on where they were, on other ranks and in the other language."""
    printed = run_blocks(blocks((SOURCE / "docs/checkpoints.md").read_text()), here, env)
    for line in ("step 250: t is 250", "going on from step 200", "step 500: t is 500", "going on from step 500"):
        if line not in printed.splitlines():
            sys.exit(f"FAILED: a program of docs/checkpoints.md did not print '{line}'")


def check_streams(here, env):
    """The programs of docs/streams.md run, and what its tables say is so."""
    printed = run_blocks(blocks((SOURCE / "docs/streams.md").read_text()), here, env)
    if not re.search(r"\b0-12\b.*\btp\b", printed):
        sys.exit("FAILED: the forecast of docs/streams.md holds no rain from hour 0 to 12")
    steps = (here / "ocean_20260301.bin").stat().st_size
    if steps != 4 * 3 * 1000 * 8:
        sys.exit(f"FAILED: ocean_20260301.bin of docs/streams.md has {steps} bytes instead of four steps")
    streams_guide.check(SOURCE, here, env, os.environ["TEST_MPIRUN"].split(), os.environ["TEST_COMMAND"])


def check_input(here, env):
    """The programs of docs/input.md read what those of docs/streams.md have written, and between."""
    printed = run_blocks(blocks((SOURCE / "docs/input.md").read_text()), here, env).splitlines()
    for hour in range(6, 13):
        times = printed.count(f"hour {hour}: {260 + hour}.0 K at 500 hPa")
        if times != 3:
            sys.exit(f"FAILED: the programs of docs/input.md have found the temperature of hour {hour} {times} of 3 times")
    input_guide.check(SOURCE, here, env, os.environ["TEST_MPIRUN"].split())


def check_shared_files(here, env):
    """The programs of docs/shared-files.md write and read the same file."""
    printed = run_blocks(blocks((SOURCE / "docs/shared-files.md").read_text()), here, env)
    numbers = [int(number) for line in re.findall(r"^00000\d\d((?: +\d+)+)$", printed, re.M) for number in line.split()]
    if numbers != list(range(12)) or "not what was written" in printed:
        sys.exit(f"FAILED: the programs of docs/shared-files.md have written {numbers}")


def main():
    here = Path.cwd() / "reader"
    shutil.rmtree(here, ignore_errors=True)
    (here / "build").mkdir(parents=True)
    (here / "build" / "release-openmpi").symlink_to(BUILD)
    write_tools(here / "bin")
    named = blocks((SOURCE / "README.md").read_text())
    languages = [language for language, _, _ in named]
    if sorted(set(languages)) != ["c", "cpp", "fortran", "sh"]:
        sys.exit(f"FAILED: README.md shows programs in {sorted(set(languages))}")
    check_lengths(named)
    env = dict(os.environ, HOME=str(here / "home"), PATH=f"{here / 'bin'}:{os.environ['PATH']}")
    env.pop("PKG_CONFIG_PATH", None)
    printed = run_blocks(named, here, env)
    if '2t:standard_name = "air_temperature"' not in printed:
        sys.exit("FAILED: README.md's NetCDF file does not say that 2t is a temperature")

    if "220 K at the north pole" not in printed.splitlines():
        sys.exit("FAILED: README.md's read_back.c has not read what write_c.c has written")

    want = ["2t", "heightAboveGround", "2", "6", "20260301", "360", "181", 220.0, 268.59]
    for language, name in PROGRAMS.items():
        got = decoded(here / name)
        if got[:7] != want[:7] or any(abs(a - b) > 0.011 for a, b in zip(got[7:], want[7:])):
            sys.exit(f"FAILED: {name} holds {got} instead of {want}")
        if (here / name).read_bytes() != (here / PROGRAMS["c"]).read_bytes():
            sys.exit(f"FAILED: {name} holds other bytes than {PROGRAMS['c']}")
    # README's commands have installed the library.
    env.update(PKG_CONFIG_PATH=str(here / "home/tailrace/lib/pkgconfig"), PATH=f"{here / 'home/tailrace/bin'}:{env['PATH']}")
    check_checkpoints(here, env)
    check_streams(here, env)
    check_input(here, env)
    check_shared_files(here, env)
    shutil.rmtree(here)
    print("README.md's programs compile, run, and write the same file; those of docs/checkpoints.md go on where they were; what "
          "docs/streams.md says of its options is so.")


main()
