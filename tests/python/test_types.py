# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Fields of all types of numbers: each keeps its type and all of its bits."""
import os
import shlex
import subprocess

import numpy as np
import pytest
import tailrace as tr

MODEL = os.environ.get("TEST_TYPES", "")
pytestmark = pytest.mark.skipif(not MODEL, reason="the program is not there (TEST_TYPES)")


@pytest.mark.parametrize("ending", ("nc", "nc4", "zarr"))
def test_integers_keep_their_types(tmp_path, ending):
    launcher = shlex.split(os.environ["TEST_LAUNCHER"])
    done = subprocess.run([*launcher, "-n", "2", MODEL, f"a.{ending}", "base=2026-03-01", "2"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    run = tr.open(f"{tmp_path}/a.{ending}")
    data = run.to_xarray()
    for letter in "iu":
        for size in (1, 2, 4, 8):
            name, kind = f"{letter}{8 * size}", f"{letter}{size}"
            limits = np.iinfo(kind)
            for step in run.steps:
                values = step[name]
                assert values.dtype == kind and values.flat[0] == 0
                assert values.flat[1] == (-1 if letter == "i" else limits.max) and values.flat[2] == (limits.min if letter == "i" else limits.max // 2 + 1)
            assert data[name].dtype == kind and np.array_equal(data[name].values[1], run.steps[1][name])
    assert run.steps[0]["still"].dtype == np.uint32 and run.steps[1]["late"].dtype == np.uint64
    # A field that was not put has the fill value of NetCDF in its place.
    assert data["late"].dtype == np.uint64 and (data["late"].values[0] == 2**64 - 2).all() and data["late"].values[1].flat[1] == 2**64 - 1
    assert list(map(int, data["u64"].attrs["flag_masks"])) == [1, 2, 2**63]


@pytest.mark.parametrize("ending", ("nc", "nc4", "zarr"))
def test_texts_are_texts(tmp_path, ending):
    launcher = shlex.split(os.environ["TEST_LAUNCHER"])
    done = subprocess.run([*launcher, "-n", "2", MODEL, f"t.{ending}", "base=2026-03-01", "2", "texts"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    run = tr.open(f"{tmp_path}/t.{ending}")
    ends = [each.encode() for each in ("Zürich", "", "abcdefghijkl", "two words", "blanks", "end", "東京")]
    for number, step in enumerate(run.steps):
        assert step["remark"].dtype == "S12" and list(step["remark"]) == ends[number:] + ends[:number]
        assert list(step["levels"][1]) == ends[1:] + ends[:1] and step["station_name"].tolist() == ends
        assert step["note"] == f"step {number}".encode()
    data = run.to_xarray()
    assert data["remark"].values[1].tolist() == ends[1:] + ends[:1] and data["late"].values.tolist() == [b"", b"abc"]
