# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Fields without time (time=none): each file has them once, and no step has a record of them."""
import os
import shlex
import subprocess

import numpy as np
import pytest
import tailrace as tr
import xarray

MODEL = os.environ.get("TEST_STATIC_FIELDS", "")
pytestmark = pytest.mark.skipif(not MODEL, reason="the program is not there (TEST_STATIC_FIELDS)")
HERE = np.arange(42).reshape(6, 7)
DEPTH = np.where(HERE == 5, np.nan, HERE * 10.0)
ENDINGS = ("nc", "nc4", "zarr")


def written(tmp_path, name, steps=3, options="", how=""):
    launcher = shlex.split(os.environ["TEST_LAUNCHER"])
    done = subprocess.run([*launcher, "-n", "2", MODEL, name, f"base=2026-03-01 {options}", "0", str(steps), how], cwd=tmp_path, capture_output=True, text=True,
                          timeout=100)
    assert done.returncode == 0, done.stderr
    return str(tmp_path / name)


@pytest.mark.parametrize("ending", ENDINGS)
def test_each_step_has_the_fields_of_its_file(tmp_path, ending):
    run = tr.open(written(tmp_path, f"a.{ending}"))
    for step in run.steps:
        assert step.names == ["surface"]
        mask = step["mask"]
        assert mask.dtype == np.int8 and np.array_equal(mask, (HERE // 7 + HERE % 7) % 2)
        assert step["depth"].dtype == np.float32 and np.array_equal(step["depth"], DEPTH, equal_nan=True)
        assert np.array_equal(step["metric"], [HERE + 1000 * level for level in range(3)])
        assert np.array_equal(step.read("metric", 10), HERE + 1000)
        assert np.array_equal(step["number"], 2**53 + 1 + np.arange(11))
        with pytest.raises(tr.NotThereError, match='"metric" has no level 7; it has 5, 10, 20'):
            step.read("metric", 7)
        with pytest.raises(tr.NotThereError, match='"salt" was not put'):
            step["salt"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_dataset_has_them_without_the_dimension_of_leads(tmp_path, ending):
    path = written(tmp_path, f"a.{ending}")
    data = tr.open(path).to_xarray()
    dims = {name: data[name].dims for name in data.data_vars}
    assert dims == {"surface": ("lead", "y", "x"), "mask": ("y", "x"), "depth": ("y", "x"), "metric": ("height", "y", "x"), "number": ("edge",)}
    assert list(data["height"].values) == [5, 10, 20] and data["depth"].attrs["units"] == "m"
    assert list(data["mask"].attrs["flag_values"]) == [0, 1] and data["mask"].attrs["flag_meanings"] == "sea land"
    assert not {"y", "x", "edge"} & set(data.coords), "dimensions of NetCDF-4 without coordinates have none here"
    with xarray.open_dataset(path, engine="tailrace") as own:
        assert np.array_equal(own["depth"], DEPTH, equal_nan=True)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_of_nothing_but_such_fields_has_no_leads(tmp_path, ending):
    run = tr.open(written(tmp_path, f"grid.{ending}", steps=0, how="alone"))
    data = run.to_xarray()
    assert {name: data[name].dims for name in data.data_vars} == {"mask": ("y", "x"), "depth": ("y", "x"), "metric": ("height", "y", "x")}
    assert set(data.coords) == {"height"} and np.array_equal(data["depth"], DEPTH, equal_nan=True)
    step, = run.steps
    assert step.names == [] and np.array_equal(step["mask"], (HERE // 7 + HERE % 7) % 2) and run.complete
    assert {name for group in run.to_datatree().children.values() for name in group.data_vars} == {"mask", "depth", "metric"}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_field_that_others_name_as_their_coordinate_becomes_one(tmp_path, ending):
    data = tr.open(written(tmp_path, f"a.{ending}", how="places")).to_xarray()
    assert "mask" in data["surface"].coords and data["mask"].dtype == np.int8 and "mask_2" not in data.coords
    assert set(data.data_vars) == {"surface", "depth", "metric", "number"}


def test_each_file_of_a_run_has_them(tmp_path):
    written(tmp_path, "a{lead:03h}.nc")
    run = tr.open(tmp_path / "a{lead:03h}.nc", base="2026-03-01T00:00Z")
    assert len(run.files) == 3 and all(np.array_equal(step["depth"], DEPTH, equal_nan=True) for step in run.steps)
    assert run.to_xarray()["depth"].dims == ("y", "x")


def test_missing_values_are_nan(tmp_path):
    path = written(tmp_path, "a.nc")
    with open(path, "r+b") as file:
        data = file.read()
        at = data.index(np.arange(10, 50, 10).astype(">f4").tobytes())
        file.seek(at)
        file.write(np.array([-1], ">f4").tobytes())
    assert np.isnan(tr.open(path).steps[0]["depth"][0, 1])


@pytest.mark.parametrize("ending", ENDINGS)
def test_attributes_have_their_types(tmp_path, ending):
    data = tr.open(written(tmp_path, f"a.{ending}", how="attributes")).to_xarray()
    assert data.attrs["Conventions"] == "CF-1.8" and data.attrs["revision"] == 7 and data.attrs["comment"] == "Meeresoberfläche 海"
    assert list(data.attrs["weights"])[::3] == [0.5, 1 / 3] and "tailrace_run" in data.attrs
    assert list(data["depth"].attrs["valid_range"]) == [0, 1000] and data["x"].attrs["spacing"] == 2.5
    assert list(data["number"].attrs["flag_values"]) == [2**53 + 1, -1] and list(data["surface"].attrs["bytes"]) == [0, 128, 255]
    if ending != "zarr":  # its numbers are those of JSON
        assert data["depth"].attrs["valid_range"].dtype == np.float32 and data["surface"].attrs["shorts"].dtype == np.int16
        assert np.isnan(data.attrs["weights"][1]) and data["surface"].attrs["small"].dtype == np.int8
