# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The newest ecCodes of PyPI, a second peer: its library, in an environment below out/ that is brought up to date by each bench. Programs load it
in a process of its own (bench/eccodes_turns.cpp)."""
import os
import subprocess
import sys
from pathlib import Path

from _bench import say

SOURCE = Path(__file__).resolve().parent.parent
VENV = SOURCE / "out" / "bench" / "eccodes-venv"
WAIT = 180  # seconds, for PyPI


# What a program of its own tries with a library: a wheel for another C library, or without samples, would end each program of the bench.
TRIAL = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
new = library.codes_grib_handle_new_from_samples
new.restype, new.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)
sys.exit(0 if new(None, b"GRIB2") else "it has no sample GRIB2")
"""


def why_not(command, **options):
    """Runs a command and returns why it failed, or nothing."""
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=WAIT, **options)
    except subprocess.TimeoutExpired:
        return f"no answer within {WAIT} s"
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def brought_up_to_date():
    """Returns why the environment may lack the newest library, or nothing. One that was left half made is made again."""
    pip = [VENV / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
    why = why_not([sys.executable, "-m", "venv", "--clear", VENV]) if why_not([*pip, "--version"]) else ""
    return why or why_not([*pip, "install", "--quiet", "--upgrade", "--retries", "1", "--timeout", "20", "eccodeslib"])


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
    paths = ":".join(map(str, [library.parent, *library.parents[2].glob("eckitlib/lib*")]))
    before = os.environ.get("LD_LIBRARY_PATH")
    refused = why_not([sys.executable, "-c", TRIAL, library], env={**os.environ, "LD_LIBRARY_PATH": f"{paths}:{before}" if before else paths})
    if refused:
        say(f"the newest ecCodes of PyPI is left out: {refused}")
        return []
    return ["--newest", library, "--newest-path", paths]
