# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What all cases share: the files that package.py has written, and the values that the files must have."""
import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
NY, NX, LEVELS = 11, 13, (1000.0, 850.0, 500.0)
BASE = "2026-03-01T00:00Z"


@pytest.fixture(scope="session")
def data():
    return os.environ["TEST_DATA"]


def formats():
    """Returns the endings of the formats that this build has."""
    return sorted(name for name in os.listdir(os.environ["TEST_DATA"]) if os.path.exists(f"{os.environ['TEST_DATA']}/{name}/one.{name}"))


def expected(field, hour, level):
    """Returns the values that small_model puts of a field (0: t, 1: u)."""
    place = np.arange(NY * NX)
    values = 100.0 * np.sin(0.05 * place + 0.3 * level + 0.1 * hour) + place - 10.0 * level
    return values.reshape(NY, NX)


def close(got, field, hour, level, path=""):
    """True if the values are right within the format's accuracy. With 16 bits GRIB keeps a 65,536th of the range."""
    return np.abs(got - expected(field, hour, level)).max() < (0.02 if "grib" in str(path) else 1e-4)
