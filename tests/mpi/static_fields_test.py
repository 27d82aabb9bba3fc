# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Fields without time: in each file once, as netCDF4, xarray, ncdump, cdo and input streams read them, the same for any number of ranks and servers; runs that go on; calls that do not fit."""
import json
import os
import subprocess
import sys
from importlib.util import find_spec

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from packages import needed  # noqa: E402

needed("netCDF4", "numpy", "xarray")
import netCDF4  # noqa: E402
import numpy  # noqa: E402
import xarray  # noqa: E402
from small_model import *  # noqa: E402,F403

ENDINGS = {"cdf5": "nc"}
if os.environ.get("TEST_HDF5") == "1":
    ENDINGS["netcdf4"] = "nc4"
NY, NX, LEVELS, EDGES = 6, 7, 3, 11
HERE = numpy.arange(NY * NX).reshape(NY, NX)
EXPECTED = {
    "mask": ("i1", ("y", "x"), (HERE // NX + HERE % NX) % 2),
    "depth": ("f4", ("y", "x"), numpy.where(HERE == 5, -1, HERE * 10.0)),
    "metric": ("f8", ("height", "y", "x"), numpy.stack([HERE + 1000.0 * level for level in range(LEVELS)])),
    "number": ("i8", ("edge",), 2**53 + 1 + numpy.arange(EDGES)),
}


def written(path, options="", how="", first=0, steps=2, ranks=3, servers=1, code=0, **settings):
    ended, _, out = run(ranks, [MODEL, path, f"base=2026-03-01 {options}", str(first), str(steps), how], TAILRACE_SERVERS=str(servers), **settings)
    check(ended == code, f"{path}, {options}, {how}: the model ended with {ended}: {out}")
    return out


def expect_file(path, hours, integers=True):
    """Compares all variables; `integers` of 8 bytes are not in files of version 1."""
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        for name, (kind, dimensions, values) in EXPECTED.items():
            variable = file.variables[name]
            check(variable.dtype == kind and variable.dimensions == dimensions, f"{path}: {variable}")
            check(numpy.array_equal(variable[:], values), f"{path}: {name} is {variable[:]}")
        mask, depth = file.variables["mask"], file.variables["depth"]
        check(list(mask.flag_values) == [0, 1] and mask.flag_meanings == "sea land", f"{path}: {mask}")
        check(depth.units == "m" and depth._FillValue == -1, f"{path}: {depth}")
        check("_FillValue" not in file.variables["metric"].ncattrs(), f"{path}: {file.variables['metric']}")
        check(list(file.variables["time"][:]) == [hour * 3600 for hour in hours], f"{path}: times {file.variables['time'][:]}")
        surface = file.variables["surface"]
        check(surface.dimensions == ("time", "y", "x") and surface.shape[0] == len(hours), f"{path}: {surface}")
        check(numpy.array_equal(surface[-1] - surface[-1, 0, 0], HERE), f"{path}: surface {surface[-1]}")
        sizes = {each: len(file.dimensions[each]) for each in file.dimensions}
        check(sizes == {"time": len(hours), "y": NY, "x": NX, "height": LEVELS, "edge": EDGES}, f"{path}: dimensions {sizes}")


def read(path, steps=2):
    """Has input streams read all fields at each step, and between steps, by the index beside the file and without it, as that of another program."""
    written(path, "between=linear", "read", steps=3 * steps - 2, ranks=4, servers=2)
    if "{" in path:
        return
    written(path, "follow=on timeout=60s", "read", steps=steps, ranks=1, servers=0)
    out = written(path, "", "holes", code=1)
    check("'depth' at level 0" in out and "has no value at 1 point" in out, f"{path}, no missing=: {out}")
    os.rename(f"{path}.trx", f"{path}.away")
    written(path, "", "read", steps=steps)
    os.rename(f"{path}.away", f"{path}.trx")


ATTRIBUTES = {
    ("", "revision"): ("i4", [7]), ("", "weights"): ("f8", [0.5, numpy.nan, numpy.inf, 1 / 3]),
    ("depth", "valid_range"): ("f4", [0, 1000]), ("surface", "shorts"): ("i2", [-300, 300]), ("surface", "small"): ("i1", [-5]),
    ("x", "spacing"): ("f4", [2.5]), ("x", "valid_min"): ("f8", [-1]), ("number", "flag_values"): ("i8", [2**53 + 1, -1]), ("surface", "bytes"): ("u1", [0, 128, 255]),
    ("", "comment"): ("", "Meeresoberfläche 海"), ("time", "comment"): ("", "of the model"), ("number", "flag_meanings"): ("", "edge none"),
}
WRONG = ["missing= of tr_stream_define sets it", "would change the values", "follows from the layout", "tr_layout_axis and tr_layout_coordinates set it",
         "follows from tr_layout_georeference", "tr_layout_dimensions names dimensions", "tells of rounding", "statistic= and operation=",
         "attributes= or conventions=weather sets it", "calendar=, lead_unit= and time_units=", "attributes= of tr_stream_create sets it",
         "neither a field 'nothing'", "neither a field 'edge'", "valid_range has the type of its field in CF", "attribute 'a/b'", "it has 0 values",
         "`values` is a null pointer", "at most 60000 bytes", "integers or real numbers: give TR_F64", "type 77", "is not UTF-8",
         "flag_masks has the type of its field", "attribute of this name already: attributes= or conventions=weather sets it, or an earlier call",
         "rank 1 calls tr_stream_attribute"]


def expect_attributes(path, wide=True):
    with netCDF4.Dataset(path) as file:
        for (of, name), (kind, values) in ATTRIBUTES.items():
            if not wide and (kind in ("i8", "u1") or name == "flag_meanings"):
                continue
            found = (file.variables[of] if of else file).getncattr(name)
            same = found == values if kind == "" else found.dtype == kind and numpy.array_equal(numpy.atleast_1d(found), values, equal_nan=kind[0] == "f")
            check(same, f"{path}: {of}:{name} is {found!r}")
    told = subprocess.run(["ncdump", "-h", path], capture_output=True, text=True).stdout
    for text in (":revision = 7 ;", ":weights = 0.5, NaN, Infinity, 0.333333333333333 ;", "depth:valid_range = 0.f, 1000.f ;", "surface:shorts = -300s, 300s ;"):
        check(text in told, f"ncdump of {path} lacks {text}: {told}")


def store(path):
    """All objects of a Zarr store, by name."""
    return {os.path.relpath(os.path.join(folder, name), path): contents(os.path.join(folder, name))
            for folder, _, names in os.walk(path) for name in names}


for format, ending in ENDINGS.items():
    fresh(format)
    whole = f"{format}/a.{ending}"
    written(whole, f"format={format}")
    expect_file(whole, [0, 1])
    first = contents(whole)
    for ranks, servers in ((1, 0), (4, 2), (5, 3)) if ALL else ((2, 0), (5, 2)):
        written(whole, f"format={format}", "", ranks=ranks, servers=servers)
        check(contents(whole) == first, f"{whole}: differs with {ranks} ranks, {servers} of them servers")
    if ALL or format == "cdf5":
        written(whole, f"format={format}", "wide")
        check(contents(whole) == first, f"{whole}: differs if the array is wider than the layout says")
    for command in (["ncdump", "-h", whole], ["cdo", "-s", "sinfo", whole]):
        ended = subprocess.run(command, capture_output=True, text=True)
        check(ended.returncode == 0, f"{command}: {ended.stderr}")
    with xarray.open_dataset(whole) as file:
        check(file["mask"].dims == ("y", "x") and file["surface"].dims == ("time", "y", "x"), f"xarray reads {file}")
    read(whole)
    # Each file of a run that begins files anew.
    written(f"{format}/each{{lead:02h}}.{ending}", f"format={format}", steps=3)
    for hour in range(3):
        expect_file(f"{format}/each{hour:02}.{ending}", [hour])
    read(f"{format}/each{{lead:02h}}.{ending}", steps=3)
    # A run that goes on with the same fields, and one with others.
    both = (0, 1) if ALL or format == "cdf5" else (1,)
    for servers in both:
        written(whole, f"format={format}", servers=servers)
        written(whole, f"format={format} existing=continue", first=2, steps=2, servers=servers)
        expect_file(whole, [0, 1, 2, 3])
        before = contents(whole)
        out = written(whole, f"format={format} existing=continue", "other", first=4, servers=servers, code=1)
        check("depth" in out and "other values" in out, f"another depth: {out}")
        check(contents(whole) == before, f"{whole}: a refused run has changed it")
    # Attributes with types: the same for any number of servers; a run that goes on gives the same numbers.
    typed = f"{format}/typed.{ending}"
    written(typed, f"format={format}", "attributes")
    expect_attributes(typed)
    first = contents(typed)
    for ranks, servers in ((2, 0), (5, 2)) if ALL or format == "cdf5" else ((5, 2),):
        written(typed, f"format={format}", "attributes", ranks=ranks, servers=servers)
        check(contents(typed) == first, f"{typed}: differs with {ranks} ranks, {servers} of them servers")
    out = written(typed, f"format={format} existing=continue", "revised", first=2, servers=both[-1], code=1)
    check("depth:valid_range" in out and "other values" in out, f"another valid_range: {out}")
    check(contents(typed) == first, f"{typed}: a refused run has changed it")
    written(typed, f"format={format} existing=continue", "retold", first=2, servers=both[-1])
    expect_attributes(typed)
    out = written(f"{format}/d.{ending}", f"format={format}", "misgiven", code=1) if ALL or format == "cdf5" else ""
    for text in WRONG if out else ():
        check(text in out, f"{format}, misgiven: no error says {text}: {out}")
    # References give readers the missing value of a field without time, too.
    if format == "cdf5" and os.environ.get("TEST_ZARR") == "1":
        written(f"{format}/r.nc", "format=cdf5 references=on")
        told = json.loads(json.loads(contents(f"{format}/r.nc.refs.json"))["refs"]["depth/.zarray"])
        check(told["fill_value"] == -1 and told["shape"] == [NY, NX], f"references tell of depth {told}")
        written(f"{format}/r.nc", "format=cdf5 references=on", "attributes")
        refs = json.loads(contents(f"{format}/r.nc.refs.json"))["refs"]
        told = {name: json.loads(refs[name]) for name in (".zattrs", "depth/.zattrs", "number/.zattrs")}
        check(told[".zattrs"]["weights"] == [0.5, "NaN", "Infinity", 1 / 3] and told[".zattrs"]["revision"] == 7, f"references: {told}")
        check(told["depth/.zattrs"]["valid_range"] == [0, 1000] and told["number/.zattrs"]["flag_values"] == [2**53 + 1, -1], f"references: {told}")
    # What no format changes: means over intervals beside fields without time, and calls in the wrong place.
    if ALL or format == "cdf5":
        written(f"{format}/mean.{ending}", f"format={format} interval=2h", steps=5)
        expect_file(f"{format}/mean.{ending}", [2, 4])
        out = written(f"{format}/mean.{ending}", f"format={format} interval=2h", "late", steps=5, code=1)
        check("the field was put already" in out, f"a put within the first interval: {out}")
        # The step of whoever forgets a field fails; a second put, and one of a null pointer, fail by themselves.
        for servers in both:
            out = written(f"{format}/b.{ending}", f"format={format}", "unput", servers=servers, code=1)
            check("field 'depth' has time=none, and was not put before the first step" in out, f"a field not put: {out}")
            for how, text in (("twice", "was put already"), ("null", "null pointer"), ("within", "it is put once, before the first step"),
                              ("late", "the stream has begun its steps")):
                out = written(f"{format}/{how}.{ending}", f"format={format}", how, servers=servers, ranks=3 + servers, code=1)
                check(text in out, f"{how}: {out}")
                if how in ("twice", "late"):  # the error fails the next step, too
                    expect_file(f"{format}/{how}.{ending}", [1 if how == "twice" else 0])
    out = written(f"{format}/c.{ending}", f"format={format}", ranks=3, code=1, how="define")
    check(out.count("leave out accuracy=") == (3 if format == "cdf5" else 5) and "time=some" in out, f"wrong definitions: {out}")

if os.environ.get("TEST_ZARR") == "1":
    fresh("zarr")
    written("zarr/a.zarr")
    first = store("zarr/a.zarr")
    told = {name: json.loads(first[f"{name}/zarr.json"]) for name in (*EXPECTED, "surface")}
    for name, (kind, dimensions, values) in EXPECTED.items():
        check(told[name]["dimension_names"] == list(dimensions) and told[name]["shape"] == list(values.shape), f"zarr: {told[name]}")
        chunk = "/c." + ".".join("0" for _ in dimensions)
        stored = numpy.frombuffer(first[name + chunk], ">" + kind).reshape(values.shape)
        check(numpy.array_equal(stored, values), f"zarr: {name} is {stored}")
    check(told["surface"]["dimension_names"] == ["time", "y", "x"] and told["mask"]["attributes"]["flag_values"] == [0, 1], f"zarr: {told}")
    written("zarr/a.zarr", ranks=5, servers=2)
    check(store("zarr/a.zarr") == first, "zarr: differs with 5 ranks, 2 of them servers")
    read("zarr/a.zarr")
    written("zarr/a.zarr", "existing=continue", first=2)
    check(store("zarr/a.zarr")["mask/c.0.0"] == first["mask/c.0.0"], "zarr: the mask of a run that goes on differs")
    out = written("zarr/a.zarr", "existing=continue", "other", first=4, code=1)
    check("depth" in out and "other values" in out, f"zarr, another depth: {out}")

    written("zarr/typed.zarr", how="attributes")
    first = store("zarr/typed.zarr")
    for (of, name), (kind, values) in ATTRIBUTES.items():
        found = json.loads(first[f"{of}/zarr.json" if of else "zarr.json"])["attributes"][name]
        names = {"nan": "NaN", "inf": "Infinity"}
        wanted = values if kind == "" else [names.get(str(each), each) for each in values]
        check(found == (wanted[0] if isinstance(wanted, list) and len(wanted) == 1 else wanted), f"zarr: {of}:{name} is {found!r}")
    if find_spec("zarr"):
        file = xarray.open_zarr("zarr/typed.zarr", consolidated=False)
        check(file["depth"].attrs["valid_range"] == [0, 1000] and file.attrs["revision"] == 7, f"xarray reads {file.attrs}")
    out = written("zarr/typed.zarr", "existing=continue", "revised", first=2, code=1)
    check("the attribute 'depth:valid_range' is [0.0,1000.0] in the store" in out and store("zarr/typed.zarr") == first, f"zarr, another valid_range: {out}")
    written("zarr/typed.zarr", "existing=continue", "retold", first=2)

fresh("none")
for version in ("cdf1", "cdf2"):
    out = written(f"none/{version}.nc", f"format={version}", "attributes", code=1)
    check("'bytes' is of byte, which files of format=cdf1 and cdf2 cannot hold" in out, f"{version}: {out}")
    expect_attributes(f"none/{version}.nc", wide=False)
# Means, sums and extremes over dimensions of a field.
def expected_over(hour):
    """Returns the fields in float64, missing ones as NaN, as names -> (dimensions, values)."""
    z, y, x = numpy.mgrid[0:LEVELS, 0:NY, 0:NX]
    warm = (1000 * numpy.sin(((z * NY + y) * NX + x).astype(float) + hour)).astype(numpy.float32).astype(float)
    gone = (y == 2) | ((x == 3) & (z != 1)) | ((y == 4) & (x == 5))
    put = numpy.where(gone, -7.0, warm)
    warm = numpy.ma.masked_array(warm, gone)
    counts = ((y[0] * NX + x[0]) * 700 + hour).astype(numpy.int16).astype(float)
    first = warm[0]
    return {
        "zonal": (("height", "y"), warm.mean(axis=2)), "meridional": (("height", "x"), warm.sum(axis=1)), "profile": (("height",), warm.mean(axis=(1, 2))),
        "column": (("y", "x"), warm.sum(axis=0)), "section": (("x",), warm.mean(axis=0).mean(axis=0)), "most": ((), warm.max()),
        "least": (("height",), put.min(axis=(1, 2))), "rounded": (("y",), numpy.rint(counts.mean(axis=1))), "lowest": (("x",), counts.min(axis=0)),
        "points": ((), numpy.sin(3.0 * numpy.arange(13) + hour).sum()), "everywhere": ((), numpy.mean(numpy.arange(NX) - 2.5 + hour)),
        "map_zonal": (("lat",), first.mean(axis=1)), "map_mean": ((), first.mean()),
    }


METHODS = {"zonal": "x: mean", "meridional": "y: sum", "profile": "y: x: mean", "column": "height: sum", "section": "height: mean y: mean", "most": "height: maximum y: x: maximum",
           "points": "point: sum", "map_zonal": "longitude: mean", "map_mean": "latitude: longitude: mean"}


def expect_over(path, hours):
    with netCDF4.Dataset(path) as file:
        for number, hour in enumerate(hours):
            for name, (dimensions, values) in expected_over(hour).items():
                variable = file.variables[name]
                found = numpy.ma.masked_array(variable[number])
                tolerance = 1e-12 if variable.dtype == numpy.float64 else 1e-6
                same = numpy.array_equal(numpy.ma.getmaskarray(found), numpy.ma.getmaskarray(values)) and numpy.ma.allclose(found, values, rtol=tolerance, atol=1e-4)
                check(variable.dimensions == ("time", *dimensions) and same, f"{path}: {name}{variable.dimensions} at {hour} is {found}, not {values}")
        for name, methods in METHODS.items():
            check(file.variables[name].cell_methods == methods, f"{path}: {name}: {file.variables[name]}")
        check("coordinates" not in file.variables["zonal"].ncattrs() and list(file.variables["lat"][:]) == [50, 49, 48, 47, 46, 45], f"{path}: {file}")
        check("point" not in file.dimensions, f"{path} has the dimension that no variable has: {file.dimensions}")
    with xarray.open_dataset(path) as file:
        check(file.map_zonal.dims == ("time", "lat") and file.zonal.dims == ("time", "height", "y"), f"{path}: {file}")


OVER_FORMATS = {**ENDINGS, "raw": "raw"}
if os.environ.get("TEST_ZARR") == "1":
    OVER_FORMATS["zarr"] = "zarr"
for format, ending in OVER_FORMATS.items():
    fresh("over")
    first = None
    for ranks, servers in ((1, 0), (3, 0), (5, 2)) if ALL or format == "cdf5" else ((1, 0), (5, 2)):
        path = f"over/{ranks}.{ending}"
        # The run that goes on writes the same file.
        parts = ((0, 1, ""), (1, 1, "existing=continue")) if ranks == 3 and format != "raw" else ((0, 2, ""),)
        for begin, steps, options in parts:
            written(path, f"format={format} {options}", "over", begin, steps, ranks, servers)
        found = store(path) if ending == "zarr" else contents(path)
        first = found if first is None else first
        check(found == first or (format == "netcdf4" and len(parts) > 1), f"{path}: {ranks} ranks and {servers} servers write other bytes")
        if format not in ("raw", "zarr"):
            expect_over(path, [0, 1])
fresh("over")
for format, ending in OVER_FORMATS.items():
    if format == "raw" or not (ALL or format in ("cdf5", "netcdf4", "zarr")):
        continue
    written(f"over/kept.{ending}", f"format={format}", "over", 0, 1)
    out = written(f"over/kept.{ending}", f"format={format} existing=continue", "overchanged", 1, 1, code=1)
    check("cell_methods" in out, f"{format}: a mean went on as a maximum: {out}")
written("over/means.nc", "format=cdf5 interval=2h", "over", 1, 4)
with netCDF4.Dataset("over/means.nc") as file:
    check(file.variables["zonal"].cell_methods == "time: mean x: mean" and file.variables["section"].cell_methods == "time: mean height: mean y: mean", f"over time, then over x: {file}")
    means = [numpy.mean([float(expected_over(hour)["everywhere"][1]) for hour in hours]) for hours in ((1, 2), (3, 4))]
    check(numpy.allclose(file.variables["everywhere"][:], means, rtol=1e-12), f"over time, then over x: {file.variables['everywhere'][:]}, not {means}")
out = written("over/wrong.nc", "format=cdf5", "overdefined", code=1)
for text in ('"x" is no operation over dimensions', '"median:x" is no operation', "the field has no dimension 'z'; it has 'y', 'x'", "dimension 'x' is named twice", "the name of a dimension is empty",
             "over= is for fields of steps", "has no dimension 'levels'", "missing=0.1 is no int16", "operation= is over the steps of an interval", "over= needs integers or real numbers",
             "name the layout's dimensions by tr_layout_dimensions", "the layout has the points of a map in 3 dimensions"):
    check(text in out, f"a definition that no stream takes lacks '{text}': {out}")
out = written("over/a.grib2", "format=grib2", "overdefined", code=1)
check("over=: a GRIB2 message has all points of a grid on a level" in out, f"GRIB2 took a mean over a dimension: {out}")

for format in ("grib2", "raw"):
    out = written(f"none/b.{format}", f"format={format}", "misgiven", code=1, steps=0)
    check(f"files of format={format} hold no attributes: leave the call out" in out, f"{format} took an attribute: {out}")
for format in ("grib2", "raw"):
    out = written(f"none/a.{format}", f"format={format}", code=1, steps=0)
    check(f"files of format={format} hold no fields without time" in out, f"{format} took a field without time: {out}")
finish()
