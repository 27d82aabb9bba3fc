# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Files and stores as the readers of PyPI have them: zarr, xarray, kerchunk, h5netcdf and compliance-checker. Distributions have none of
these, or old ones: TAILRACE_TEST_PYTHON names an interpreter that has them, as

    python3 -m venv /tmp/readers && /tmp/readers/bin/pip install zarr xarray kerchunk fsspec h5netcdf h5py compliance-checker
    TAILRACE_TEST_PYTHON=/tmp/readers/bin/python ctest --preset release-openmpi -R python_readers

Each reader that is missing is told of, and without any the test is skipped."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

PYTHON = os.environ.pop("TAILRACE_TEST_PYTHON", "") or sys.executable  # the library would take it for a misspelt setting
ATTRIBUTES = "conventions=weather attributes='title=\"a small model\", institution=nobody, history=\"made by a test\", references=none, source=model, comment=none'"
OPENED = f"""
import sys, numpy, xarray
def check(data):
    assert data.sizes["time"] == 3 and str(data.time.values[1]).startswith("2026-03-01T01:00:00"), data
    level, place = numpy.meshgrid(range({LEVELS}), range({NY} * {NX}), indexing="ij")
    expected = 100 * numpy.sin(0.05 * place + 0.3 * level + 0.2) + place - 10.0 * level
    for name, tolerance in (("t", 1e-12), ("u", 1e-5)):
        assert numpy.allclose(data[name].isel(time=2).values.reshape(expected.shape), expected, rtol=tolerance, atol=100 * tolerance), name
    assert data.plev.values.tolist() == [1000, 850, 500] and data.attrs["title"] == "a small model", data
"""
# What a reader imports, the ending of what it reads, and what it does with it.
READERS = {
    "zarr": ("zarr, xarray; assert zarr.__version__ >= '3'", "zarr", OPENED + """
import zarr
group = zarr.open_group(sys.argv[1], mode="r")
assert group["t"].shape[0] == 3 and str(group["t"].dtype) == "float64", group["t"].info
with xarray.open_zarr(sys.argv[1]) as data:
    check(data)
"""),
    "kerchunk": ("kerchunk.codecs, fsspec, zarr, xarray", "nc", OPENED + """
with xarray.open_dataset(sys.argv[1] + ".refs.json", engine="kerchunk") as data:
    check(data)
"""),
    "h5netcdf": ("h5netcdf, h5py, xarray", "nc4", OPENED + """
import h5netcdf
with h5netcdf.File(sys.argv[1], "r") as file:
    assert file.variables["t"].shape == (3, 3, 11, 13), file
with xarray.open_dataset(sys.argv[1], engine="h5netcdf") as data:
    check(data)
"""),
    "compliance-checker": ("compliance_checker, netCDF4", "nc", """
import sys
from compliance_checker.runner import CheckSuite, ComplianceChecker
CheckSuite.load_all_available_checkers()
passed, failed = ComplianceChecker.run_checker(sys.argv[1], ["cf:1.8"], 0, "strict")
assert passed and not failed, "it is not as CF 1.8 asks"
"""),
}


def runs(code, *arguments_of_code):
    return subprocess.run([PYTHON, "-c", code, *arguments_of_code], capture_output=True, text=True, env=environment(), timeout=LIMIT)


def written(ending):
    """A file or a store of three steps, or None if this build lacks its format."""
    path = f"{fresh('as-' + ending)}/fc.{ending}"
    references = " references=on" if ending == "nc" else ""
    code, _, err = run(2, arguments(path, ATTRIBUTES + references, 2), TAILRACE_SERVERS="0")
    if "was built without" in err or "this build" in err:
        print(f".{ending}: {err.strip().splitlines()[-1]}", flush=True)
        return None
    return path if check(code == 0, f".{ending}: {code}, {err}") else None


read, paths = 0, {}
for name, (imports, ending, code) in READERS.items():
    found = runs(f"import {imports}")
    if found.returncode != 0:
        print(f"{name}: not read by {PYTHON}: {found.stderr.strip().splitlines()[-1]}", flush=True)
        continue
    if ending not in paths:
        paths[ending] = written(ending)
    if paths[ending] is not None:
        done = runs(code, paths[ending])
        check(done.returncode == 0, f"{name}: {done.stdout[-4000:]}{done.stderr[-4000:]}")
        read += 1
if read == 0 and not failures:
    print("no reader is there: set TAILRACE_TEST_PYTHON to a Python that has some of them (the head of this test says how)", flush=True)
    sys.exit(77)
print(f"{read} of {len(READERS)} readers", flush=True)
finish()
