# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""An example writes what one process writes by the NetCDF library: the same dimensions, variables, types, attributes and values, for any
number of ranks and servers. With `restart` a run also stops, and another on other ranks goes on from its checkpoint to the same file.
    twin_test.py EXAMPLE TWIN STEPS [restart]"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from packages import needed  # noqa: E402

needed("netCDF4", "numpy")
import netCDF4  # noqa: E402
import numpy  # noqa: E402
from small_model import *  # noqa: E402,F403

NAME = os.path.basename(sys.argv[1]) + "-twin"
STEPS = sys.argv[3]


def is_stated(variable, key):
    """False for what a twin does not say: NetCDF's own fill value."""
    return key != "_FillValue" or variable.getncattr(key) != netCDF4.default_fillvals[variable.dtype.str[1:]]


def described(path):
    """Dimensions, attributes of the file, and for each variable its type, dimensions, attributes and values."""
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        attributes = {name: file.getncattr(name) for name in file.ncattrs()}
        variables = {name: (str(each.dtype), each.dimensions, {key: numpy.asarray(each.getncattr(key)).tolist() for key in each.ncattrs() if is_stated(each, key)}, each[:])
                     for name, each in file.variables.items()}
        return {name: len(each) for name, each in file.dimensions.items()}, attributes, variables


fresh(NAME)
done = subprocess.run([sys.argv[2], f"{NAME}/twin.nc", STEPS], capture_output=True, text=True)
check(done.returncode == 0, f"the twin: {done.stderr}")
dimensions, attributes, variables = described(f"{NAME}/twin.nc")
for ranks, servers in ((1, 0), (4, 0), (3, 1), (5, 2)):
    path = f"{NAME}/{ranks}-{servers}.nc"
    code, out, err = run(ranks, [sys.argv[1], path, STEPS], TAILRACE_SERVERS=str(servers))
    check(code == 0, f"{ranks} ranks, {servers} servers: {err}")
    if code != 0:
        continue
    mine = described(path)
    check(mine[0] == dimensions, f"{path}: dimensions {mine[0]}, expected {dimensions}")
    check(mine[1] == attributes, f"{path}: attributes {mine[1]}, expected {attributes}")
    check(sorted(mine[2]) == sorted(variables), f"{path}: variables {sorted(mine[2])}, expected {sorted(variables)}")
    for name in set(variables) & set(mine[2]):
        check(mine[2][name][:3] == variables[name][:3], f"{path}, {name}: {mine[2][name][:3]}, expected {variables[name][:3]}")
        check(numpy.array_equal(mine[2][name][3], variables[name][3]), f"{path}, {name}: other values")
    check(contents(path) == contents(f"{NAME}/1-0.nc"), f"{path} differs from the file of one rank")
if "restart" in sys.argv[4:]:
    # The run that stops has written a step behind its checkpoint, and is in the middle of a mean.
    path = f"{NAME}/restarted.nc"
    for ranks, servers, steps in ((4, 1, int(STEPS) // 2 + 2), (5, 0, STEPS)):
        code, out, err = run(ranks, [sys.argv[1], path, str(steps), f"{NAME}/checkpoint"], TAILRACE_SERVERS=str(servers))
        check(code == 0, f"to step {steps}: {err}")
        check(("going on" in err) == (steps == STEPS), f"to step {steps}: {err}")
    check(contents(path) == contents(f"{NAME}/1-0.nc"), f"{path} differs from the file of a run that did not stop")
for command in (["ncdump", "-h"], ["cdo", "-s", "sinfo"]):
    shown = subprocess.run([*command, f"{NAME}/1-0.nc"], capture_output=True, text=True)
    check(shown.returncode == 0, f"{command}: {shown.stderr}")
finish()
