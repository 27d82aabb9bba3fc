# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Coordinates that a program gives for grids no keys describe: the same files for any number of ranks and servers, read by ncdump, cdo and
netCDF4; coordinates larger than a lane; refused values; runs that go on with other coordinates."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from packages import needed  # noqa: E402

needed("netCDF4", "numpy")
import netCDF4  # noqa: E402
import numpy  # noqa: E402
from small_model import *  # noqa: E402,F403

ENDINGS = written_formats("variables")
ROWS, COLUMNS = 9, 14


def model(pattern, options="", kind="curvilinear", rows=ROWS, columns=COLUMNS, corners=4, shift=0, first=0, last=1, *bad):
    return [MODEL, pattern, options, kind, *map(str, (rows, columns, corners, shift, first, last, *bad))]


def places(rows=ROWS, columns=COLUMNS, shift=0):
    """(latitudes, longitudes) as the model has them."""
    j, i = numpy.indices((rows, columns))
    return -60 + 120.0 * j / rows + 0.5 * numpy.sin(0.1 * i), shift - 170 + 340.0 * i / columns + 0.001 * j


def corners_of(latitudes, longitudes):
    return (numpy.stack([latitudes + d for d in (-0.25, -0.25, 0.25, 0.25)], -1),
            numpy.stack([longitudes + d for d in (-0.25, 0.25, 0.25, -0.25)], -1))


def bytes_of(path):
    """All bytes of a file, or of a store with its names."""
    if not os.path.isdir(path):
        return contents(path)
    found = {}
    for directory, _, names in os.walk(path):
        found.update({os.path.relpath(f"{directory}/{name}", path): contents(f"{directory}/{name}") for name in names})
    return found


def variables(path):
    """The coordinates of a file or a store, and the attributes of its fields."""
    if not os.path.isdir(path):
        with netCDF4.Dataset(path) as file:
            values = {name: numpy.array(file[name][:]) for name in ("lat", "lon", "lat_bnds", "lon_bnds")}
            return values, {name: (file[name].coordinates, file[name].dimensions) for name in ("thetao", "zos")}, file["lat"].bounds
    with open(f"{path}/zarr.json", encoding="utf-8") as file:
        arrays = json.load(file)["consolidated_metadata"]["metadata"]
    values = {}
    for name in ("lat", "lon", "lat_bnds", "lon_bnds"):
        chunk = f"{path}/{name}/c" + ".0" * len(arrays[name]["shape"])
        values[name] = numpy.fromfile(chunk, ">f8").reshape(arrays[name]["shape"])
    fields = {name: (arrays[name]["attributes"]["coordinates"], tuple(arrays[name]["dimension_names"])) for name in ("thetao", "zos")}
    return values, fields, arrays["lat"]["attributes"]["bounds"]


def holds(path, kind, rows=ROWS, columns=COLUMNS, shift=0):
    values, fields, bounds = variables(path)
    latitudes, longitudes = places(rows, columns, shift)
    if kind == "cells":
        latitudes, longitudes = latitudes.ravel(), longitudes.ravel()
    grid = ("cell",) if kind == "cells" else ("y", "x")
    expected = dict(zip(("lat", "lon", "lat_bnds", "lon_bnds"), (latitudes, longitudes, *corners_of(latitudes, longitudes))))
    same = all(values[name].shape == expected[name].shape and numpy.allclose(values[name], expected[name], rtol=0, atol=1e-9) for name in expected)
    return (check(same, f"{path}: other values of coordinates") and
            check(fields == {"thetao": ("lat lon", ("time", "depth", *grid)), "zos": ("lat lon", ("time", *grid))}, f"{path}: {fields}") and
            check(bounds == "lat_bnds", f"{path}: bounds {bounds}"))


def any_number_of_servers(format, kind):
    directory = fresh(f"servers-{format}-{kind}")
    files = []
    for ranks, servers in scenes(kind == "curvilinear"):
        path = f"{directory}/r{ranks}s{servers}.{ENDINGS[format]}"
        code, _, err = run(ranks + servers, model(path, kind=kind), TAILRACE_SERVERS=str(servers))
        check(code == 0, f"{format}, {kind}, {ranks} ranks, {servers} servers: {code}, {err}")
        holds(path, kind)
        files.append(bytes_of(path))
    check(all(file == files[0] for file in files), f"{format}, {kind}: the bytes depend on ranks or servers")
    return path


def without_bounds(format):
    path = f"{fresh(f'without-{format}')}/fc.{ENDINGS[format]}"
    code, _, err = run(3, model(path, corners=0), TAILRACE_SERVERS="1")
    check(code == 0, f"{format} without bounds: {code}, {err}")
    if format != "zarr":
        with netCDF4.Dataset(path) as file:
            check("lat_bnds" not in file.variables and "vertices" not in file.dimensions and not hasattr(file["lat"], "bounds"), "bounds are there")
            check(numpy.allclose(file["lon"][:], places()[1]), "longitudes without bounds")


def cdo_knows_the_grid(path, kind):
    shown = subprocess.run(["cdo", "-s", "griddes", path], capture_output=True, text=True)
    expected = "unstructured" if kind == "cells" else "curvilinear"
    check(f"gridtype  = {expected}" in shown.stdout and "xbounds" in shown.stdout and "ybounds" in shown.stdout, f"cdo: {shown.stdout[:800]} {shown.stderr}")


