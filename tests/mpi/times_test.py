# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Named dimensions that fields share, steps closer than a second, and at times that count from no date: what the variable of time says to netCDF4, ncdump, xarray and cdo, the same
files for any number of ranks and servers, file names, and calls that do not fit."""
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

ENDINGS = {"cdf5": "nc"}
if ALL:
    ENDINGS["cdf1"] = "nc"
if os.environ.get("TEST_HDF5") == "1":
    ENDINGS["netcdf4"] = "nc4"
BASE = "base=2026-03-01T12:00Z"
STEPS = 5
times = [0.0]
while len(times) < STEPS:
    times.append(times[-1] + 0.1)


def model(pattern, options, call, steps=STEPS, *more):
    return [MODEL, pattern, options, call, str(steps), *more]


def written(name, options, call, ranks=3, servers=1, more=()):
    code, _, out = run(ranks, model(name, options, call, STEPS, *more), TAILRACE_SERVERS=str(servers))
    check(code == (1 if more else 0), f"{name}, {options}: the model ended with {code}: {out}")
    return out


def expect_times(path, values, **attributes):
    with netCDF4.Dataset(path) as file:
        name = attributes.pop("name", "time")
        time = file.variables[name]
        check(time.dimensions == (name,) and file.variables["theta"].dimensions[0] == name, f"{path}: dimensions {time.dimensions}")
        check(list(time[:]) == values, f"{path}: times {list(time[:])}, expected {values}")
        told = {each: time.getncattr(each) for each in time.ncattrs()}
        expected = {"long_name": "time", "axis": "T", **attributes}
        check(told == expected, f"{path}: attributes {told}, expected {expected}")
        sizes = {each: len(file.dimensions[each]) for each in file.dimensions}
        check(sizes == {name: len(values), "z": 5, "x": 8, "xu": 9, "bnds": 2}, f"{path}: dimensions {sizes}")
        shared = [file.variables[field].dimensions[1:] for field in ("theta", "u")]
        check(shared == [("z", "x"), ("z", "xu")], f"{path}: dimensions of fields {shared}")
        check(sorted(file.variables) == sorted([name, "theta", "u", "x", "x_bnds", "z"]), f"{path}: variables {sorted(file.variables)}")
        x, z = file.variables["x"], file.variables["z"]
        check(x.dtype == "f8" and list(x[:]) == [0.5 + i for i in range(8)] and x.bounds == "x_bnds" and x.axis == "X" and
              x.long_name == "from the left wall", f"{path}: {x}")
        check(numpy.array_equal(file.variables["x_bnds"][:], [[i, i + 1] for i in range(8)]), f"{path}: {file.variables['x_bnds'][:]}")
        check(z.dtype == "i4" and list(z[:]) == [100 * i for i in range(5)] and z.positive == "up" and z.units == "m", f"{path}: {z}")
        check(numpy.array_equal(file.variables["u"][-1], 100.0 * (len(values) - 1) + numpy.arange(45).reshape(5, 9)), f"{path}: u differs")
        check([float(file.variables["theta"][i, 0, 0]) for i in range(len(values))] == [100.0 * i for i in range(len(values))], f"{path}: wrong fields")


dated = {"standard_name": "time", "calendar": "proleptic_gregorian"}
for format, ending in ENDINGS.items():
    fresh(format)
    leads = [667 * i for i in range(STEPS)]
    cases = {
        "ms": (f"{BASE} lead_unit=ms", "lead", [float(each) for each in leads], {"units": "milliseconds since 2026-03-01 12:00:00", **dated}),
        "shown": (f"{BASE} lead_unit=ms time_units=seconds", "lead", [each / 1000 for each in leads], {"units": "seconds since 2026-03-01 12:00:00", **dated}),
        "hours": (f"{BASE} lead_unit=h time_name=Times", "lead", [float(each) for each in leads],
                  {"units": "hours since 2026-03-01 12:00:00", "name": "Times", **dated}),
        "model": ("time=model", "time", times, {"units": "s"}),
        "pseudo": ("time=model time_units='Alfven times'", "time", times, {"units": "Alfven times"}),
        "days": (f"time=model time_units=days {BASE}", "time", times, {"units": "days since 2026-03-01 12:00:00", **dated}),
    }
    for number, (name, (options, call, values, attributes)) in enumerate(cases.items()):
        path = f"{format}/{name}.{ending}"
        written(path, f"format={format} {options}", call)
        expect_times(path, values, **attributes)
        first = contents(path)
        others = ((1, 0), (4, 2))
        for ranks, servers in others if ALL else others[number % 2:][:1]:
            written(path, f"format={format} {options}", call, ranks, servers)
            check(contents(path) == first, f"{path}: differs with {ranks} ranks, {servers} of them servers")
        for command in (["ncdump", "-h", path], ["cdo", "-s", "sinfo", path]):
            ended = subprocess.run(command, capture_output=True, text=True)
            check(ended.returncode == 0, f"{command}: {ended.stderr}")
    with xarray.open_dataset(f"{format}/ms.{ending}") as file:
        apart = numpy.diff(file["time"].values) / numpy.timedelta64(1, "ms")
        check(set(apart) == {667.0}, f"xarray has steps {apart} ms apart")
    with xarray.open_dataset(f"{format}/model.{ending}") as file:
        check(list(file["time"].values) == times, f"xarray has the times {file['time'].values}")

if os.environ.get("TEST_ZARR") == "1":
    fresh("zarr")
    written("zarr/a.zarr", "time=model", "time")
    told = {name: json.loads(contents(f"zarr/a.zarr/{name}/zarr.json")) for name in ("theta", "u", "time", "x", "z")}
    names = {name: each["dimension_names"] for name, each in told.items()}
    check(names == {"theta": ["time", "z", "x"], "u": ["time", "z", "xu"], "time": ["time"], "x": ["x"], "z": ["z"]}, f"zarr: {names}")
    check(told["time"]["attributes"] == {"long_name": "time", "units": "s", "axis": "T"}, f"zarr: {told['time']['attributes']}")
    check(told["z"]["data_type"] == "int32" and told["x"]["attributes"]["units"] == "km", f"zarr: {told['z']}, {told['x']}")

# A file for each time, found again by its name; a step that goes on where an earlier run has ended.
fresh("names")
written("names/a{time:06.2f}.nc", "time=model", "time")
check(sorted(each for each in os.listdir("names") if each.endswith(".nc")) == [f"a{each:06.2f}.nc" for each in times], f"files {os.listdir('names')}")
code, _, out = run(3, model("names/a{time:06.2f}.nc", "time=model existing=fail", "time"))
check(code == 1 and "exists" in out, f"existing=fail found no file of another run: {out}")
written("names/b{lead:06ms}.nc", f"{BASE} lead_unit=ms", "lead")
check(os.path.exists("names/b002668.nc"), f"files {os.listdir('names')}")
check("no whole number of {lead:s}" in run(3, model("names/c{lead:s}.nc", f"{BASE} lead_unit=ms", "lead"))[2], "a lead of 667 ms has a name in seconds")

# Means of intervals shorter than a second's multiples, with their bounds.
fresh("intervals")
code, _, out = run(3, model("intervals/a.nc", f"{BASE} lead_unit=ms interval=1334ms", "lead"))
check(code == 0, f"intervals of 1334 ms: {out}")
with netCDF4.Dataset("intervals/a.nc") as file:
    check(list(file.variables["time"][:]) == [1334, 2668], f"ends of intervals {list(file.variables['time'][:])}")

# Calls that do not fit fail their step on every rank; the steps around it stay.
fresh("misuse")
for options, call, misuse, text in (("time=model", "time", "other", "tr_stream_begin_at"), (f"{BASE}", "lead", "other", "time=model"),
                                    ("time=model", "time", "nan", "a step cannot be at time nan"), (BASE, "lead", "below", "lead -667 s "), ("time=model", "time", "back", "time 0 s goes back in time")):
    for servers in (0, 1):
        out = written("misuse/a.nc", f"{options} format=cdf5", call, 3, servers, (misuse,))
        check(text in out, f"{options}, {misuse}: {out}")
        with netCDF4.Dataset("misuse/a.nc") as file:
            check(len(file.variables["time"]) == STEPS, f"{options}, {misuse}: {len(file.variables['time'])} steps")
for servers in (0, 1):
    out = written("misuse/d.nc", "time=model format=cdf5", "time", 3, servers, ("early",))
    check("tr_stream_begin_at" in out and "back in time" not in out, f"times below 0 behind a wrong call: {out}")
    with netCDF4.Dataset("misuse/d.nc") as file:
        check(file.variables["time"][0] == -0.3 and len(file.variables["time"]) == STEPS, f"times {file.variables['time'][:]}")
code, _, out = run(3, model("misuse/c.nc", "time=model", "time", 1, "axes"))
for text in ("the layout's dimensions have no names: call tr_layout_dimensions first", 'there are 2 names, and the layout, 5, has 1 dimension',
             '"z" names two dimensions of one layout', 'no dimension "xs"; did you mean "x"?', 'dimension "x" has 8 elements, and 7 coordinates are given',
             "coordinates are integers or real numbers", "`values` is a null pointer", 'unknown key "unit"',
             "dimension 'z' has other coordinates in a field before"):
    check(code == 1 and text in out, f"no error says {text}: {out}")
code, _, out = run(2, model("misuse/b.grib2", "time=model", "time"))
check(code == 1 and "GRIB2 counts times from a date" in out, f"GRIB2 took times of a model: {out}")
finish()
