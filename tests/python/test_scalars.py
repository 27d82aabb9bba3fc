# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Numbers of a step, profiles and series: fields without dimensions, or with levels alone."""
import os
import shlex
import subprocess

import numpy as np
import pytest
import tailrace as tr
import xarray

MODEL = os.environ.get("TEST_SCALARS", "")
pytestmark = pytest.mark.skipif(not MODEL, reason="the program is not there (TEST_SCALARS)")


def written(tmp_path, name):
    launcher = shlex.split(os.environ["TEST_LAUNCHER"])
    done = subprocess.run([*launcher, "-n", "2", MODEL, name, "base=2026-03-01", "0", "3"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return str(tmp_path / name)


@pytest.mark.parametrize("ending", ("nc", "nc4", "zarr"))
def test_numbers_of_a_step_have_no_dimensions(tmp_path, ending):
    path = written(tmp_path, f"a.{ending}")
    run = tr.open(path)
    for number, step in enumerate(run.steps):
        assert step["energy"].shape == () and step["energy"] == 1e9 / (3 + number)
        assert step["iterations"].dtype == np.int32 and step["iterations"] == 100 + number
        assert np.array_equal(step["profile"], [number, 10 + number, 20 + number]) and step.read("profile", 10) == 10 + number
        assert np.array_equal(step["t"], np.arange(3) + 10 * number) and step["gravity"] == 9.80665
    data = run.to_xarray()
    dims = {name: data[name].dims for name in data.data_vars}
    assert dims == {"energy": ("lead",), "iterations": ("lead",), "profile": ("lead", "height"), "surface": ("lead", "y", "x"), "t_station": ("lead",),
                    "t": ("lead", "station"), "gravity": ()}
    assert data["energy"].attrs["units"] == "J" and list(data["energy"].values) == [1e9 / (3 + number) for number in range(3)]
    assert float(data["gravity"]) == 9.80665
    with xarray.open_dataset(path, engine="tailrace") as own:
        assert np.array_equal(own["t_station"], np.array([280.5, 281.5, 282.5], "f4"))
