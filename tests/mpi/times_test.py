# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Named dimensions that fields share, steps closer than a second, and at times that count from no date: what the variable of time says to netCDF4, ncdump, xarray and cdo, the same
files for any number of ranks and servers, file names, and calls that do not fit. Streams read such files again, and those of netCDF4."""
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

# Streams read the files: the axis of the index decides, and a call that does not fit fails on every rank.
def read(name, options, call, ranks, servers, how="read", steps=STEPS):
    code, _, out = run(ranks, [MODEL, name, options, call, str(steps), how], TAILRACE_SERVERS=str(servers))
    check(code == 0, f"{name}, {options}, {ranks} ranks, {servers} servers: reading ended with {code}: {out}")
    return out


def refused(name, options, call, text):
    code, _, out = run(2, [MODEL, name, options, call, "1", "read"], TAILRACE_SERVERS="0")
    check(code == 1 and text in out, f"{name}, {options}: no error says {text}: {out}")


places = [("cdf5", "cdf5/{}.nc")] + [("netcdf4", "netcdf4/{}.nc4")] * ("netcdf4" in ENDINGS) + [("zarr", "zarr/{}.zarr")] * (os.environ.get("TEST_ZARR") == "1")
for number, (format, place) in enumerate(places):
    if format == "zarr":
        written(place.format("ms"), f"format=zarr {BASE} lead_unit=ms", "lead")
        written(place.format("model"), "format=zarr time=model", "time")
    scenes_of = ((1, 0), (3, 0), (4, 1)) if ALL else ((3, 1),)
    for ranks, servers in scenes_of:
        for how in ("read", "read_wrong") if number == 0 else ("read",):
            for name, options, call, words in (
                    ("ms", "prefetch=1", "lead", ("counts leads in ms", "there is no step at lead 667000 ms: the files have 5 steps, from lead 0 ms to 2668 ms")),
                    ("model", "between=linear", "time", ("tr_stream_begin_at", "there is no step at time 1000 s: the files have 5 steps, from time 0 s to 0.4 s", "a step cannot be at time nan"))):
                out = read(place.format(name), options, call, ranks, servers, how)
                for each in words if how == "read_wrong" else ():
                    check(each in out, f"{place}, {name}: no error says {each}: {out}")
read("cdf5/shown.nc", "", "lead", 2, 0)
read("cdf5/days.nc", "", "time", 2, 0)
read("cdf5/pseudo.nc", "time=model", "time", 2, 0)
read("cdf5/ms.nc", f"{BASE} follow=on timeout=20s", "lead", 3, 0)
read("cdf5/model.nc", "time=model follow=on timeout=20s", "time", 3, 0)
refused("cdf5/ms.nc", "lead_unit=s", "lead", "a step at lead 667 ms after 2026-03-01T12:00:00Z, and the stream counts leads in s")
refused("cdf5/ms.nc", "time=model", "time", "counts its times from a date, and the stream has time=model")
refused("cdf5/model.nc", "lead_unit=ms", "lead", "has times of a model, in s from no date")
refused("cdf5/days.nc", "time=model base=2026-03-02", "time", "times of a model are not converted")

# Files of another writer have no index: the option names the unit, or says that times count from no date.
def foreign(path, values, units, kind="f8"):
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        for name, length in (("time", None), ("z", 5), ("x", 8), ("xu", 9)):
            file.createDimension(name, length)
        time = file.createVariable("time", kind, ("time",))
        time.setncatts({"axis": "T", "standard_name": "time", "units": units})
        time[:] = values
        for name, width in (("theta", 8), ("u", 9)):
            field = file.createVariable(name, "f8", ("time", "z", "x" if width == 8 else "xu"))
            field[:] = [100.0 * step + numpy.arange(5 * width).reshape(5, width) for step in range(len(values))]


fresh("foreign")
leads = [667 * i for i in range(STEPS)]
since = "since 2026-03-01 12:00:00"
for name, values, units in (("ms", leads, f"milliseconds {since}"), ("s", [each / 1000 for each in leads], f"seconds {since}"), ("d", [each / 86400000 for each in leads], f"days {since}"),
                            ("old", [each / 1000 + 1772366400 for each in leads], "seconds since 1970-01-01")):
    if not ALL and name in ("d", "old"):
        continue
    foreign(f"foreign/{name}.nc", values, units)
    read(f"foreign/{name}.nc", "lead_unit=ms" + (f" {BASE}" if name == "old" else ""), "lead", 3, 0)
    if ALL or name == "ms":
        refused(f"foreign/{name}.nc", f"lead_unit=min {BASE}", "lead", "give a finer lead_unit=")
foreign("foreign/model.nc", times, "Alfven times")
for ranks, servers in ((1, 0), (3, 1)) if ALL else ((3, 1),):
    read("foreign/model.nc", "time=model between=linear", "time", ranks, servers)
refused("foreign/model.nc", "", "lead", "has times of a model, in Alfven times from no date, and the stream leads in s: give time=model")
foreign("foreign/thirds.nc", [each / 3 for each in range(STEPS)], f"seconds {since}")
refused("foreign/thirds.nc", "lead_unit=ns", "lead", "is no whole number of nanoseconds")
foreign("foreign/seconds.nc", [667.2 * each for each in range(STEPS)], f"seconds {since}")
read("foreign/seconds.nc", "", "lead", 2, 0, steps=2)

# A file for each time, found again by its name; a step that goes on where an earlier run has ended.
fresh("names")
written("names/a{time:06.2f}.nc", "time=model", "time")
check(sorted(each for each in os.listdir("names") if each.endswith(".nc")) == [f"a{each:06.2f}.nc" for each in times], f"files {os.listdir('names')}")
read("names/a{time:06.2f}.nc", "", "time", 3, 0)
code, _, out = run(3, model("names/a{time:06.2f}.nc", "time=model existing=fail", "time"))
check(code == 1 and "exists" in out, f"existing=fail found no file of another run: {out}")
written("names/b{lead:06ms}.nc", f"{BASE} lead_unit=ms", "lead")
check(os.path.exists("names/b002668.nc"), f"files {os.listdir('names')}")
read("names/b{lead:06ms}.nc", BASE, "lead", 3, 1)
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
