# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Streams without any field that has time, as for a file that describes a grid: the file is written when the stream is closed, has no time, is the same for any number of ranks and servers, and a run that goes on leaves it."""
import json
import os
import sys
from importlib.util import find_spec

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from packages import needed  # noqa: E402

needed("netCDF4", "numpy", "xarray")
import netCDF4  # noqa: E402
import numpy  # noqa: E402
import xarray  # noqa: E402
from small_model import *  # noqa: E402,F403

FORMATS = {**written_formats("variables"), "cdf1": "nc"}
NY, NX, LEVELS = 6, 7, 3
HERE = numpy.arange(NY * NX).reshape(NY, NX)
MASK, DEPTH = (HERE // NX + HERE % NX) % 2, numpy.where(HERE == 5, -1, HERE * 10.0)


def written(path, options="", how="alone", steps=0, ranks=3, servers=1, code=0):
    ended, _, out = run(ranks, [MODEL, path, f"base=2026-03-01 {options}", "0", str(steps), how], TAILRACE_SERVERS=str(servers))
    check(ended != 0 if code is None else ended == code, f"{path}, {options}, {how}: the model ended with {ended}: {out}")
    return out


def identity(path):
    """What changes if somebody writes the file anew."""
    first = os.stat(path if os.path.isfile(path) else f"{path}/mask/c.0.0")
    return first.st_ino, first.st_mtime_ns


def expect_variables(path, variables):
    check(set(variables) == {"mask", "depth", "metric", "height"}, f"{path} has {list(variables)}")
    for name, values in (("mask", MASK), ("depth", DEPTH), ("metric", [HERE + 1000.0 * level for level in range(LEVELS)])):
        check(numpy.array_equal(variables[name][:], values), f"{path}: {name} is {variables[name][:]}")


def expect_file(path):
    if os.path.isdir(path):
        told = json.loads(contents(f"{path}/zarr.json"))["consolidated_metadata"]["metadata"]
        check(set(told) == {"mask", "depth", "metric", "height"} and told["depth"]["shape"] == [NY, NX], f"{path}: {told}")
        if find_spec("zarr"):
            with xarray.open_zarr(path, mask_and_scale=False) as file:
                expect_variables(path, file.variables)
        return
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        expect_variables(path, file.variables)
        check({each: len(file.dimensions[each]) for each in file.dimensions} == {"y": NY, "x": NX, "height": LEVELS}, f"{path}: {file.dimensions}")
        check(not any(each.isunlimited() for each in file.dimensions.values()) and file.variables["depth"].units == "m", f"{path}: {file}")
    with xarray.open_dataset(path) as file:
        check(set(file.sizes) == {"y", "x", "height"} and "time" not in file.variables, f"{path}: xarray reads {file}")
        file.to_netcdf(f"{path}.copy")


for format, ending in FORMATS.items():
    fresh("alone")
    options, path = f"format={format}", f"alone/grid.{ending}"
    check("unfinished" not in written(path, options) and os.path.exists(path), f"{path} was not written")
    expect_file(path)
    first = image(path)
    for ranks, servers in scenes(format == "cdf5"):
        fresh("alone")
        written(path, options, ranks=ranks + servers, servers=servers)
        check(image(path) == first, f"{path}: differs with {ranks} compute ranks and {servers} servers")
    # Steps in which nothing can be put change nothing.
    fresh("alone")
    written(path, f"{options} empty_step=keep", steps=2)
    check(image(path) == first, f"{path}: differs behind empty steps")
    for servers in (0, 1) if format == "cdf5" else (1,):
        written(path, "", "aloneread", ranks=2 + servers, servers=servers)
    # Who goes on leaves the file, on another day, too; who has other values is refused, and who begins anew writes it.
    before = identity(path)
    written(path, f"{options} existing=continue")
    ended, _, out = run(3, [MODEL, path, f"base=2026-03-02 {options} existing=continue", "0", "0", "alone"], TAILRACE_SERVERS="1")
    check(ended == 0 and identity(path) == before and image(path) == first, f"{path}: was written anew by a run that goes on: {out}")
    for servers in (0, 2) if format == "cdf5" else (1,):
        out = written(path, f"{options} existing=continue", "aloneother", ranks=2 + servers, servers=servers, code=1)
        check("depth" in out and "other values" in out and image(path) == first, f"{path}: another depth: {out}")
    out = written(path, f"{options} existing=fail", code=1)
    check("exists already (existing=fail)" in out and identity(path) == before, f"{path}: {out}")
    written(path, options, "aloneother")
    check(image(path) != first, f"{path}: was not replaced")
    # A field that was not put is an error of the close, and no file is there.
    for servers in (0, 1) if format == "cdf5" else (1,):
        fresh("alone")
        out = written(path, options, "aloneunput", ranks=2 + servers, servers=servers, code=1)
        check("field 'depth' has time=none, and was not put" in out and not os.path.exists(path), f"{path}: without a depth: {out}")
    if format == "cdf1":
        continue
    # A run that is killed before the close, the one behind its checkpoint that writes the file, and a third one that leaves it.
    fresh("alone")
    written(path, options, "alonesaved", code=None)
    check(not os.path.exists(path), f"{path} was there before the close")
    written(path, options, "alonesaved")
    expect_file(path)
    before = identity(path)
    written(path, options, "alonesaved", servers=0)
    check(identity(path) == before and image(path) == first, f"{path}: was written anew behind a checkpoint")
    out = written(path, options, "alonesavedother", code=1)
    check("depth" in out and "other values" in out and image(path) == first, f"{path}: another depth behind a checkpoint: {out}")

fresh("alone")
out = written("alone/{lead:03h}.nc", "format=cdf5")
check("fields without time need a file whose name has no time" in out and not [name for name in os.listdir("alone") if name.endswith(".nc")], f"a name with a time: {out}")
if os.environ.get("TEST_JSON") == "1":
    written("alone/told.nc", "format=cdf5 references=on ready=.ready")
    lines = [json.loads(line) for line in contents("alone/manifest.jsonl").splitlines()]
    check(len(lines) == 1 and os.path.exists("alone/told.nc.ready"), f"a finished file is told of: {lines}")
    refs = json.loads(contents("alone/told.nc.refs.json"))["refs"]
    check("time/.zarray" not in refs and json.loads(refs["depth/.zarray"])["shape"] == [NY, NX], f"references tell of {sorted(refs)}")
finish()
