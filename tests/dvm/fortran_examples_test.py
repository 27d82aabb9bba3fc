# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Translated examples print and write what the same sources do when they are compiled as they are and run serially, on
each number of ranks. A run that goes on from a checkpoint on other ranks prints what the uninterrupted one printed.

usage: fortran_examples_test.py; TEST_COMMAND is the command"""
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from dvm_environment import SOURCE, python  # noqa: E402
from small_model import MPIRUN, check, environment, finish  # noqa: E402

WITH_PARSERS = {**os.environ, "PATH": f"{Path(python()).parent}:{os.environ['PATH']}"}
EXAMPLES = SOURCE / "examples/dvm/fortran"
RUNS = {"jac2d.f90": ["30", "20"], "jac3d.f90": ["13"], "redblack.f": ["20"], "sor.f": ["20"], "cg.f90": ["18"],
        "adi.f90": ["21"], "sections.f90": ["20"], "features.f90": ["14"], "jacobi_saved.f90": ["20", "25", "0"]}
RANKS = [1, 2, 3, 4, 8] if os.environ.get("TEST_ALL") else [1, 3, 4]


def compiled(name):
    """Compiles an example twice: as it is, and translated."""
    here = Path(name).resolve()
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    for program, compiler in (("serial", [os.environ["TEST_MPIFORT"]]), ("parallel", [os.environ["TEST_COMMAND"], "dvm", "fc"])):
        done = subprocess.run([*compiler, "-w", "-O1", str(EXAMPLES / name), "-o", program], cwd=here, env=WITH_PARSERS,
                              capture_output=True, text=True)
        if not check(done.returncode == 0, f"{name}, {program}: {done.stderr[-3000:]}"):
            return None
    return here


def run(here, place, command):
    """Returns what a program prints, and the files that it leaves but for checkpoints."""
    directory = here / place
    directory.mkdir(exist_ok=True)
    done = subprocess.run(command, cwd=directory, env=environment(), capture_output=True, text=True, timeout=60)
    files = {f.name: f.read_bytes() for f in directory.iterdir() if not f.name.startswith("jacobi.")}
    return done.returncode, done.stdout, files, done.stderr


def compare(name, here):
    arguments = RUNS[name]
    serial = run(here, "of-serial", ["../serial", *arguments])
    check(serial[0] == 0 and serial[1], f"{name}: the serial program fails: {serial[3]}")
    for ranks in RANKS:
        found = run(here, f"of-{ranks}", [*MPIRUN, "-n", str(ranks), "../parallel", *arguments])
        check(found[:3] == serial[:3], f"{name} on {ranks} ranks: {found[0]}, {found[1][-600:]} {found[3][-600:]}, "
              f"expected {serial[1][-600:]}; files {sorted(found[2])}, {sorted(serial[2])}")


def resume(here):
    whole = run(here, "of-serial", ["../serial", "20", "25", "0"])[1]
    for ranks in RANKS:
        found = run(here, "of-3", [*MPIRUN, "-n", str(ranks), "../parallel", "20", "25", "1"])
        check(found[0] == 0 and len(found[1].splitlines()) == 6 and whole.endswith(found[1]),
              f"resumed on {ranks} ranks: {found[0]}, {found[1]} {found[3]}")


with ThreadPoolExecutor(2) as pool:
    places = dict(zip(RUNS, pool.map(compiled, RUNS)))
for each, where in places.items():
    if where is not None:
        compare(each, where)
if places["jacobi_saved.f90"] is not None:
    resume(places["jacobi_saved.f90"])
finish()
