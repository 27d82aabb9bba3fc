# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Means and sums over dimensions with weights (weights=): the values of NumPy, the same bytes for any number of ranks and servers, runs that go on, and definitions and values that do not fit."""
import math
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from packages import needed  # noqa: E402

needed("netCDF4", "numpy")
import netCDF4  # noqa: E402
import numpy  # noqa: E402
from small_model import *  # noqa: E402,F403

FORMATS = written_formats("variables")
NY, NX, LEVELS = 6, 7, 3
Z, Y, X = numpy.mgrid[0:LEVELS, 0:NY, 0:NX]
AREA = numpy.where(Y[0] == 3, 0, 1.5 + numpy.cos(Y[0] * NX + X[0]))
AREA[1, 2] = 0  # missing
THICK = numpy.where(Y == 5, 0, 2 + numpy.sin(3.0 * ((Z * NY + Y) * NX + X)))
ACROSS, ROWS, LAYER = 1.0 / numpy.arange(1, NX + 1), 10.0 - numpy.arange(NY), numpy.array([1.0, 2.0, 5.0])


def written(path, options="", how="", first=0, steps=2, ranks=3, servers=1, code=0):
    ended, _, out = run(ranks, [MODEL, path, f"base=2026-03-01 {options}", str(first), str(steps), how], TAILRACE_SERVERS=str(servers))
    check(ended == code, f"{path}, {options}, {how}: the model ended with {ended}: {out}")
    return out


def joined(values, weights, axes, is_sum=False):
    """Returns sums of products, in C order of what is left, or these by the sums of weights; NaN where nothing counts."""
    weights = numpy.broadcast_to(weights, values.shape)
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    out = numpy.full([values.shape[axis] for axis in kept], numpy.nan)
    for place in numpy.ndindex(*out.shape):
        cut = [slice(None)] * values.ndim
        for axis, at in zip(kept, place):
            cut[axis] = at
        counted = [(float(w), float(v)) for w, v in zip(weights[tuple(cut)].ravel(), values[tuple(cut)].ravel()) if w > 0 and v == v]
        total = math.fsum(w for w, _ in counted)
        if counted:
            out[place] = math.fsum(w * v for w, v in counted) / (1 if is_sum else total)
    return out


def expected(hour):
    there = (Z * NY + Y) * NX + X
    gone = ((Y == 2) & (X > 1)) | ((X == 3) & (Z != 1))
    warm = (1000 * numpy.sin(there.astype(float) + hour)).astype(numpy.float32).astype(float)
    put = numpy.where(gone, -7.0, warm)
    warm = numpy.where(gone, numpy.nan, warm)
    counts = ((Y[0] * NX + X[0]) * 700 + hour).astype(numpy.int16).astype(float)
    column = numpy.ma.masked_invalid(warm).mean(axis=0).filled(numpy.nan).astype(numpy.float32).astype(float)  # between the levels and the rest the field has its type
    return {
        "mean_area": (("height",), joined(warm, AREA, (1, 2))), "sum_area": (("height",), joined(warm, AREA, (1, 2), True)),
        "zonal_area": (("height", "y"), joined(warm, AREA, (2,))), "open_zonal": (("height", "y"), joined(put, AREA, (2,))),
        "zonal_across": (("height", "y"), joined(warm, ACROSS, (2,))), "mean_rows": (("height",), joined(warm, ROWS[:, None], (1, 2))),
        "mean_thick": (("height",), joined(warm, THICK, (1, 2))), "column_thick": (("y", "x"), joined(warm, THICK, (0,))),
        "content": (("y", "x"), joined(warm, THICK, (0,), True)), "column_layer": (("y", "x"), joined(warm, LAYER[:, None, None], (0,))),
        "section": (("x",), joined(column, AREA, (0,))), "counts_across": (("y",), numpy.rint(joined(counts, ACROSS, (1,)))),
        "map_area": ((), joined(warm[0], AREA, (0, 1))),
    }


