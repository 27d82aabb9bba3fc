# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The sample forecast of ./dev demo, on a small grid: fields on hybrid levels, on a pressure level and at the surface, in a file for each step and
in one for all."""
import os
import runpy
import shlex
import shutil
import subprocess
from pathlib import Path

import eccodes
import numpy as np
import pytest
import tailrace as tr
import xarray
from conftest import BASE

SOURCE, MODEL = Path(os.environ["TEST_SOURCE"]), os.environ.get("TEST_WEATHER", "")
PATTERN = "fc_{base:%Y%m%d%H}+{lead:03h}.grib2"
SIZE, LEVELS = "48x40", 3
pytestmark = pytest.mark.skipif(not MODEL or shutil.which("cdo") is None, reason="this build has no sample forecast, or cdo is not installed")


def forecast(directory, terrain):
    """12 hours: all fields every third hour, in a file each, and some every hour in one file."""
    command = [*shlex.split(os.environ["TEST_LAUNCHER"]), "-n", "2", MODEL, "--size", SIZE, "--levels", str(LEVELS), "--hours", "12", "--output-every", "3",
               "--terrain", str(terrain), "--out", str(directory), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def terrain(tmp_path_factory):
    """As demo.py makes it."""
    directory = tmp_path_factory.mktemp("terrain")
    grid = subprocess.run([MODEL, "--size", SIZE, "--print-grid"], capture_output=True, text=True, timeout=100, check=True).stdout
    (directory / "grid.txt").write_text(grid)
    subprocess.run(["cdo", "-s", "-f", "grb2", "-setname,orog", "-remapbil,grid.txt", "-topo", "terrain.grib2"], cwd=directory, timeout=100, check=True)
    return directory / "terrain.grib2"


@pytest.fixture(scope="module")
def written(terrain, tmp_path_factory):
    directory = tmp_path_factory.mktemp("forecast")
    forecast(directory, terrain)
    return directory


@pytest.fixture
def files(written, tmp_path, monkeypatch):
    """The files, for a case of its own."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def messages(path):
    """What ecCodes alone finds in a file: the values by hour, short name, type of level and level."""
    found = {}
    with open(path, "rb") as file:
        while (message := eccodes.codes_grib_new_from_file(file)) is not None:
            key = tuple(eccodes.codes_get(message, name) for name in ("endStep", "shortName", "typeOfLevel", "level"))
            found[key] = eccodes.codes_get_values(message).reshape(40, 48)
            eccodes.codes_release(message)
    return found


def test_every_message_is_what_ecCodes_reads(files):
    for opened, leads, count in ((tr.open(PATTERN, base=BASE), [3, 6, 9, 12], 3 * LEVELS + 2), (tr.open("surface_2026030100.grib2"), range(1, 13), 3)):
        assert [str(step.lead) for step in opened.steps] == [f"{hour}h" for hour in leads] and opened.complete, opened.missing
        for step in opened:
            wanted = {key[1:]: values for key, values in messages(step.path).items() if key[0] == step.lead.total_seconds() / 3600}
            assert len(wanted) == count
            for (name, _, level), values in wanted.items():
                assert np.allclose(step.read(name, level), values, rtol=1e-6, atol=0), (step, name, level)


def test_all_steps_are_one_dataset(files):
    data = tr.open(PATTERN, base=BASE).to_xarray()
    for name in "tuv":
        assert data[name].dims[0] == "lead" and data[name].shape == (4, LEVELS, 40, 48)
    assert data["t"].attrs["standard_name"] == "air_temperature" and 150 < float(data["t"].min()) < float(data["t"].max()) < 350
    assert data["sp"].shape == (4, 40, 48) and 4e4 < float(data["sp"].mean()) < 1.1e5
    # Rain falls on from the base time.
    assert (data["tp"].diff("lead") > -0.02).all() and data["tp"].attrs["time_bounds"] == "time_bnds"
    assert (data["time_bnds"].values[:, 0] == np.datetime64("2026-03-01")).all()
    surface = tr.open("surface_2026030100.grib2").to_xarray()
    assert surface["gh"].shape == (12, 40, 48) and float(surface["plev"]) == 500 and (surface["sp"].values[2::3] == data["sp"].values).all()


def test_each_type_of_level_has_a_group(files):
    tree = xarray.open_datatree(PATTERN, engine="tailrace", base=BASE)
    assert {name: sorted(group.data_vars) for name, group in tree.children.items()} == {"hybrid": ["t", "u", "v"], "surface": ["sp", "tp"]}
    tree = xarray.open_datatree("surface_2026030100.grib2", engine="tailrace")
    assert {name: sorted(group.data_vars) for name, group in tree.children.items()} == {"isobaricInhPa": ["gh"], "surface": ["sp", "tp"]}
    assert tree["isobaricInhPa/gh"].shape == (12, 40, 48)


def test_what_is_missing_is_named(files):
    run = tr.open(PATTERN, base=BASE)
    for ending in ("", ".trx"):
        os.remove(f"fc_2026030100+009.grib2{ending}")
    assert run.missing == ["+009h: not written"] and not run.complete
    os.remove("fc_2026030100+012.grib2.trx")
    assert run.missing == ["+009h: not written", "+012h: not committed"]
    assert [str(step.lead) for step in run.follow(timeout=0)] == ["3h", "6h"]


def test_the_example_charts_each_step_and_tells_what_is_missing(files, capsys):
    example = str(SOURCE / "python/examples/charts.py")
    for ending in ("", ".trx"):
        os.remove(f"fc_2026030100+012.grib2{ending}")
    os.rename("fc_2026030100+006.grib2.trx", "index")
    with pytest.raises(AssertionError, match=r"'\+006h: not committed'"):
        runpy.run_path(example)
    assert sorted(path.name for path in files.glob("*.png")) == ["01 Mar 03 UTC, +3h.png", "01 Mar 09 UTC, +9h.png"]
    os.rename("index", "fc_2026030100+006.grib2.trx")
    data = runpy.run_path(example)["ds"]
    assert (files / "01 Mar 06 UTC, +6h.png").read_bytes()[:4] == b"\x89PNG"
    assert data["t"].shape == (3, LEVELS, 40, 48) and "<xarray.Dataset" in capsys.readouterr().out
