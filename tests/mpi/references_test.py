# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Reference files: what they refer to are the model's values, for every format and number of servers. They are never ahead of
the index, and follow a file that is cut back, continued, replaced or rolled over."""
import base64
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from killed_job import Job  # noqa: E402
from small_model import *  # noqa: E402,F403

FORMATS = ("raw", "cdf5", "cdf1", "grib2", "grib1")
SIZES = {"f4": "f", "f8": "d", "i4": "i"}


def value(field, level, hour, place):
    return 100 * math.sin(0.05 * place + 0.3 * level + 0.1 * hour) + place - 10.0 * level


class References:
    """A reference file, version 1, as readers of Zarr v2 follow it."""

    def __init__(self, path):
        with open(path + ".refs.json", encoding="utf-8") as file:
            whole = json.load(file)
        check(whole["version"] == 1, f"version {whole['version']}")
        self.templates, self.refs = whole["templates"], whole["refs"]
        check(self.json(".zgroup") == {"zarr_format": 2}, "the group is one of Zarr v2")

    def bytes(self, key):
        entry = self.refs[key]
        if isinstance(entry, list):
            url, offset, length = entry
            for name, meaning in self.templates.items():
                url = url.replace("{{" + name + "}}", meaning)
            with open(url, "rb") as file:
                file.seek(offset)
                return file.read(length)
        return base64.b64decode(entry[7:]) if entry.startswith("base64:") else entry.encode()

    def json(self, key):
        return json.loads(self.bytes(key))

    def array(self, name):
        return self.json(f"{name}/.zarray"), self.json(f"{name}/.zattrs")

    def chunk(self, name, chunk):
        """The values of a chunk whose bytes are values."""
        array, _ = self.array(name)
        check(array["filters"] is None and array["compressor"] is None and array["order"] == "C", f"{name} is coded: {array}")
        data = self.bytes(f"{name}/{chunk}")
        form = SIZES[array["dtype"][1:]]
        check(len(data) == math.prod(array["chunks"]) * struct.calcsize(form), f"{name}/{chunk} has {len(data)} bytes")
        return struct.unpack(f"{array['dtype'][0]}{len(data) // struct.calcsize(form)}{form}", data)

    def steps(self):
        return self.array("time")[0]["shape"][0]


def check_values(refs, name, hour, number, format):
    place = f"{name}/{number}"
    for level in range(LEVELS):
        chunk = f"{number}.{level}.0.0" if f"{name}/{number}.{level}.0.0" in refs.refs else f"{number}.{level}.0"
        if format in ("grib2", "grib1"):
            message = refs.bytes(f"{name}/{chunk}")
            check(message[:4] == b"GRIB" and message[-4:] == b"7777", f"{place}: no GRIB message")
            if shutil.which("grib_get") and level == 1:
                with open("one.grib2", "wb") as file:
                    file.write(message)
                shown = subprocess.run(["grib_get", "-p", "shortName,level,endStep", "one.grib2"], capture_output=True, text=True)
                check(shown.stdout.split() == [name, "850", str(hour)], f"{place}: {shown.stdout} {shown.stderr}")
                points = subprocess.run(["grib_get_data", "-F", "%.9g", "one.grib2"], capture_output=True, text=True).stdout.split()
                got = [float(point) for point in points[-3 * NX * NY + 2::3]]
                check(len(got) == NX * NY and all(abs(g - value(name, level, hour, i)) < 0.01 for i, g in enumerate(got)), f"{place}: {got[:3]}")
            continue
        got = refs.chunk(name, chunk)
        check(all(math.isclose(g, value(name, level, hour, i), rel_tol=2e-7 if name == "u" else 1e-12, abs_tol=1e-5 if name == "u" else 1e-9)
                  for i, g in enumerate(got)), f"{place}, level {level}: {got[:3]}")


def check_file(path, hours, format):
    """The references of a file are those of these hours, and everything that they tell is right."""
    refs = References(path)
    hours = list(hours)
    if not check(refs.steps() == len(hours), f"{path}: references of {refs.steps()} steps, expected {hours}"):
        return
    check(list(refs.chunk("time", "0")) == [hour * 3600.0 for hour in hours], f"{path}: other times")
    check(refs.array("time")[1]["units"] == "seconds since 2026-03-01 00:00:00", f"{refs.array('time')[1]}")
    check(refs.json(".zattrs")["Conventions"] == "CF-1.8", "the conventions")
    check(refs.chunk("plev", "0") == (1000, 850, 500), f"{path}: other levels")
    if format != "raw":  # the model gives a grid where the format needs one
        check(refs.chunk("lat", "0")[:2] == (50, 49) and refs.chunk("lon", "0")[-1] == 5 + NX - 1, f"{path}: other coordinates")
    for name in ("t", "u"):
        array, attributes = refs.array(name)
        dimensions = attributes["_ARRAY_DIMENSIONS"]
        check(dimensions[:2] == ["time", "plev"] and array["shape"] == [len(hours), LEVELS, *array["chunks"][2:]], f"{name}: {array} {dimensions}")
        check(array["chunks"][:2] == [1, 1] and math.prod(array["chunks"]) == NX * NY, f"{name}: {array}")
        filters = [{"id": "grib", "var": name, "dtype": "float64"}] if format in ("grib2", "grib1") else None
        check(array["filters"] == filters, f"{name}: {array}")
        if name == "t":
            check(attributes["standard_name"] == "air_temperature" and attributes["units"] == "K", f"{attributes}")
        chunks = [key for key in refs.refs if re.fullmatch(f"{name}/[0-9.]+", key)]
        check(len(chunks) == len(hours) * LEVELS, f"{name}: {len(chunks)} chunks")
        for number, hour in enumerate(hours):
            check_values(refs, name, hour, number, format)


def options(format, more=""):
    return f"format={format} references=on conventions=weather {more}"


def any_number_of_servers(format):
    directory = fresh(f"servers-{format}")
    texts = set()
    for ranks, servers in scenes(format == "grib2"):
        path = f"{directory}/r{ranks}s{servers}"
        code, _, err = run(ranks + servers, arguments(path, options(format), 3), TAILRACE_SERVERS=str(servers))
        check(code == 0, f"{path}: {code}, {err}")
        check_file(path, range(4), format)
        texts.add(re.sub(r'"f":"[^"]*"', "", contents(path + ".refs.json").decode()))
    check(len(texts) == 1, f"{format}: references differ by ranks or servers")


def never_ahead_of_the_index(format, servers):
    """A reader looks again and again while the model runs, which waits in the middle until it was looked at."""
    directory = os.path.abspath(fresh(f"beside-{format}-s{servers}"))
    path = f"{directory}/fc"
    beside = subprocess.Popen([*MPIRUN, "-n", str(2 + servers), *arguments(path, options(format), 25, 0, 15)],
                              env=environment(TAILRACE_SERVERS=str(servers), SMALL_MODEL_AWAITS=f"13:{directory}/go"),
                              stdout=subprocess.DEVNULL)
    seen = set()
    try:
        is_over = False
        while not is_over:
            is_over = beside.poll() is not None
            if not os.path.exists(path + ".refs.json"):
                continue
            refs = References(path)
            shown = re.search(r"^(\d+) steps?", tailrace("index", path)[1], re.M)
            if not check(shown and refs.steps() <= int(shown.group(1)), f"{refs.steps()} steps are told, committed: {shown}"):
                break
            check_values(refs, "t", refs.steps() - 1, refs.steps() - 1, format)
            seen.add(refs.steps())
            open(f"{directory}/go", "w", encoding="ascii").close()
        check(beside.wait(timeout=60) == 0 and len(seen) > 1, f"{format}, {servers} servers: looks at {seen} steps")
    finally:
        if beside.poll() is None:
            beside.kill()
    check_file(path, range(26), format)


def killed_cut_back_and_continued(format):
    directory = os.path.abspath(fresh(f"killed-{format}"))
    path = f"{directory}/fc"
    life = fresh(f"{directory}/life")
    job = Job([*MPIRUN, "-n", "3", *arguments(path, options(format), 7)],
              environment(SMALL_MODEL_AWAITS=f"4:{life}/never", TAILRACE_SERVERS="1"), life)
    try:
        code, _, err = tailrace("wait", path, "--lead", "3h", "--timeout", "60s")
        check(code == 0, f"{format}: {code}, {err}")
    finally:
        job.kill_all()
    told = References(path).steps() if os.path.exists(path + ".refs.json") else 0
    check(1 <= told <= 4, f"{format}: a killed job has left references of {told} steps")
    code, out, err = tailrace("repair", "--through-lead", "1h", path)
    check(code == 0, f"repair: {code}, {out} {err}")
    check(not os.path.exists(path + ".refs.json"), f"{format}: references tell of steps that were cut off")
    code, _, err = run(3, arguments(path, options(format, "existing=continue"), 5, 2), TAILRACE_SERVERS="1")
    check(code == 0, f"{format}, continued: {code}, {err}")
    check_file(path, range(6), format)
    # A run without references leaves none that are wrong.
    plain = f"format={format}"
    check(run(2, arguments(path, plain, 1))[0] == 0 and not os.path.exists(path + ".refs.json"), f"{format}: references of a file that was replaced")


def a_file_for_each_step(format):
    directory = fresh(f"rolled-{format}")
    code, _, err = run(3, arguments(directory + "/fc+{lead:03h}", options(format), 3), TAILRACE_SERVERS="1")
    check(code == 0, f"a file for each step: {code}, {err}")
    for hour in range(4):
        check_file(f"{directory}/fc+{hour:03}", [hour], format)
    check(not [name for name in os.listdir(directory) if name.endswith(".new")], f"{os.listdir(directory)}")


def xarray_opens_them(format):
    """With kerchunk's own packages, where they are installed."""
    try:
        import kerchunk.codecs  # noqa: F401
        import xarray
    except ImportError:
        return
    directory = fresh(f"xarray-{format}")
    path = f"{directory}/fc"
    check(run(3, arguments(path, options(format), 3), TAILRACE_SERVERS="1")[0] == 0, f"{format}: the run")
    for how in ({"engine": "kerchunk", "filename_or_obj": path + ".refs.json"},
                {"engine": "zarr", "filename_or_obj": "reference://", "backend_kwargs":
                 {"consolidated": False, "storage_options": {"fo": path + ".refs.json"}}}):
        with xarray.open_dataset(**how) as data:
            point = data.t.isel(time=2, plev=1).values.ravel()[17]
            check(math.isclose(point, value("t", 1, 2, 17), abs_tol=0.01), f"{format}, {how['engine']}: {point}")
            check(str(data.time.values[3]).startswith("2026-03-01T03:00:00"), f"{format}, {how['engine']}: {data.time.values}")
            check(data.plev.values.tolist() == [1000, 850, 500], f"{format}, {how['engine']}: {data.plev}")
    print(f"xarray has opened the references of {format}")


for kind in FORMATS:
    if kind == "grib2" and not shutil.which("grib_ls"):
        continue
    any_number_of_servers(kind)
    never_ahead_of_the_index(kind, 1)
    killed_cut_back_and_continued(kind)
    a_file_for_each_step(kind)
    xarray_opens_them(kind)
never_ahead_of_the_index("raw", 0)
finish()
