# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The environment BUILD/dvm-venv with the parsers that the translator needs, made once from PyPI. Without PyPI the tests
that need it are skipped. TAILRACE_TEST_PYTHON_INDEX names another index."""
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

BUILD = Path(os.environ["TEST_BUILD"])
SOURCE = Path(os.environ["TEST_SOURCE"])
INDEX = os.environ.pop("TAILRACE_TEST_PYTHON_INDEX", "")  # the library would take it for a misspelt setting
PACKAGES = ["fparser>=0.2", "pycparser>=2.22"]


def skip(why):
    print(f"skipped: {why}", flush=True)
    sys.exit(77)


def python():
    """Returns the environment's interpreter."""
    place = BUILD / "dvm-venv"
    with open(BUILD / "dvm-venv.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests begin side by side
        stamp = place / "made-for"
        if not stamp.exists() or stamp.read_text() != repr(PACKAGES):
            shutil.rmtree(place, ignore_errors=True)
            _make(place)
            stamp.write_text(repr(PACKAGES))
    return str(place / "bin" / "python")


def _make(place):
    made = subprocess.run([sys.executable, "-m", "venv", str(place)], capture_output=True, text=True)
    if made.returncode != 0:
        skip(f"python3 -m venv: {(made.stdout + made.stderr).strip().splitlines()[-1:]} (Debian's python3-venv)")
    command = [str(place / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--retries", "1",
               "--timeout", "20", *(["--index-url", INDEX] if INDEX else []), *PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    if done.returncode != 0:
        shutil.rmtree(place, ignore_errors=True)
        skip(f"PyPI was not reached: {done.stderr.strip().splitlines()[-1:]}")
