# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The newest ecCodes of PyPI, a second peer: its library, in an environment below out/ that is brought up to date by each bench. Programs load it
in a process of its own (bench/eccodes_turns.cpp)."""
import subprocess
import sys
from pathlib import Path

from _bench import say

SOURCE = Path(__file__).resolve().parent.parent
VENV = SOURCE / "out" / "bench" / "eccodes-venv"
WAIT = 180  # seconds, for PyPI


def brought_up_to_date():
    """Returns why the environment may lack the newest library, or nothing."""
    python = VENV / "bin" / "python"
    for command in ([sys.executable, "-m", "venv", str(VENV)],
                    [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--upgrade", "--retries", "1", "--timeout", "20", "eccodeslib"]):
        if command[0] == sys.executable and python.exists():
            continue
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT)
        except subprocess.TimeoutExpired:
            return f"PyPI did not answer within {WAIT} s"
        if done.returncode != 0:
            return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return ""


def newest_eccodes():
    """Returns the options by which a program gets it, or none: then one line says why."""
    why = brought_up_to_date()
    found = sorted(VENV.glob("lib/python3*/site-packages/eccodeslib/lib*/libeccodes.so"))
    if not found:
        say(f"the newest ecCodes of PyPI is left out: {why or f'{VENV} holds no libeccodes.so'}")
        return []
    if why:
        say(f"the ecCodes of PyPI may not be the newest: {why}")
    library = found[-1]
    paths = [library.parent, *library.parents[2].glob("eckitlib/lib*")]
    return ["--newest", library, "--newest-path", ":".join(map(str, paths))]
