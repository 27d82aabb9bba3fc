# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""An example writes what one process writes by the NetCDF library: the same dimensions, variables, types, attributes and values, for any
number of ranks and servers. The files keep the rules of CF and UGRID. With `restart` a run also stops, and another on other ranks goes on
from its checkpoint to the same file. A word such as `+casts` says that NAME_casts.nc is written beside NAME.nc, and
`nc4` that the example writes NetCDF-4 if the name of the file ends so.
    twin_test.py EXAMPLE TWIN STEPS [restart] [nc4] [+FILE...]"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from packages import needed  # noqa: E402

needed("netCDF4", "numpy", "xarray")
import netCDF4  # noqa: E402
import numpy  # noqa: E402
import xarray  # noqa: E402
from cf_rules import Units, broken_rules  # noqa: E402
from small_model import *  # noqa: E402,F403

NAME = os.path.basename(sys.argv[1]) + "-twin"
STEPS = sys.argv[3]


def is_stated(variable, key):
    """False for what a twin does not say: NetCDF's own fill value."""
    return key != "_FillValue" or variable.getncattr(key) != netCDF4.default_fillvals[variable.dtype.str[1:]]


def typed(value):
    """An attribute's type, and its values as a list, or its text."""
    return (type(value), value) if isinstance(value, str) else (str(numpy.asarray(value).dtype), numpy.asarray(value).tolist())


def described(path):
    """Dimensions, attributes of the file, and for each variable its type, dimensions, attributes and values."""
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        attributes = {name: file.getncattr(name) for name in file.ncattrs()}
        variables = {name: (str(each.dtype), each.dimensions, {key: typed(each.getncattr(key)) for key in each.ncattrs() if is_stated(each, key)}, each[:])
                     for name, each in file.variables.items()}
        return {name: len(each) for name, each in file.dimensions.items()}, attributes, variables


fresh(NAME)
done = subprocess.run([sys.argv[2], f"{NAME}/twin.nc", STEPS], capture_output=True, text=True)
check(done.returncode == 0, f"the twin: {done.stderr}")
FILES = ["", *(word.replace("+", "_") for word in sys.argv[4:] if word.startswith("+"))]
OWN_UNITS = {"plasma-twin": ["Alfven times"]}.get(NAME, [])  # of a model, which UDUNITS does not know
SPOILT = {"coordinates": "nowhere", "bounds": "time", "cell_measures": "area: time", "flag_values": 0.5, "start_index": numpy.int32(1), "cf_role": "another",
          "topology_dimension": numpy.int32(3), "node_coordinates": "node_lon", "location": "edge", "units": "apples", "axis": "U", "mesh": "time",
          "cell_methods": "mean", "positive": "left"}
if Units().library is None:
    del SPOILT["units"]
twins = {each: described(f"{NAME}/twin{each}.nc") for each in FILES}


def compare(path, each):
    dimensions, attributes, variables = twins[each]
    mine = described(path)
    check(mine[0] == dimensions, f"{path}: dimensions {mine[0]}, expected {dimensions}")
    check(mine[1] == attributes, f"{path}: attributes {mine[1]}, expected {attributes}")
    check(sorted(mine[2]) == sorted(variables), f"{path}: variables {sorted(mine[2])}, expected {sorted(variables)}")
    for name in set(variables) & set(mine[2]):
        check(mine[2][name][:3] == variables[name][:3], f"{path}, {name}: {mine[2][name][:3]}, expected {variables[name][:3]}")
        check(numpy.array_equal(mine[2][name][3], variables[name][3]), f"{path}, {name}: other values")
    check(path.endswith("nc4") or contents(path) == contents(f"{NAME}/1-0{each}.nc"), f"{path} differs from the file of one rank")


for ranks, servers in ((1, 0), (4, 0), (3, 1), (5, 2)):
    path = f"{NAME}/{ranks}-{servers}"
    code, out, err = run(ranks, [sys.argv[1], f"{path}.nc", STEPS], TAILRACE_SERVERS=str(servers))
    check(code == 0, f"{ranks} ranks, {servers} servers: {err}")
    for each in FILES if code == 0 else []:
        compare(f"{path}{each}.nc", each)
if "nc4" in sys.argv[4:]:
    code, out, err = run(3, [sys.argv[1], f"{NAME}/hdf5.nc4", STEPS], TAILRACE_SERVERS="1")
    check(code == 0, f"NetCDF-4: {err}")
    for each in FILES if code == 0 else []:
        compare(f"{NAME}/hdf5{each}.nc4", each)
if "restart" in sys.argv[4:]:
    # The run that stops has written a step behind its checkpoint, and is in the middle of a mean.
    path = f"{NAME}/restarted.nc"
    for ranks, servers, steps in ((4, 1, int(STEPS) // 2 + 2), (5, 0, STEPS)):
        code, out, err = run(ranks, [sys.argv[1], path, str(steps), f"{NAME}/checkpoint"], TAILRACE_SERVERS=str(servers))
        check(code == 0, f"to step {steps}: {err}")
        check(("going on" in err) == (steps == STEPS), f"to step {steps}: {err}")
    check(contents(path) == contents(f"{NAME}/1-0.nc"), f"{path} differs from the file of a run that did not stop")
# The rules see what is wrong.
for each in FILES:
    with netCDF4.Dataset(f"{NAME}/twin{each}.nc") as file:
        wrong = [(name, key, value) for key, value in SPOILT.items() for name in list(file.variables) if key in file[name].ncattrs()]
    for name, key, value in wrong:
        shutil.copy(f"{NAME}/twin{each}.nc", f"{NAME}/spoilt.nc")
        with netCDF4.Dataset(f"{NAME}/spoilt.nc", "a") as file:
            file[name].setncattr(key, value)
        check(broken_rules(f"{NAME}/spoilt.nc", OWN_UNITS), f"twin{each}.nc: {key} of {name} may be {value}")
for path in (f"{NAME}/1-0{each}.nc" for each in FILES):
    for text in broken_rules(path, OWN_UNITS):
        check(False, f"{path}: {text}")
    with netCDF4.Dataset(path) as file:
        moves = getattr(file, "featureType", "") in ("profile", "trajectory")  # cdo reads none whose place is one of each step
    for command in (["ncdump", "-h"], *([] if moves else [["cdo", "-s", "sinfo"]])):
        shown = subprocess.run([*command, path], capture_output=True, text=True)
        check(shown.returncode == 0, f"{command}: {shown.stderr}")
    with xarray.open_dataset(path, decode_times=not OWN_UNITS) as opened, netCDF4.Dataset(path) as file:
        for name, variable in file.variables.items():
            named = getattr(variable, "coordinates", "").split()
            check(all(each in opened[name].coords for each in named), f"{path}: xarray gives {name} the coordinates {list(opened[name].coords)}")
finish()
