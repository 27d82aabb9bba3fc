# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Fields of all types of numbers that NetCDF-4 has, flags among them: as netCDF4, xarray, ncdump and zarr read them, the same for any number of ranks and servers; read again in their own types and in longer ones; what a
format or a reader cannot hold; means and extremes of unsigned numbers."""
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

FORMATS = written_formats("variables")
KINDS = {f"{letter}{8 * size}": f"{letter}{size}" for letter in "iu" for size in (1, 2, 4, 8)} | {"f32": "f4", "f64": "f8"}
FLAGS = {"u8": ("flag_masks", "u1", [1, 2, 128]), "u16": ("flag_values", "u2", [0, 40000, 65535]), "u64": ("flag_masks", "u8", [1, 2, 2**63]),
         "i8": ("flag_masks", "i1", [1, 2, -128]), "u32": ("valid_range", "u4", [0, 2**32 - 1])}


def values(kind, step):
    """What types.c puts of a field of this type."""
    element = numpy.arange(20, dtype="u8")
    if kind[0] == "f":
        return (0.25 * element - step).astype(kind).reshape(4, 5)
    size = int(kind[1:])
    bits = (element + numpy.uint64(20 * step)) * numpy.uint64(0x9E3779B97F4A7C15)
    bits[:3] = [0, 2**64 - 1, 2**(8 * size - 1)]
    return bits.astype("<u8").view("u1").reshape(20, 8)[:, :size].copy().view(f"<{kind}").reshape(4, 5)


def expected(steps):
    fields = {name: (kind, numpy.stack([values(kind, step) for step in range(steps)])) for name, kind in KINDS.items()}
    fields["holes"] = fields["u16"]
    fields["late"] = "u8", numpy.concatenate([numpy.full((1, 4, 5), 2**64 - 2, "u8"), fields["u64"][1][1:]])
    fields["still"] = "u4", values("u4", 7)
    return fields


def ran(path, options="base=2026-03-01", how="", steps=2, ranks=3, servers=1, code=0):
    ended, _, out = run(ranks, [MODEL, path, options, str(steps), how], TAILRACE_SERVERS=str(servers))
    check(ended == code, f"{path}, {options}, {how}: the model ended with {ended}: {out}")
    return out


def same(got, kind, wanted):
    return got.dtype == numpy.dtype(kind) and numpy.array_equal(got, wanted)


def expect_file(path, steps):
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        for name, (kind, wanted) in expected(steps).items():
            check(same(file[name][...], kind, wanted), f"{path}: {name} is {file[name]}, {file[name][...]}")
            check(("_FillValue" in file[name].ncattrs()) == (name in ("holes", "f32", "f64")), f"{path}: {file[name]}")
        check(same(numpy.array(file["holes"].getncattr("_FillValue")), "u2", 65535), f"{path}: {file['holes']}")
        for name, (attribute, kind, wanted) in FLAGS.items():
            check(same(file[name].getncattr(attribute), kind, wanted), f"{path}: {file[name]}")
    told = subprocess.run(["ncdump", path], capture_output=True, text=True).stdout
    for text in ("ushort u16(time, y, x) ;", "uint64 u64(time, y, x) ;", "uint still(y, x) ;", "18446744073709551615", "u64:flag_masks = 1ULL, 2ULL, 9223372036854775808ULL ;"):
        check(text in told, f"ncdump of {path} lacks {text}: {told[:3000]}")
    with xarray.open_dataset(path) as file:
        expect_dataset(path, file, steps)


def expect_dataset(path, file, steps):
    """xarray keeps all types, but for the field with missing=."""
    for name, (kind, wanted) in expected(steps).items():
        if name not in ("holes", "f32", "f64"):
            check(same(file[name].values, kind, wanted), f"{path}: {name} is {file[name].dtype} for xarray: {file[name].values}")
    holes, wanted = file["holes"].values, expected(steps)["holes"][1]
    check(numpy.array_equal(numpy.isnan(holes), wanted == 65535) and numpy.array_equal(holes[wanted != 65535], wanted[wanted != 65535]), f"{path}: holes {holes}")
    for name, (attribute, _, wanted) in FLAGS.items():
        if attribute != "valid_range":
            check(list(map(int, file[name].attrs[attribute])) == wanted and file[name].attrs["flag_meanings"] == "wet frozen broken", f"{path}: {file[name].attrs}")


def expect_store(path, steps):
    objects = image(path)
    for name, (kind, wanted) in expected(steps).items():
        told = json.loads(objects[f"{name}/zarr.json"])
        dtype = {"i": "int", "u": "uint", "f": "float"}[kind[0]] + str(8 * int(kind[1:]))
        check(told["data_type"] == dtype and ("_FillValue" in told["attributes"]) == (name in ("holes", "f32", "f64")), f"{path}: {told}")
    check(json.loads(objects["late/zarr.json"])["fill_value"] == 2**64 - 2 and json.loads(objects["u64/zarr.json"])["attributes"]["flag_masks"] == [1, 2, 2**63], f"{path}: late or u64")
    if find_spec("zarr"):
        with xarray.open_zarr(path, consolidated=False) as file:
            expect_dataset(path, file, steps)


for format, ending in FORMATS.items():
    fresh(format)
    path = f"{format}/a.{ending}"
    ran(path)
    (expect_store if format == "zarr" else expect_file)(path, 2)
    first = image(path)
    for ranks, servers in ((1, 0), (5, 2)):
        ran(path, ranks=ranks, servers=servers)
        check(image(path) == first, f"{path}: differs with {ranks} ranks, {servers} of them servers")
    for how, ranks, servers in (("read", 1, 0), ("read", 3, 1), ("wide", 2, 0)):
        ran(path, "", how, ranks=ranks, servers=servers)
    os.rename(f"{path}.trx", f"{path}.away")  # as a file of another program
    ran(path, "", "read")
    os.rename(f"{path}.away", f"{path}.trx")
    out = ran(path, "", "wrong", ranks=2, servers=0, code=1)
    for text in ("'i32' in", "are int32, which can be beyond int16", "are byte, which can be beyond int8", "are int8, which can be beyond uint64", "are real numbers, or packed ones, and not int64",
                 "'u16' at level 0", "gives integers, TR_F32, TR_F64 or texts, not type 7", "missing=-1 is no uint32"):
        check(text in out, f"{path}: no error says {text}: {out}")
    out = ran(path, "between=linear", "read", ranks=2, servers=0, code=1)
    check("and uint16 holds integers alone" in out, f"{path}: {out}")
    ran(f"{format}/o.{ending}", "base=2026-03-01 interval=2h", "operations", steps=5, ranks=1, servers=0)
    if format != "zarr":
        with netCDF4.Dataset(f"{format}/o.{ending}") as file:
            file.set_auto_mask(False)
            for name, kind, wanted in (("mean", "u2", [50015, 50035]), ("top", "u8", [2**63 + 4, 2**63 + 2]), ("low", "u1", [202, 204]), ("sum", "u4", [4000000003, 4000000007])):
                check(same(file[name][:, 1, 2], kind, wanted), f"{format}, {name}: {file[name]}, {file[name][:, 1, 2]}")

ENDS = ["Zürich", "", "abcdefghijkl", "two words", "blanks", "end", "東京"]


def shifted(by):
    return ENDS[by:] + ENDS[:by]


def expect_texts(path, file):
    """xarray decodes texts, whatever the format."""
    def told(values):
        return [each.decode() if isinstance(each, bytes) else str(each) for each in values.ravel()]
    for name, wanted in (("station_name", ENDS), ("remark", shifted(0) + shifted(1)), ("levels", 2 * (shifted(0) + shifted(1))), ("note", ["step 0", "step 1"]), ("late", ["", "abc"])):
        check(told(file[name].values) == wanted, f"{path}: {name} is {file[name].values} for xarray, {wanted} was put")
    check(file["station_name"].dims == ("station",) and file["station_name"].attrs == {"long_name": "name of the station"}, f"{path}: {file['station_name']}")
    check("station_name" in file["warmth"].coords, f"{path}: no coordinate of {file['warmth']}")


for format, ending in {"cdf1": "nc", **FORMATS}.items():
    path = f"{format}/t.{ending}"
    os.makedirs(format, exist_ok=True)
    options = f"base=2026-03-01 format={format}"
    ran(path, options, "texts")
    first = image(path)
    for ranks, servers in ((1, 0), (5, 2)):
        ran(path, options, "texts", ranks=ranks, servers=servers)
        check(image(path) == first, f"{path}: differs with {ranks} ranks, {servers} of them servers")
    if format == "zarr":
        told = json.loads(image(path)["station_name/zarr.json"])
        check(told["data_type"] == {"name": "null_terminated_bytes", "configuration": {"length_bytes": 12}} and told["dimension_names"] == ["station"], f"{path}: {told}")
        if find_spec("zarr"):
            with xarray.open_zarr(path, consolidated=False) as file:
                expect_texts(path, file)
    else:
        with xarray.open_dataset(path) as file:
            expect_texts(path, file)
        told = subprocess.run(["ncdump", path], capture_output=True, text=True).stdout
        for text in ("char station_name(station, string12) ;", "char note(time, string12) ;", 'station_name:_Encoding = "utf-8" ;', '"Z\\303\\274rich"', '"abcdefghijkl"', '"step 1"'):
            check(text in told, f"ncdump of {path} lacks {text}: {told[:3000]}")
    for how, ranks, servers in (("read-texts", 1, 0), ("read-texts", 4, 1), ("wide-texts", 2, 0)):
        ran(path, "", how, ranks=ranks, servers=servers)
    os.rename(f"{path}.trx", f"{path}.away")  # as a file of another program
    ran(path, "", "read-texts")
    os.rename(f"{path}.away", f"{path}.trx")

fresh("others")
if "netcdf4" in FORMATS:  # xarray writes texts as `string`
    path = f"others/strings.{FORMATS['netcdf4']}"
    with xarray.open_dataset(f"netcdf4/t.{FORMATS['netcdf4']}") as file:
        for name in file.variables:
            file[name].encoding.clear()
        file.to_netcdf(path, engine="netcdf4")
    check("string station_name(station)" in subprocess.run(["ncdump", "-h", path], capture_output=True, text=True).stdout, f"{path} has no strings")
    for how, ranks, servers in (("read-texts", 1, 0), ("read-texts", 4, 1), ("wide-texts", 2, 0)):
        ran(path, "", how, ranks=ranks, servers=servers)
    with netCDF4.Dataset(path, "a") as file:
        file.createDimension("many", 65537)
        file.createVariable("crowd", str, ("many",))
    ran(path, "", "read-texts")  # the others are read
out = ran("others/w.nc", "base=2026-03-01", "wrong-texts", ranks=2, servers=0, code=1)
for text in ("leave out accuracy=, relative_accuracy=, bits=, missing=, statistic= and operation=", "4096 is no element type", "8193 is no element type", "TR_TEXT(1) to TR_TEXT(4096)"):
    check(text in out, f"texts: no error says {text}: {out}")
if os.environ.get("TEST_GRIB") == "1":
    out = ran("others/t.grib2", "base=2026-03-01", "texts", ranks=2, servers=0, code=1)
    check("GRIB2 holds numbers, and no texts: write them to a NetCDF or Zarr file" in out, f"GRIB2: {out}")
for version in ("cdf1", "cdf2"):
    out = ran(f"others/{version}.nc", f"base=2026-03-01 format={version}", "old", code=1)
    check(f"variable 'u16' holds unsigned integers, which format={version} cannot hold: choose format=cdf5" in out, f"{version}: {out}")
if os.environ.get("TEST_ZARR") == "1":
    ran("others/r.nc", "base=2026-03-01 references=on")
    refs = json.loads(contents("others/r.nc.refs.json"))["refs"]
    told = {name: json.loads(refs[f"{name}/.zarray"])["dtype"] for name in ("u8", "u16", "u32", "u64", "i64")}
    check(told == {"u8": "|u1", "u16": ">u2", "u32": ">u4", "u64": ">u8", "i64": ">i8"}, f"references: {told}")
    check(json.loads(refs["late/.zarray"])["fill_value"] == 2**64 - 2 and json.loads(refs["u64/.zattrs"])["flag_masks"] == [1, 2, 2**63], f"references: {refs['late/.zarray']}")
finish()
