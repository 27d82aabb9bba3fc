# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Standard input is read by the I/O rank and arrives on every rank; standard output is the I/O rank's alone."""
import os
import shlex
import subprocess
import sys
from pathlib import Path

PROGRAM = sys.argv[1]
LAUNCHER = shlex.split(os.environ["TEST_MPIRUN"])
INPUT = "42 2.25 word\na whole line\n"


def check(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


for ranks in (1, 3):
    moved = Path(f"moved-{ranks}")
    moved.unlink(missing_ok=True)
    run = subprocess.run([*LAUNCHER, "-n", str(ranks), PROGRAM, str(moved.resolve())], input=INPUT, text=True,
                         capture_output=True, timeout=60, check=False)
    said = f"{ranks} ranks:\n{run.stdout}{run.stderr}"
    check(run.returncode == 0, f"exit code {run.returncode} on {said}")
    check(run.stdout == "3 items: 42 2.25 word\na whole line\n\n#-1\nat the end\n", f"standard output of {said}")
    check(run.stderr.count("told once: No such file or directory\n") == 1, f"standard error of {said}")
    check(moved.read_text(encoding="ascii") == "to the file\n", "what was reopened")
print("ok")
