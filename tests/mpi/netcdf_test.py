# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""NetCDF files, classic ones and NetCDF-4, as others read them: ncdump, cdo, the netCDF4 package and xarray. Values of every number of servers,
files that are read while they are written, and jobs that are killed and continued."""
import math
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from packages import needed  # noqa: E402

needed("netCDF4", "numpy", "xarray")
import netCDF4  # noqa: E402
import numpy  # noqa: E402
import xarray  # noqa: E402
from killed_job import Job  # noqa: E402
from small_model import *  # noqa: E402,F403

OPTIONS = 'conventions=weather attributes=\'title="a small model", institution=nobody\''
CLOSED_BYTES = 40  # of the record that closes an index (docs/formats/index.md)
KINDS = {"cdf5": ("cdf5", "NETCDF3_64BIT_DATA"), "cdf2": ("64-bit offset", "NETCDF3_64BIT_OFFSET"), "cdf1": ("classic", "NETCDF3_CLASSIC"),
         "netcdf4": ("netCDF-4", "NETCDF4")}


# A build without HDF5 has only the classic kinds.
if os.environ.get("TEST_HDF5") != "1":
    del KINDS["netcdf4"]


def values(hour, kind):
    """What the model puts of one field: (level, y, x)."""
    place = numpy.arange(NX * NY, dtype="f8")
    levels = [100 * numpy.sin(0.05 * place + 0.3 * level + 0.1 * hour) + place - 10.0 * level for level in range(LEVELS)]
    return numpy.array(levels).reshape(LEVELS, NY, NX).astype(kind)


def holds(path, hours):
    """Whether the file holds these steps and no others, with the right values."""
    with netCDF4.Dataset(path) as file:
        if list(file["time"][:]) != [hour * 3600.0 for hour in hours]:
            return False
        return all(numpy.allclose(file["t"][i], values(hour, "f8"), rtol=1e-12) and
                   numpy.allclose(file["u"][i], values(hour, "f4"), rtol=1e-6) for i, hour in enumerate(hours))


def any_number_of_servers(format):
    directory = fresh(f"servers-{format}")
    files = []
    for ranks, servers in scenes(is_first=True):
        path = f"{directory}/r{ranks}s{servers}.nc"
        code, _, err = run(ranks + servers, arguments(path, f"format={format} {OPTIONS}", 2), TAILRACE_SERVERS=str(servers))
        check(code == 0 and holds(path, range(3)), f"{format}, {ranks} ranks, {servers} servers: {code}, {err}")
        files.append(contents(path))
    check(all(file == files[0] for file in files), f"{format}: the bytes depend on ranks or servers")
    return f"{directory}/r2s1.nc"


def others_read_it(path, format):
    dumped = subprocess.run(["ncdump", "-k", path], capture_output=True, text=True)
    check(dumped.stdout.strip() == KINDS[format][0], f"ncdump -k: {dumped.stdout} {dumped.stderr}")
    header = subprocess.run(["ncdump", "-h", path], capture_output=True, text=True).stdout
    for line in ("time = UNLIMITED ; // (3 currently)", "double t(time, plev, lat, lon)", "float u(time, plev, lat, lon)",
                 't:standard_name = "air_temperature"', 'plev:units = "hPa"', ':title = "a small model"', ':Conventions = "CF-1.8"'):
        check(line in header, f"ncdump -h lacks {line}:\n{header}")
    shown = subprocess.run(["cdo", "-s", "showtimestamp", path], capture_output=True, text=True)
    check(shown.stdout.split() == [f"2026-03-01T0{hour}:00:00" for hour in range(3)], f"cdo: {shown.stdout} {shown.stderr}")
    shown = subprocess.run(["cdo", "-s", "outputf,%.6f,1", "-fldmean", "-selname,t", "-sellevel,850", path], capture_output=True, text=True)
    check(len(shown.stdout.split()) == 3, f"cdo computes: {shown.stdout} {shown.stderr}")
    with netCDF4.Dataset(path) as file:
        check(file.data_model == KINDS[format][1], f"netCDF4 takes it for {file.data_model}")
        check(list(file["lat"][:]) == [50.0 - i for i in range(NY)] and list(file["lon"][:]) == [5.0 + i for i in range(NX)],
              f"{file['lat'][:]} {file['lon'][:]}")
        check(list(file["plev"][:]) == [1000, 850, 500], f"{file['plev'][:]}")
    with xarray.open_dataset(path) as data:
        check(str(data.time.values[1]).startswith("2026-03-01T01:00:00"), f"xarray: {data.time}")
        point = data.t.sel(plev=850, lat=50, lon=7).isel(time=2).item()
        check(math.isclose(point, 100 * math.sin(0.1 + 0.3 + 0.2) + 2 - 10), f"xarray: {point}")


def steps_are_seen_as_they_are_committed(servers):
    """A reader opens the file again and again while it is written: each time it finds whole steps, and those that are waited for."""
    directory = os.path.abspath(fresh(f"beside-s{servers}"))
    path = f"{directory}/fc.nc"
    ranks = 2 + servers
    beside = subprocess.Popen([*MPIRUN, "-n", str(ranks), *arguments(path, "format=cdf5", 12, 0, 5)],
                              env=environment(TAILRACE_SERVERS=str(servers), SMALL_MODEL_AWAITS=f"4:{directory}/go"),
                              stdout=subprocess.DEVNULL)
    try:
        for hour in range(4):
            code, _, err = tailrace("wait", path, "--lead", f"{hour}h", "--timeout", "60s")
            with netCDF4.Dataset(path) as file:
                check(code == 0 and len(file["time"]) > hour, f"behind wait for hour {hour}: {code}, {len(file['time'])} steps, {err}")
        check(holds(path, range(4)), "the first four steps")
        open(f"{directory}/go", "w", encoding="ascii").close()
        looks, seen = 0, set()
        while beside.poll() is None:
            with netCDF4.Dataset(path) as file:
                steps = len(file.dimensions["time"])
                whole = all(file["time"][i] == i * 3600 and numpy.allclose(file["t"][i], values(i, "f8"), rtol=1e-12) for i in range(steps))
            if not check(whole and steps >= 4, f"a look at {steps} steps"):
                break
            looks, seen = looks + 1, seen | {steps}
        check(beside.wait(timeout=60) == 0 and looks > 3, f"{looks} looks, {seen}")
        check(holds(path, range(13)), "the whole file")
    finally:
        if beside.poll() is None:
            beside.kill()


def killed_and_continued(servers):
    directory = os.path.abspath(fresh(f"killed-s{servers}"))
    path, truth = f"{directory}/fc.nc", f"{directory}/truth.nc"
    ranks, settings = 2 + servers, {"TAILRACE_SERVERS": str(servers)}
    code, _, err = run(ranks, arguments(truth, "format=cdf5", 7), **settings)
    check(code == 0, f"the undisturbed run: {err}")
    first = 0
    for life in range(3):
        directory_of_life = fresh(f"{directory}/life{life}")
        job = Job([*MPIRUN, "-n", str(ranks), *arguments(path, "format=cdf5 existing=continue", 7, first)],
                  environment(SMALL_MODEL_AWAITS=f"{first + 2}:{directory_of_life}/never", **settings), directory_of_life)
        try:
            code, _, err = tailrace("wait", path, "--lead", f"{first + 1}h", "--timeout", "60s")
            check(code == 0, f"life {life}: {code}, {err}")
        finally:
            job.kill_all()
        check(holds(path, range(first + 2)), f"what life {life} has left")
        first += 2
        # A number of steps that was never written, and a step that was begun: both are mended.
        with open(path, "r+b") as file:
            file.seek(4)
            file.write((first - 1).to_bytes(8, "big"))
            file.seek(0, os.SEEK_END)
            file.write(b"half a step")
    code, out, err = tailrace("repair", path)
    check(code == 0 and holds(path, range(first)), f"repair: {code}, {out} {err}")
    code, _, err = run(ranks, arguments(path, "format=cdf5 existing=continue", 7, first), **settings)
    check(code == 0 and holds(path, range(8)), f"the last life: {code}, {err}")
    check(contents(path) == contents(truth), "the bytes of three killed jobs and one that ended are others")
    code, out, err = tailrace("verify", path)
    check(code == 0 and "whole: 8 steps" in out, f"verify: {code}, {out} {err}")


def killed_and_finished_by_repair(servers):
    """A NetCDF-4 file is readable once it is finished: by the run, or by tailrace repair after a kill. Then a run goes on with it."""
    directory = os.path.abspath(fresh(f"finished-s{servers}"))
    path, truth = f"{directory}/fc.nc4", f"{directory}/truth.nc4"
    ranks, settings = 2 + servers, {"TAILRACE_SERVERS": str(servers)}
    code, _, err = run(ranks, arguments(truth, "", 5), **settings)
    check(code == 0 and holds(truth, range(6)), f"the undisturbed run: {code}, {err}")
    # The command finishes a file with the bytes that the servers give it: the index of this copy lacks the record that closes it.
    copied = f"{directory}/copied.nc4"
    for ending in ("", ".trx"):
        shutil.copy(truth + ending, copied + ending)
    os.truncate(copied + ".trx", os.path.getsize(copied + ".trx") - CLOSED_BYTES)
    code, out, err = tailrace("repair", copied)
    check(code == 0 and "closed" not in out and contents(copied) == contents(truth), f"an ending by the command: {code}, {out} {err}")
    first = 0
    for life in range(2):
        directory_of_life = fresh(f"{directory}/life{life}")
        job = Job([*MPIRUN, "-n", str(ranks), *arguments(path, "existing=continue", 5, first)],
                  environment(SMALL_MODEL_AWAITS=f"{first + 2}:{directory_of_life}/never", **settings), directory_of_life)
        try:
            code, _, err = tailrace("wait", path, "--lead", f"{first + 1}h", "--timeout", "60s")
            check(code == 0, f"life {life}: {code}, {err}")
        finally:
            job.kill_all()
        check(contents(path).startswith(b"tailrace: NetCDF-4, not finished"), f"life {life} left a file that looks finished")
        first += 2
        code, out, err = tailrace("repair", path)
        check(code == 0 and holds(path, range(first)), f"repair: {code}, {out} {err}")
    code, _, err = run(ranks, arguments(path, "existing=continue", 5, first), **settings)
    check(code == 0 and holds(path, range(6)), f"the last life: {code}, {err}")
    check(contents(path) == contents(truth), "the bytes of two killed jobs and one that ended are others")
    code, out, err = tailrace("verify", path)
    check(code == 0 and "whole: 6 steps" in out, f"verify: {code}, {out} {err}")
    code, out, err = tailrace("repair", path, "--through-lead", "3h")
    check(code == 0 and holds(path, range(4)), f"repair up to a lead: {code}, {out} {err}")


def compression_reaches_the_file():
    directory = fresh("compressed")
    sizes = {}
    for options in ("compress=none", "compress=deflate:1", "compress=deflate:9"):
        path = f"{directory}/{options}.nc4"
        code, _, err = run(3, arguments(path, options, 3), TAILRACE_SERVERS="1")
        check(code == 0 and holds(path, range(4)), f"{options}: {code}, {err}")
        with netCDF4.Dataset(path) as file:
            filters = file["t"].filters()
        check(filters["zlib"] == (options != "compress=none"), f"{options}: {filters}")
        sizes[options] = os.path.getsize(path)
    check(sizes["compress=deflate:9"] <= sizes["compress=deflate:1"] < sizes["compress=none"], f"{sizes}")


def definitions_that_have_changed():
    directory = fresh("changed")
    path = f"{directory}/fc.nc"
    check(run(2, arguments(path, "attributes=title=one", 1))[0] == 0, "the first run")
    # Attributes may change: the file keeps those that it has.
    code, _, err = run(2, arguments(path, "attributes=title=another existing=continue", 3, 2))
    check(code == 0 and holds(path, range(4)) and "keeps the attributes" in err, f"other attributes: {code}, {err}")
    with netCDF4.Dataset(path) as file:
        check(file.title == "one", f"the title is {file.title}")
    code, _, err = run(2, arguments(path, "attributes=title=one existing=continue", 5, 4))
    check(code == 0 and holds(path, range(6)) and "keeps" not in err, f"the same attributes: {code}, {err}")
    before = contents(path), contents(path + ".trx")
    code, _, err = run(2, arguments(path, "format=cdf2 existing=continue", 7, 6))
    check(code == 1 and "the format 'cdf5'" in err, f"another format: {code}, {err}")
    check((contents(path), contents(path + ".trx")) == before, "a refused continuation touched the file")
    code, _, err = run(2, arguments(f"{directory}/fc.cdf", "packing=ccsds", 1))
    check(code == 1 and "packing= belongs to format=grib2, grib1; format=cdf5" in err, f"packing: {code}, {err}")


def a_file_for_each_step():
    directory = fresh("rolled")
    pattern = directory + "/fc+{lead:03h}.nc"
    code, _, err = run(3, arguments(pattern, "", 3), TAILRACE_SERVERS="1")
    check(code == 0 and all(holds(f"{directory}/fc+{hour:03}.nc", [hour]) for hour in range(4)), f"a file for each step: {code}, {err}")


for kind in KINDS:
    others_read_it(any_number_of_servers(kind), kind)
for number in (0, 1):
    steps_are_seen_as_they_are_committed(number)
    killed_and_continued(number)
    if "netcdf4" in KINDS:
        killed_and_finished_by_repair(number)
definitions_that_have_changed()
a_file_for_each_step()
if "netcdf4" in KINDS:
    compression_reaches_the_file()
finish()
