# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""accuracy=auto: files as netCDF4 and ecCodes read them, the same after a run that went on with other ranks and servers; what the report says; runs that ask for another share."""
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

NY, NX, STEPS = 60, 80, 4


def written(path, options="", first=0, end=STEPS, how="accuracy=auto", ranks=3, servers=1, code=0, **settings):
    ended, _, err = run(ranks, [MODEL, path, f"base=2026-03-01 {options}", str(first), str(end), how], TAILRACE_SERVERS=str(servers), **settings)
    check(ended == code, f"{path}, {options}, {how}: the model ended with {ended}: {err}")
    return err


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def reported(report, field):
    """What the report says of a field of its only stream."""
    with open(report, encoding="utf-8") as file:
        (stream,) = json.load(file)["streams"]
    return next(each for each in stream["accuracy"] if each["field"] == field)


def netcdf4_keeps_what_the_report_says(directory):
    whole, path, report = f"{directory}/whole.nc4", f"{directory}/auto.nc4", f"{directory}/report.json"
    written(whole, how="")
    settings = {"TAILRACE_REPORT": report} if os.environ["TEST_JSON"] == "1" else {}
    written(path, **settings)
    with netCDF4.Dataset(whole) as before, netCDF4.Dataset(path) as file:
        given, kept = before["t"][:].data, file["t"][:].data
        check(file["t"].quantization_information == 0.99 and "quantization_information" not in before["t"].ncattrs(), f"{file['t']}")
        check(numpy.array_equal(before["u"][:], file["u"][:]), "noise alone keeps all bits")
        error = numpy.abs(kept - given).max()
        check(0.01 < error < 1, f"rounding is off by {error}, and the noise has 0.5")
        numbers = [23 - min((word & -word).bit_length() - 1 for word in step.view(numpy.uint32).ravel().tolist()) for step in kept]
    if settings:
        told = reported(report, "t")
        check(told["information"] == 0.99 and told["records"] == STEPS and told["whole"] == 0, f"{told}")
        check([told["kept_bits"][which] for which in ("min", "max")] == [min(numbers), max(numbers)], f"{told}, and the file has {numbers}")
        check(0.99 <= told["least_information"] <= 1 and 0 <= told["most_left_out"] < 0.01, f"{told}")
        noise = reported(report, "u")
        check(noise["whole"] == STEPS and "kept_bits" not in noise, f"{noise}")
    check(os.path.getsize(path) < 0.8 * os.path.getsize(whole), "the file does not get smaller")
    return path


def a_run_goes_on_with_the_same_share(directory, path):
    again = f"{directory}/again.nc4"
    written(again, end=2, ranks=2, servers=0)
    written(again, "existing=continue", first=2, ranks=5, servers=2)
    check(bytes_of(again) == bytes_of(path), "a run that went on has other bytes")
    for how in ("accuracy=auto information=0.9", "accuracy=0.01", ""):
        err = written(again, "existing=continue", first=4, end=5, how=how, code=1)
        check("another accuracy" in err or "quantization_information" in err, f"{how}: {err}")
    check(bytes_of(again) == bytes_of(path), "a run that was refused has changed the file")


def classic_netcdf_keeps_all(directory):
    auto, whole = f"{directory}/auto.nc", f"{directory}/whole.nc"
    written(auto, ranks=2)
    written(whole, how="", ranks=1, servers=0)
    check(bytes_of(auto) == bytes_of(whole), "classic NetCDF has other values")


def eccodes_reads_the_bits_of_the_report(directory):
    for packing in ("simple", "ccsds"):
        path, report = f"{directory}/{packing}.grib2", f"{directory}/{packing}.json"
        written(path, f"packing={packing}", TAILRACE_REPORT=report)
        listed = subprocess.run(["grib_get", "-w", "shortName=t", "-p", "bitsPerValue", path], capture_output=True, text=True, timeout=LIMIT)
        numbers = [int(word) for word in listed.stdout.split()]
        told = reported(report, "t")
        check([told["kept_bits"][which] for which in ("min", "max")] == [min(numbers), max(numbers)] and len(numbers) == STEPS, f"{told}: {numbers}")
    before = os.path.getsize(path)
    written(path, "packing=ccsds existing=continue", first=STEPS, end=STEPS + 1, how="accuracy=auto information=0.9")
    check(os.path.getsize(path) > before, "a run that goes on in GRIB2 may ask for another share")


def what_does_not_fit_is_refused(directory):
    for how, words in (("information=0.9", "give accuracy=auto"), ("accuracy=auto information=2", "above 0 and at most 1"),
                       ("accuracy=auto bits=12", "exclude each other")):
        err = written(f"{directory}/refused.nc4", how=how, code=1)
        check(words in err, f"{how}: {err}")


here = os.path.abspath(fresh("precision-files"))
if os.environ["TEST_HDF5"] == "1":
    a_run_goes_on_with_the_same_share(here, netcdf4_keeps_what_the_report_says(here))
classic_netcdf_keeps_all(here)
what_does_not_fit_is_refused(here)
if os.environ["TEST_GRIB"] == "1" and os.environ["TEST_JSON"] == "1":
    eccodes_reads_the_bits_of_the_report(here)
finish()
