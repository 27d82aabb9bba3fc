# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Runs fortran_cases.py, the unit tests of the translator of Fortran."""
import os
import subprocess
import sys

from dvm_environment import SOURCE, python

turns = "5000" if os.environ.get("TEST_ALL") else "300"
sys.exit(subprocess.run([python(), "-m", "unittest", "-q", "fortran_cases"], cwd=SOURCE / "tests/dvm",
                        env={**os.environ, "PYTHONPATH": str(SOURCE / "tools/dvm"), "PYTHONDONTWRITEBYTECODE": "1",
                             "DVM_TURNS": turns}).returncode)