def larger_than_a_lane(format, servers):
    """8 MB of coordinates through lanes of 2 MiB or less."""
    path = f"{fresh(f'large-{format}-s{servers}')}/fc.{ENDINGS[format]}"
    rows, columns = 300, 340
    code, _, err = run(2 + servers, model(path, rows=rows, columns=columns), limit=100, TAILRACE_SERVERS=str(servers), TAILRACE_STAGING="12MiB")
    check(code == 0, f"{format}, {servers} servers, large: {code}, {err}")
    holds(path, "curvilinear", rows, columns)


def bad_values_are_named():
    path = f"{fresh('bad')}/fc.nc"
    for servers in (0, 1):
        point = 5 * COLUMNS + 3
        code, _, err = run(3 + servers, model(path, "", "curvilinear", ROWS, COLUMNS, 4, 0, 0, 1, point), TAILRACE_SERVERS=str(servers))
        check(code == 1 and f"index {point}: the latitude is 91, and must lie from -90 to 90" in err and "rank " in err, f"a bad latitude: {code}, {err}")
    code, _, err = run(2, model(path, corners=2))
    check(code == 1 and "cells of 2 corners" in err, f"two corners: {code}, {err}")
    code, _, err = run(2, model(path, rows=500, columns=500), TAILRACE_MEMORY="60MiB", TAILRACE_STAGING="16MiB")
    check(code == 1 and "the coordinates take 19.1MiB" in err and "TAILRACE_MEMORY" in err, f"too little memory: {code}, {err}")


    for ranks in (1, 3):
        code, _, err = run(ranks, model(path, kind="unsaid", corners=0))
        check(code == 1 and "bounds are given, and 0 corners" in err, f"bounds without corners: {code}, {err}")
        code, _, err = run(ranks, model(path, kind="huge"))
        check(code == 1 and "more than any memory has" in err, f"more than 2^63 bytes: {code}, {err}")


def layouts_and_streams_share_the_budget():
    """19.1 MiB for each of two layouts, and twice that for the stream, beside 16 MiB of staging."""
    path = f"{fresh('budget')}/fc.nc"
    arguments = {"rows": 500, "columns": 500}
    code, _, err = run(3, model(path, **arguments), TAILRACE_SERVERS="1", TAILRACE_MEMORY="84MiB", TAILRACE_STAGING="16MiB")
    check(code == 1 and "tr_stream_define" in err and "take 38.1MiB for the heads of its files" in err and "coordinates 38.1MiB" in err,
          f"a stream beyond the budget: {code}, {err}")
    code, _, err = run(3, model(path, **arguments), TAILRACE_SERVERS="1", TAILRACE_MEMORY="94MiB", TAILRACE_STAGING="16MiB", TAILRACE_LOG="info")
    check(code == 0 and "coordinates 76.3MiB" in err, f"a stream within the budget: {code}, {err}")


def goes_on_only_with_its_own(format):
    path = f"{fresh(f'goes-on-{format}')}/fc.{ENDINGS[format]}"
    check(run(2, model(path, last=1))[0] == 0, f"{format}: the first run")
    before = bytes_of(path)
    for what, arguments in (("longitudes", {"shift": 1}), ("bounds", {"corners": 0})):
        code, _, err = run(2, model(path, "existing=continue", first=2, last=3, **arguments))
        check(code == 1 and ("other values in the file" in err or "is in the file" in err or "another grid" in err), f"{format}, other {what}: {code}, {err}")
        check(bytes_of(path) == before, f"{format}, other {what}: a refused continuation touched the file")
    code, _, err = run(3, model(path, "existing=continue", first=2, last=3), TAILRACE_SERVERS="1")
    check(code == 0 and "keeps" not in err, f"{format}: the same coordinates: {code}, {err}")
    holds(path, "curvilinear")
    whole = path.replace("/fc.", "/truth.")
    check(run(1, model(whole, last=3))[0] == 0 and bytes_of(whole) == bytes_of(path), f"{format}: the bytes of two runs and of one differ")


def references_have_them(format):
    path = f"{fresh(f'references-{format}')}/fc.{'nc' if format == 'cdf5' else format}"
    options = "references=on" + ("" if format == "cdf5" else f" format={format}")
    code, _, err = run(4, model(path, options, "cells"), TAILRACE_SERVERS="2")
    check(code == 0, f"references, {format}: {code}, {err}")
    import base64
    with open(path + ".refs.json", encoding="utf-8") as file:
        refs = json.load(file)["refs"]
    values = numpy.frombuffer(base64.b64decode(refs["lat/0"][len("base64:"):]), ">f8")
    check(numpy.allclose(values, places()[0].ravel()), f"references, {format}: latitudes")
    check(json.loads(refs["thetao/.zattrs"])["coordinates"] == "lat lon", f"references, {format}: {refs['thetao/.zattrs']}")


for name in ENDINGS:
    for grid in ("curvilinear", "cells", "replicated"):
        file_with_grid = any_number_of_servers(name, grid)
        if name != "zarr":
            cdo_knows_the_grid(file_with_grid, grid)
    without_bounds(name)
    for number in (0, 1, 2):
        larger_than_a_lane(name, number)
    goes_on_only_with_its_own(name)
bad_values_are_named()
layouts_and_streams_share_the_budget()
if os.environ.get("TEST_JSON") == "1":
    references_have_them("cdf5")
    references_have_them("raw")
finish()
