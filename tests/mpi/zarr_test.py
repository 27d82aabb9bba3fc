# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Zarr stores: the same objects for every number of servers, read as the specification says and, where they are installed, by
zarr-python and xarray; read while they are written; continued by jobs behind killed ones."""
import json
import math
import os
import shutil
import struct
import subprocess
import sys

sys.path[:0] = [os.path.join(os.environ["TEST_SOURCE"], *place) for place in (("tests", "support"), ("examples", "weather"))]
from killed_job import Job  # noqa: E402
from small_model import *  # noqa: E402,F403
from zarr_store import Store, bytes_of  # noqa: E402
from zarr_to_netcdf import convert  # noqa: E402

# What zarr-python 3 writes into the metadata for the same settings.
CODECS = {"none": []}
for codec_level in (("gzip", 1), ("gzip:9", 9)):
    CODECS[codec_level[0]] = [{"name": "gzip", "configuration": {"level": codec_level[1]}}]
for codec_level in (("zstd", 1), ("zstd:5", 5)):
    CODECS[codec_level[0]] = [{"name": "zstd", "configuration": {"level": codec_level[1], "checksum": False}}]
for word, name, level, block in (("blosc_lz4", "lz4", 5, 0), ("blosc_zstd", "zstd", 1, 2**20), ("blosc_zstd:5", "zstd", 5, 0)):
    CODECS[word] = [{"name": "blosc", "configuration": {"typesize": 8, "cname": name, "clevel": level, "shuffle": "shuffle", "blocksize": block}}]
OTHERS = """
import sys, numpy, xarray, zarr
path, hours, chunks = sys.argv[1], int(sys.argv[2]), tuple(map(int, sys.argv[3:]))
group = zarr.open_group(path, mode="r")
assert group["t"].shape[0] == hours and group["t"].shards[:2] == (1, 3) and group["t"].chunks == chunks, group["t"].info
with xarray.open_zarr(path) as data:
    assert data.sizes["time"] == hours and str(data.time.values[1]).startswith("2026-03-01T01:00:00"), data
    level, place = numpy.meshgrid(range(3), range(11 * 13), indexing="ij")
    expected = 100 * numpy.sin(0.05 * place + 0.3 * level + 0.2) + place - 10.0 * level
    assert numpy.allclose(data.t.isel(time=2).values.reshape(expected.shape), expected, rtol=1e-12), data.t
    point = float(data.t.sel(plev=850, lat=50, lon=7).isel(time=2).load())
    assert abs(point - (100 * numpy.sin(0.1 + 0.3 + 0.2) + 2 - 10)) < 1e-9, point
    assert data.t.attrs["standard_name"] == "air_temperature" and data.attrs["title"] == "small", data
