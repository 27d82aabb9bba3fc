# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""examples/slice writes what one process writes by the NetCDF library: the same dimensions, variables, types, attributes and values, for any
number of ranks and servers.
    slice_test.py SLICE TWIN"""
import os
import subprocess
import sys

try:
    import netCDF4
    import numpy
except ImportError:
    # The packages of the distribution belong to its own interpreter.
    if sys.executable == "/usr/bin/python3" or not os.path.exists("/usr/bin/python3"):
        raise
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

STEPS = "30"
# What the twin does not say: NetCDF's own fill value.
STATED = {"_FillValue"}


def described(path):
    """Dimensions, attributes of the file, and for each variable its type, dimensions, attributes and values."""
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        attributes = {name: file.getncattr(name) for name in file.ncattrs()}
        variables = {name: (str(each.dtype), each.dimensions, {key: each.getncattr(key) for key in each.ncattrs() if key not in STATED}, each[:])
                     for name, each in file.variables.items()}
        return {name: len(each) for name, each in file.dimensions.items()}, attributes, variables


fresh("slice")
done = subprocess.run([sys.argv[2], "slice/twin.nc", STEPS], capture_output=True, text=True)
check(done.returncode == 0, f"the twin: {done.stderr}")
dimensions, attributes, variables = described("slice/twin.nc")
for ranks, servers in ((1, 0), (3, 0), (3, 1), (5, 2)):
    path = f"slice/{ranks}-{servers}.nc"
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
    check(contents(path) == contents("slice/1-0.nc"), f"{path} differs from the file of one rank")
for command in (["ncdump", "-h"], ["cdo", "-s", "sinfo"]):
    shown = subprocess.run([*command, "slice/1-0.nc"], capture_output=True, text=True)
    check(shown.returncode == 0, f"{command}: {shown.stderr}")
finish()