METHODS = {"mean_area": "y: x: mean (weighted by area)", "column_thick": "height: mean (weighted by thick)", "section": "height: mean y: mean (weighted by area)",
           "map_area": "latitude: longitude: mean (weighted by globe)", "counts_across": "x: mean (weighted by across)"}


def expect_file(path, hours):
    with netCDF4.Dataset(path) as file:
        for number, hour in enumerate(hours):
            for name, (dimensions, values) in expected(hour).items():
                variable = file.variables[name]
                found = numpy.ma.masked_array(variable[number])
                found = numpy.where(numpy.ma.getmaskarray(found), numpy.nan, found.data.astype(float))
                check(variable.dimensions == ("time", *dimensions) and numpy.allclose(found, values, rtol=2e-7, atol=1e-4, equal_nan=True),
                      f"{path}: {name}{variable.dimensions} at {hour} is {found}, not {values}")
        for name, methods in METHODS.items():
            check(file.variables[name].cell_methods == methods, f"{path}: {name}: {file.variables[name]}")
        fill = file.variables["open_zonal"]._FillValue
        file.set_auto_mask(False)
        check(numpy.isnan(file.variables["open_zonal"][0, :, 3]).all() and fill != -7, f"{path}: without missing= a mean without weights is NaN")


for format, ending in FORMATS.items():
    fresh(format)
    first = None
    for ranks, servers in scenes(format == "cdf5"):
        path = f"{format}/{ranks}-{servers}.{ending}"
        # The run that goes on writes the same file.
        parts = ((0, 1, ""), (1, 1, "existing=continue")) if ranks == 3 and format == "cdf5" else ((0, 2, ""),)
        for begin, steps, options in parts:
            written(path, f"format={format} {options}", "", begin, steps, ranks + servers, servers)
        first = image(path) if first is None else first
        check(image(path) == first, f"{path}: {ranks} ranks and {servers} servers write other bytes")
        if format != "zarr":
            expect_file(path, [0, 1])
    out = written(path, f"format={format} existing=continue", "other", 2, 1, ranks + servers, servers, code=1)
    check("cell_methods" in out and image(path) == first, f"{format}: a mean went on with other weights: {out}")

fresh("wrong")
written("wrong/means.nc", "format=cdf5 interval=2h", "", 1, 4)
with netCDF4.Dataset("wrong/means.nc") as file:
    check(file.variables["zonal_area"].cell_methods == "time: mean x: mean (weighted by area)", f"over time, then with weights: {file}")
out = written("wrong/a.nc", "format=cdf5", "wrong", code=1)
for text in ("weights=nothing", "weights=warm: the field has time", "give over=, too", "weights= change no maximum",
             "weights=rows: it has none of the dimensions of over=", "weights=thick: it has 6 x 7 (y, x) on 3 levels, and the field has 6 x 7 (y, x)", "weights=flag: the field is of text",
             "weights=area: it has one level, and over= has levels alone", "on 3 levels, and the field has 6 x 7 (y, x) on 2 levels", "it has levels, and over= has other dimensions, too",
             "weights=thick: it has levels=heightAboveGround:5,10,20, and the field has levels=heightAboveGround:5,10,21: give both the same levels",
             "weights=layer: it has levels=heightAboveGround:5,10,20, and the field has levels=heightAboveGround:20,10,5", "and the field has levels=depthBelowSea:5,10,20",
             "weights=across: it has 7 (x), and the field has 6 x 7:", "weights=area: it has 6 x 7 (y, x), and the field has 6 (y)"):
    check(text in out, f"no error says '{text}': {out}")
for servers in (0, 1):
    for how, text in (("negative", "and the value -0.5: weights are numbers from 0 on"), ("defined", "and the value -0.5: weights are numbers from 0 on"),
                      ("late", "define this field before tr_stream_put of 'thick'"), ("zero", "or with missing= if all weights are 0"),
                      ("unput", "field 'area' has time=none, and was not put before the first step")):
        out = written(f"wrong/{how}.nc", "format=cdf5", how, ranks=3 + servers, servers=servers, code=1)
        check(text in out, f"{how}: no error says '{text}': {out}")
finish()