"""

PYTHON = os.environ.pop("TAILRACE_TEST_PYTHON", "") or sys.executable  # as in python_readers_test.py
HAVE_ZARR = subprocess.run([PYTHON, "-c", "import xarray, zarr; assert zarr.__version__ >= '3'"], capture_output=True).returncode == 0
if not HAVE_ZARR:
    print("zarr-python 3 and xarray are not installed: stores are read by the test alone", flush=True)


def wait_for(path, hour):
    return tailrace("wait", path, "--lead", f"{hour}h", "--timeout", f"{LIMIT}s", limit=LIMIT + 30)


def value(level, hour, place):
    return 100 * math.sin(0.05 * place + 0.3 * level + 0.1 * hour) + place - 10.0 * level


def close(got, expected, tolerance):
    return len(got) == len(expected) and all(math.isclose(a, b, rel_tol=tolerance, abs_tol=100 * tolerance) for a, b in zip(got, expected))


def holds(path, hours, tolerance=1e-12):
    """Whether the store holds these steps and no others, with the right values."""
    store, hours = Store(path), list(hours)
    if store["t"].shape[0] != len(hours) or store["time"].values() != [hour * 3600.0 for hour in hours]:
        return False
    for number, hour in enumerate(hours):
        expected = [value(level, hour, place) for level in range(LEVELS) for place in range(NX * NY)]
        if not close(store["t"].step(number), expected, tolerance) or not close(store["u"].step(number), expected, max(tolerance, 1e-6)):
            return False
    return True


def any_number_of_servers(options, fields="", tolerance=1e-12):
    """The store of one of the jobs."""
    directory = fresh("servers-" + (options + fields).replace("=", "-").replace(":", "-").replace(" ", "-"))
    stores = []
    for ranks, servers in scenes(options == "compress=gzip" and not fields):
        path = f"{directory}/r{ranks}s{servers}.zarr"
        code, _, err = run(ranks + servers, arguments(path, f"{options} conventions=weather attributes=title=small", 2), TAILRACE_SERVERS=str(servers),
                           SMALL_MODEL_FIELDS=fields)
        check(code == 0 and holds(path, range(3), tolerance), f"{options} {fields}, {ranks} ranks, {servers} servers: {code}, {err}")
        stores.append(bytes_of(path))
    check(all(store == stores[0] for store in stores), f"{options} {fields}: the bytes depend on ranks or servers")
    return f"{directory}/r3s2.zarr"


def compressions_and_chunks():
    """Each way to write chunks has the bytes that the specification asks for, and zarr-python reads it."""
    sizes = {}
    for word in ("none", "gzip", "gzip:9", "zstd", "zstd:5", "blosc_lz4", "blosc_zstd", "blosc_zstd:5"):
        path = f"{fresh('compress-' + word.replace(':', '-'))}/fc.zarr"
        code, _, err = run(1, arguments(path, f"compress={word} conventions=weather attributes=title=small", 2))
        if "was built without" in err:
            check("say compress=gzip" in err, f"{word}: {err}")
            print(f"{word}: {err.strip().splitlines()[-1]}", flush=True)
            continue
        check(code == 0 and holds(path, range(3)), f"{word}: {code}, {err}")
        codecs = Store(path)["t"].metadata["codecs"][0]["configuration"]["codecs"]
        check(codecs[1:] == CODECS[word], f"{word}: {codecs}")
        sizes[word] = os.path.getsize(f"{path}/t/c.0.0.0.0")
        as_others_read(path)
    check(sizes.get("blosc_zstd", 0) < sizes["none"], f"{sizes}")
    cut = any_number_of_servers("compress=gzip", "chunks=4x5")
    as_others_read(cut, (1, 1, 4, 5))
    check(Store(cut)["t"].chunk_shape == [1, 3, 12, 15], f"a shard has whole chunks: {Store(cut)['t'].chunk_shape}")
    any_number_of_servers("compress=none", "chunks=100x4")
    path = any_number_of_servers("compress=gzip", "accuracy=0.01", 0.01)
    check(Store(path)["t"].attributes["quantization_maximum_absolute_error"] == 0.01, f"{Store(path)['t'].attributes}")
    check(os.path.getsize(f"{path}/t/c.0.0.0.0") < 0.7 * sizes["none"], "rounding does not make chunks smaller")
    for fields, words in (("chunks=4", "1 number, a level of the variable has 2 dimensions"), ("chunks=0x3", "chunks"),
                          ("compress=deflate", "blosc_zstd"), ("compress=gzip:10", "the level of gzip"),
                          ("compress=none:1", "takes no level"), ("attributes=quantization_step=1", "leave it out")):
        code, _, err = run(1, arguments(f"{fresh('refused')}/fc.zarr", "", 1), SMALL_MODEL_FIELDS=fields)
        check(code != 0 and words in err, f"{fields}: {code}, {err}")


def metadata_are_those_of_cf(path):
    store = Store(path)
    check(list(store.arrays) == ["time", "plev", "lat", "lon", "t", "u"], f"{list(store.arrays)}")
    check(store["t"].names == ["time", "plev", "lat", "lon"] and store["t"].codecs == ["sharding_indexed"], f"{store['t'].metadata}")
    check(store["lat"].values() == [50.0 - i for i in range(NY)] and store["plev"].values() == [1000, 850, 500], "coordinates")
    check(store["time"].attributes["units"] == "seconds since 2026-03-01 00:00:00", f"{store['time'].attributes}")
    check(store["t"].attributes["units"] == "K" and store.attributes["Conventions"] == "CF-1.8", f"{store['t'].attributes}")
    check(all(store.own_metadata(name) == store[name].metadata for name in store.arrays), "arrays have other metadata by themselves")


def as_others_read(path, chunks=(1, 1, NY, NX)):
    """zarr-python and xarray read the store, if they are installed."""
    if not HAVE_ZARR:
        return
    read = subprocess.run([PYTHON, "-W", "error", "-c", OTHERS, path, "3", *map(str, chunks)], capture_output=True, text=True)
    check(read.returncode == 0, f"zarr-python and xarray: {read.stderr}")


def steps_are_seen_as_they_are_committed(servers):
    directory = os.path.abspath(fresh(f"beside-s{servers}"))
    path = f"{directory}/fc.zarr"
    ranks = 2 + servers
    beside = subprocess.Popen([*MPIRUN, "-n", str(ranks), *arguments(path, "", 8, 0, 5)],
                              env=environment(TAILRACE_SERVERS=str(servers), SMALL_MODEL_AWAITS=f"3:{directory}/go"),
                              stdout=subprocess.DEVNULL)
    try:
        for hour in range(3):
            code, _, err = wait_for(path, hour)
            check(code == 0 and Store(path)["t"].shape[0] > hour, f"behind wait for hour {hour}: {code}, {err}")
        open(f"{directory}/go", "w", encoding="ascii").close()
        # On a busy machine the job may have ended before this process gets its turn: then one look is at the whole store.
        ended = False
        while not ended:
            ended = beside.poll() is not None
            steps = Store(path)["t"].shape[0]
            if not check(3 <= steps <= 9 and len(Store(path)["time"].values()) >= steps, f"a look at {steps} steps"):
                break
            last = [value(level, steps - 1, place) for level in range(LEVELS) for place in range(NX * NY)]
            check(close(Store(path)["t"].step(steps - 1), last, 1e-12), f"step {steps - 1} was not whole when it was told of")
        check(beside.wait(timeout=LIMIT) == 0, "the job beside failed")
        check(holds(path, range(9)), "the whole store")
    finally:
        if beside.poll() is None:
            beside.kill()


def killed_and_continued(servers):
    directory = os.path.abspath(fresh(f"killed-s{servers}"))
    path, truth = f"{directory}/fc.zarr", f"{directory}/truth.zarr"
    ranks, settings = 2 + servers, {"TAILRACE_SERVERS": str(servers)}
    code, _, err = run(ranks, arguments(truth, "", 5), **settings)
    check(code == 0, f"the undisturbed run: {err}")
    first = 0
    for life in range(2):
        directory_of_life = fresh(f"{directory}/life{life}")
        job = Job([*MPIRUN, "-n", str(ranks), *arguments(path, "existing=continue", 5, first)],
                  environment(SMALL_MODEL_AWAITS=f"{first + 2}:{directory_of_life}/never", **settings), directory_of_life)
        try:
            code, _, err = wait_for(path, first + 1)
            check(code == 0, f"life {life}: {code}, {err}")
        finally:
            job.kill_all()
        first += 2
        # Objects of a step that was begun: nobody reads them, and they are removed.
        shutil.copy(f"{path}/t/c.0.0.0.0", f"{path}/t/c.{first}.0.0.0")
        check(holds(path, range(first)), f"what life {life} has left")
    code, out, err = tailrace("repair", path)
    check(code == 0 and holds(path, range(first)) and not os.path.exists(f"{path}/t/c.{first}.0.0.0"), f"repair: {code}, {out} {err}")
    code, _, err = run(ranks, arguments(path, "existing=continue", 5, first), **settings)
    check(code == 0 and holds(path, range(6)), f"the last life: {code}, {err}")
    check(bytes_of(path) == bytes_of(truth), "the bytes of two killed jobs and one that ended are others")
    code, out, err = tailrace("verify", path)
    check(code == 0 and "whole: 6 steps" in out, f"verify: {code}, {out} {err}")
    code, out, err = tailrace("index", path)
    check(code == 0 and "zarr" in out, f"index: {code}, {out} {err}")
    with open(f"{path}/t/c.4.0.0.0", "r+b") as file:
        file.write(b"other")
    check(tailrace("verify", path)[0] != 0, "verify does not notice other bytes")
    check(tailrace("repair", path, "--through-lead", "3h")[0] == 0 and holds(path, range(4)), "repair up to a lead")


def what_users_do_with_stores():
    """A finished store may get attributes and arrays of others. Then it is continued, repaired, and not replaced."""
    directory = fresh("users")
    path = f"{directory}/fc.zarr"
    check(run(1, arguments(path, "", 2))[0] == 0, "the first run")
    with open(f"{path}/zarr.json", encoding="utf-8") as file:
        group = json.load(file)
    arrays = group["consolidated_metadata"]["metadata"]
    group["consolidated_metadata"]["metadata"] = dict(sorted(arrays.items()))
    group["attributes"]["note"] = "x" * 5000
    with open(f"{path}/zarr.json", "w", encoding="utf-8") as file:
        json.dump(group, file, indent=2)
    shutil.copytree(path, f"{path}.old")
    code, out, err = tailrace("repair", path + "/")
    check(code == 0 and "3 whole steps kept" in out and holds(path, range(3)), f"repair: {code}, {out} {err}")
    code, _, err = run(1, arguments(path, "existing=continue", 3, 3))
    check(code == 0 and holds(path, range(4)) and holds(f"{path}.old", range(3)), f"continued: {code}, {err}")
    os.makedirs(f"{path}/mine")
    code, _, err = run(1, arguments(path, "existing=replace", 1))
    check(code != 0 and "which no stream has written" in err and holds(path, range(4)), f"replaced: {code}, {err}")
    check(tailrace("verify", path)[0] == 0, "a refused replacement has changed the index")
    os.rmdir(f"{path}/mine")
    os.remove(f"{path}/u/c.1.0.0.0")
    os.remove(f"{directory}/manifest.jsonl")
    code, _, err = tailrace("verify", path)
    check(code != 0 and "lacks parts of its steps" in err, f"verify: {code}, {err}")
    code, _, err = tailrace("repair", path)
    check(code != 0 and "tailrace repair --force" in err and Store(path)["t"].shape[0] == 4,
          f"repair of a store that lacks an object: {code}, {err}")
    code, out, err = tailrace("repair", "--force", path)
    check(code == 0 and "1 whole step kept" in out and "3 whole steps dropped" in out and holds(path, range(1)),
          f"repair --force: {code}, {out} {err}")
    check(tailrace("verify", path)[0] == 0, "what repair --force has kept is not whole")


def classic_netcdf_is_made_of_stores():
    directory = fresh("converted")
    path, made = f"{directory}/fc.zarr", f"{directory}/fc.nc"
    fields = 'chunks=4x5 compress=gzip attributes="valid_min=0"'
    check(run(2, arguments(path, "", 1), SMALL_MODEL_FIELDS=fields)[0] == 0, "the store to convert")
    convert(path, made)
    with open(made, "rb") as file:
        data = file.read()
    # The attribute has the type of its variable: 6 is a double, 5 a float (the number of values is 1).
    for code, bytes_of_zero in ((6, 8), (5, 4)):
        check(b"valid_min\0\0\0" + struct.pack(">iq", code, 1) + bytes(bytes_of_zero) in data, f"no valid_min of type {code}")
    last = [value(LEVELS - 1, 1, place) for place in range(NX * NY)]
    values = b"".join(struct.pack(">d", each) for each in Store(path)["t"].step(1)[-NX * NY:])
    check(values in data and close(struct.unpack(f">{NX * NY}d", values), last, 1e-12), "the last level is not in the file")
    with open(f"{path}/zarr.json", encoding="utf-8") as file:
        group = json.load(file)
    for array in group["consolidated_metadata"]["metadata"].values():
        if array["dimension_names"][:1] == ["time"]:
            array["shape"][0] = 0
    shutil.copytree(path, f"{directory}/empty.zarr")
    with open(f"{directory}/empty.zarr/zarr.json", "w", encoding="utf-8") as file:
        json.dump(group, file)
    convert(f"{directory}/empty.zarr", f"{directory}/empty.nc")
    with open(f"{directory}/empty.nc", "rb") as file:
        check(file.read().startswith(b"CDF\5"), "a store without steps")
    with open(f"{path}/t/c.1.0.0.0", "wb") as file:
        file.write(b"x")
    try:
        convert(path, made)
        check(False, "a damaged store was converted")
    except ValueError as error:
        check("t/c.1.0.0.0" in str(error), f"{error}")
    with open(made, "rb") as file:
        check(file.read() == data and not os.path.exists(f"{made}.part"), "a failed conversion has changed the file that was there")


def damaged_objects_are_told_by_name():
    """Whatever byte of an object is another one, a reader gets values or a ValueError that names the object."""
    directory = fresh("damaged")
    for word in ("none", "gzip", "zstd", "blosc_lz4", "blosc_zstd"):
        path = f"{directory}/{word}.zarr"
        code, _, err = run(1, arguments(path, f"compress={word}", 0))
        if "was built without" in err:
            continue
        check(code == 0, f"{word}: {code}, {err}")
        whole, told = f"{path}/t/c.0.0.0.0", 0
        array, right = Store(path)["t"], Store(path)["t"].chunk(0, 0, 0, 0)
        with open(whole, "rb") as file:
            data = file.read()
        places = [*range(40), *range(40, len(data), len(data) // 60)]
        damaged = [data[:at] + bytes([data[at] ^ mask]) + data[at + 1:] for mask in (1, 0xff) for at in places]
        damaged += [data[:length] for length in range(0, len(data), len(data) // 20)] + [b"x", data[1:], data + b"x"]
        for other in damaged:
            with open(whole, "wb") as file:
                file.write(other)
            try:
                values = array.chunk(0, 0, 0, 0)
                check(len(values) == len(right) and (word != "gzip" or values == right), f"{word}: damage that gzip's sum must tell")
            except ValueError as error:
                told += 1
                check(whole in str(error), f"{word}: which object is it? {error}")
            except Exception as error:  # pylint: disable=broad-exception-caught
                if not check(False, f"{word}: {error!r}"):
                    return
        check(told > 0, f"{word}: no damage was told")
    with open(f"{directory}/none.zarr/zarr.json", "w", encoding="ascii") as file:
        file.write("{")
    try:
        Store(f"{directory}/none.zarr")
        check(False, "damaged metadata were read")
    except ValueError as error:
        check("none.zarr/zarr.json" in str(error), f"{error}")


def other_directories_stay():
    directory = fresh("others")
    os.makedirs(f"{directory}/fc.zarr/mine")
    code, _, err = run(1, arguments(f"{directory}/fc.zarr", "existing=overwrite", 1))
    check(code != 0 and "which no stream has written" in err and os.path.isdir(f"{directory}/fc.zarr/mine"), f"{code}, {err}")
    open(f"{directory}/file.zarr", "w", encoding="ascii").close()
    code, _, err = run(1, arguments(f"{directory}/file.zarr", "existing=overwrite", 1))
    check(code != 0 and "is a file, and a stream writes a directory" in err, f"{code}, {err}")
    check(sorted(os.listdir(directory)) == ["fc.zarr", "file.zarr"], f"a refused name has left {sorted(os.listdir(directory))}")
    code, _, err = run(1, arguments(f"{directory}/fc", "format=zarr", 1))
    check(code != 0 and "whose name ends in .zarr" in err, f"{code}, {err}")


store = any_number_of_servers("compress=gzip")
any_number_of_servers("compress=none")
metadata_are_those_of_cf(store)
as_others_read(store)
compressions_and_chunks()
for number in (0, 1):
    steps_are_seen_as_they_are_committed(number)
    killed_and_continued(number)
what_users_do_with_stores()
classic_netcdf_is_made_of_stores()
damaged_objects_are_told_by_name()
other_directories_stay()
finish()
