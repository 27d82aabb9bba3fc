# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""`tailrace dvm` compiles an example and starts it; errors name lines of the original source.

usage: command_test.py; TEST_COMMAND is the command"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from dvm_environment import SOURCE, python  # noqa: E402
from small_model import check, environment, finish  # noqa: E402

EXAMPLE = SOURCE / "examples/dvm/fortran/jac2d.f90"
WITH_PARSERS = {"PATH": f"{Path(python()).parent}:{os.environ['PATH']}"}
shutil.rmtree("tree", ignore_errors=True)
os.mkdir("tree")
os.chdir("tree")


def dvm(*words, **settings):
    done = subprocess.run([os.environ["TEST_COMMAND"], "dvm", *words], env={**environment(), **WITH_PARSERS, **settings},
                          capture_output=True, text=True, timeout=90)
    return done.returncode, done.stdout, done.stderr


def broken(name, old, new):
    """The example with one place changed."""
    text = EXAMPLE.read_text()
    check(text.count(old) >= 1, f"the example has no {old}")
    Path(name).write_text(text.replace(old, new, 1))
    return 1 + text[:text.index(old)].count("\n")


code, out, err = dvm("fc", "-w", "-O1", "-o", "jacobi", str(EXAMPLE))
check(code == 0 and os.access("jacobi", os.X_OK), f"fc: {code} {err}")
subprocess.run([os.environ["TEST_MPIFORT"], "-w", "-O1", "-o", "serial", str(EXAMPLE)], check=True)
serial = subprocess.run(["./serial", "30", "10"], capture_output=True, text=True).stdout
for program in ("jacobi", "./jacobi"):
    code, out, err = dvm("run", "-n", "3", program, "30", "10")
    check(code == 0 and out == serial and serial, f"run {program}: {code} {out} {err}, expected {serial}")
code, out, err = dvm("fc", "-w", "-c", "-O1", str(EXAMPLE))
check(code == 0 and os.path.exists("jac2d.o"), f"fc -c: {code} {err}, {os.listdir()}")
code, out, err = dvm("fc", "-o", "linked", "jac2d.o")
check(code == 0 and os.access("linked", os.X_OK), f"objects are linked: {code} {err}")
code, out, err = dvm("translate", str(EXAMPLE), "-o", "translation.f90")
check(code == 0 and "tailrace_dvm" in Path("translation.f90").read_text(), f"translate: {code} {err}")

# Sources of one program are compiled one by one.
Path("mesh.f90").write_text("module mesh\n  real a(16)\n  !DVM$ DISTRIBUTE a(BLOCK)\nend module\n")
Path("fill.f90").write_text("program fill\n  use mesh\n  integer i\n  !DVM$ PARALLEL (i) ON a(i)\n  do i = 1, 16\n    a(i) = i\n  end do\n"
                            "  print *, a(16)\nend program\n")
for words in (["-c", "mesh.f90"], ["-c", "fill.f90", "--with", "mesh.f90"], ["-o", "fill", "mesh.o", "fill.o"]):
    code, out, err = dvm("fc", *words)
    check(code == 0, f"fc {words}: {code} {err}")
code, out, err = dvm("run", "-n", "2", "fill")
check(code == 0 and out.split() == ["16.0000000"], f"one by one: {code} {out} {err}")

line = broken("directive.f90", "PARALLEL", "PARALEL")
code, out, err = dvm("fc", "directive.f90")
check(code == 1 and f"directive.f90:{line}:" in err and "Traceback" not in err, f"a directive that is none: {code} {err}")
line = broken("statement.f90", "end do", "end doo")
code, out, err = dvm("fc", "statement.f90")
check(code != 0 and "statement.f90" in err and "Traceback" not in err, f"an error of the compiler: {code} {err}")
code, out, err = dvm("fc", "nowhere.f90")
check(code == 1 and "nowhere.f90: No such file" in err, f"a source that is missing: {code} {err}")
code, out, err = dvm("--help")
check(code == 0 and "tailrace dvm run -n 4" in out, f"--help: {code} {out}{err}")
code, out, err = dvm("fcc", "a.f90")
check(code == 2 and "fcc" in err, f"a word that is none: {code} {err}")
code, out, err = dvm("fc", str(EXAMPLE), PATH="/nowhere")
check(code == 1 and "python3 cannot be started" in err, f"without Python: {code} {err}")
os.chdir("..")
shutil.rmtree("tree")
finish()
