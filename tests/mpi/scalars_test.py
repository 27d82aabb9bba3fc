# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Scalars, profiles and series at stations beside a map: as netCDF4, xarray, ncdump and cdo read them, the same for any number of ranks and servers; read again; runs that go on; calls that do not fit."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from packages import needed  # noqa: E402

needed("netCDF4", "numpy", "xarray")
import netCDF4  # noqa: E402
import numpy  # noqa: E402
import xarray  # noqa: E402
from small_model import *  # noqa: E402,F403

FORMATS = written_formats("variables")
KINDS = {"energy": ("f8", ("time",)), "iterations": ("i4", ("time",)), "profile": ("f8", ("time", "height")), "surface": ("f4", ("time", "y", "x")),
         "t_station": ("f4", ("time",)), "t": ("f4", ("time", "station")), "gravity": ("f8", ())}


def values(steps):
    step = numpy.array(steps, dtype="f8")
    return {"energy": 1e9 / (3 + step), "iterations": 100 + step, "profile": step[:, None] + numpy.arange(3) * 10,
            "surface": 100 * step[:, None, None] + numpy.arange(20).reshape(4, 5), "t_station": (280.5 + step).astype("f4"),
            "t": 10 * step[:, None] + numpy.arange(3), "gravity": numpy.array(9.80665)}


def ran(path, options="", how="", first=0, steps=2, ranks=3, servers=1, code=0):
    ended, _, out = run(ranks, [MODEL, path, f"base=2026-03-01 {options}", str(first), str(steps), how], TAILRACE_SERVERS=str(servers))
    check(ended == code, f"{path}, {options}, {how}: the model ended with {ended}: {out}")
    return out


def expect_store(path, steps):
    objects = image(path)
    for name, (_, dimensions) in KINDS.items():
        told = json.loads(objects[f"{name}/zarr.json"])
        check(tuple(told["dimension_names"]) == dimensions, f"{path}: {name} is {told}")
        check("time" not in dimensions or told["shape"][0] == len(steps), f"{path}: {name} has {told['shape']}")
    raw = sorted(each for each in objects if each.startswith("energy/c"))
    check(len(raw) == len(steps), f"{path}: objects of energy {raw}")


def expect_file(path, steps):
    expected = values(steps)
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        for name, (kind, dimensions) in KINDS.items():
            variable = file.variables[name]
            check(variable.dtype == kind and variable.dimensions == dimensions, f"{path}: {variable}")
            check(numpy.array_equal(variable[...], expected[name]), f"{path}: {name} is {variable[...]}")
        sizes = {each: len(file.dimensions[each]) for each in file.dimensions}
        check(sizes == {"time": len(steps), "height": 3, "y": 4, "x": 5, "station": 3}, f"{path}: dimensions {sizes}")
        check(file.variables["energy"].units == "J", f"{path}: {file.variables['energy']}")
        places = [file.variables[each] for each in file.variables["t_station"].coordinates.split()]
        check(sorted((each.standard_name, float(each[...]), each.dimensions) for each in places) == [("latitude", 47.5, ()), ("longitude", 8.5, ())], f"{path}: {places}")


for format, ending in FORMATS.items():
    expect = expect_store if format == "zarr" else expect_file
    fresh(format)
    whole = f"{format}/a.{ending}"
    ran(whole)
    expect(whole, [0, 1])
    first = image(whole)
    for ranks, servers in ((1, 0), (2, 0), (5, 2)):
        ran(whole, ranks=ranks, servers=servers)
        check(image(whole) == first, f"{whole}: differs with {ranks} ranks, {servers} of them servers")
    ran(whole, how="array")
    check(image(whole) == first, f"{whole}: differs if scalars are put as arrays")
    ran(whole, "existing=continue", first=2)
    expect(whole, [0, 1, 2, 3])
    ran(f"{format}/each{{lead:02h}}.{ending}", steps=3)
    expect(f"{format}/each02.{ending}", [2])
    # Each rank reads each number.
    for ranks, servers in ((1, 0), (3, 1)):
        ran(whole, "", "read", ranks=ranks, servers=servers, steps=4)
    ran(f"{format}/mean.{ending}", "interval=2h", steps=5)
    if format == "zarr":
        continue
    with netCDF4.Dataset(f"{format}/mean.{ending}") as file:
        got, energy = file.variables["energy"], values([0, 1, 2, 3, 4])["energy"]
        check(got.dimensions == ("time",) and list(got[:]) == [energy[2], energy[4]], f"{format}: energies of intervals {got[:]}")
    for command in (["ncdump", "-h", whole], ["cdo", "-s", "sinfo", whole]):
        ended = subprocess.run(command, capture_output=True, text=True)
        check(ended.returncode == 0, f"{command}: {ended.stderr}")
    with xarray.open_dataset(whole) as file:
        check(file["energy"].dims == ("time",) and float(file["gravity"]) == 9.80665 and float(file["t_station"].coords["lat"]) == 47.5, f"xarray reads {file}")

fresh("others")
ran("others/a.raw", "format=raw", "grib")
check(len(contents("others/a.raw")) == 2 * (8 + 4), "raw: not two steps of a double and an int32")
out = ran("others/a.grib2", "format=grib2", "grib", code=1)
check("scalar" in out, f"GRIB2 took a scalar: {out}")
out = ran("others/m.nc", "", "misuse", code=1)
for text in ("a scalar has no dimensions", "the layout's dimensions have no names", "a scalar has no grid", "layouts have 1 to", "level_axis", "chunks", "has extents"):
    check(text in out, f"misuse does not say '{text}': {out}")
check("of a scalar were written" not in out and "a scalar has another" not in out and "a scalar was not" not in out, f"misuse: {out}")
check(contents("others/number.bin") == numpy.float64(1).tobytes(), "a file has another number")
finish()
