# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Listings of GRIB2 files, by which wgrib2, readers of ECMWF's open data and cfgrib find messages: the same for any number of ranks and servers,
never ahead of the index, and exact after a kill, a repair, a cut and a run that goes on."""
import json
import os
import pickle
import re
import subprocess
import sys
import types

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from killed_job import Job  # noqa: E402
from small_model import *  # noqa: E402,F403

ALL_THREE = "format=grib2 index=wgrib2,ecmwf,cfgrib centre=98"
NAMES = {"t": "TMP", "u": "UGRD"}
PRESSURES = (1000, 850, 500)


def messages(path):
    """(offset, length) of each message, read without any library."""
    data, at, found = contents(path) or b"", 0, []
    while at < len(data):
        length = int.from_bytes(data[at + 8:at + 16], "big")
        check(data[at:at + 4] == b"GRIB" and data[at + length - 4:at + length] == b"7777", f"{path}: no message at {at}")
        found.append((at, length))
        at += length
    return found


class FileIndex:
    """Stands for cfgrib's, which is not installed here (tests/python/test_cfgrib.py has it)."""


for name, known in (("cfgrib", {}), ("cfgrib.messages", {"FileIndex": FileIndex}), ("cfgrib.cfmessage", {"COMPUTED_KEYS": {}})):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(known)


def from_indexpath(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def cfgrib_index(path, filestream):
    """What cfgrib takes: its functions call each other like this."""
    return from_indexpath(path + ".5b7b6.idx")


def check_cfgrib(path, records, places, member):
    """cfgrib's index tells exactly these records, and is not older than the file."""
    stream = object()
    try:
        index = cfgrib_index(path, stream)
    except (OSError, EOFError, pickle.UnpicklingError) as error:
        check(False, f"{path}.5b7b6.idx: {error!r}")
        return
    check(index.fieldset is stream and index.index_protocol_version == "2" and index.filter_by_keys == {}, f"{path}: {vars(index)}")
    values = [dict(zip(index.index_keys, each)) for each, _ in index.field_ids_index]
    shown = [(each["step"], each["paramId"], each["level:float"], each["typeOfLevel"], each["time"], each["number"]) for each in values]
    check(shown == [(float(hour), {"t": 130, "u": 131}[name], float(pressure), "isobaricInhPa", 1772323200, member)
                    for hour, name, pressure in records], f"{path}: {shown}")
    check([offsets for _, offsets in index.field_ids_index] == [[offset] for offset, _ in places], f"{path}: places")
    check(os.path.getmtime(path + ".5b7b6.idx") >= os.path.getmtime(path), f"{path}: its index for cfgrib is older")


def wanted(hours):
    return [(hour, name, pressure) for hour in hours for name in ("t", "u") for pressure in PRESSURES]


def check_file(path, hours, member=""):
    """All listings tell exactly the messages of these hours."""
    records, places = wanted(hours), messages(path)
    check(len(records) == len(places), f"{path}: {len(places)} messages")
    text = (contents(path + ".idx") or b"").decode()
    lines = [f"{number}:{offset}:d=2026030100:{NAMES[name]}:{pressure} mb:{f'{hour} hour fcst' if hour else 'anl'}:{member}\n"
             for number, ((hour, name, pressure), (offset, _)) in enumerate(zip(records, places), 1)]
    check(text == "".join(lines), f"{path}.idx:\n{text}expected\n{''.join(lines)}")
    objects = [json.loads(line) for line in (contents(path + ".index") or b"").decode().splitlines()]
    shown = [(each["step"], each["param"], each["levelist"], each["levtype"], each["date"], each["time"], each["_offset"], each["_length"])
             for each in objects]
    check(shown == [(str(hour), name, str(pressure), "pl", "20260301", "0000", *place)
                    for (hour, name, pressure), place in zip(records, places)], f"{path}.index: {objects}")
    check_cfgrib(path, records, places, 7 if member else "undef")


def any_number_of_servers():
    directory = fresh("servers")
    texts = set()
    for ranks, servers in ((1, 0), (3, 2)):
        path = f"{directory}/r{ranks}s{servers}"
        code, _, err = run(ranks + servers, arguments(path, ALL_THREE, 3), TAILRACE_SERVERS=str(servers))
        check(code == 0, f"{path}: {code}, {err}")
        check_file(path, range(4))
        texts.add((contents(path + ".idx"), contents(path + ".index"), contents(path + ".5b7b6.idx")))
    check(len(texts) == 1, "listings differ by ranks or servers")


def never_ahead_of_the_index():
    """A reader looks again and again while the model runs."""
    path = f"{os.path.abspath(fresh('beside'))}/fc"
    beside = subprocess.Popen([*MPIRUN, "-n", "3", *arguments(path, ALL_THREE, 12, 0, 15)], env=environment(TAILRACE_SERVERS="1"),
                              stdout=subprocess.DEVNULL)
    seen = set()
    try:
        while beside.poll() is None:
            text = (contents(path + ".idx") or b"").decode()
            lines = text.count("\n")
            if not lines:
                continue
            # The index is read after the listing: it may have more by then, and never less.
            code, out, err = tailrace("index", path)
            shown = re.search(r"^(\d+) steps?", out, re.M)
            committed = int(shown.group(1)) if code == 0 and shown else 0
            if not check(lines <= committed * len(wanted([0])), f"{lines} lines, {committed} steps are committed: {out} {err}"):
                break
            seen.add(lines)
        check(beside.wait(timeout=60) == 0 and seen, f"looks at {seen} lines")
    finally:
        if beside.poll() is None:
            beside.kill()
    check_file(path, range(13))


def killed_repaired_cut_and_continued():
    directory = os.path.abspath(fresh("killed"))
    path, life = f"{directory}/fc", fresh(f"{directory}/life")
    job = Job([*MPIRUN, "-n", "3", *arguments(path, ALL_THREE, 7)],
              environment(SMALL_MODEL_AWAITS=f"4:{life}/never", TAILRACE_SERVERS="1"), life)
    try:
        code, _, err = tailrace("wait", path, "--lead", "3h", "--timeout", "60s")
        check(code == 0, f"{code}, {err}")
    finally:
        job.kill_all()
    # A kill in the middle of a write leaves such bytes.
    for ending in (".idx", ".5b7b6.idx"):
        whole = contents(path + ending) or b""
        with open(path + ending, "wb") as file:
            file.write(whole[:len(whole) // 2])
    code, out, err = tailrace("repair", path)
    check(code == 0, f"repair: {code}, {out} {err}")
    check_file(path, range(4))
    code, out, err = tailrace("repair", "--through-lead", "1h", path)
    check(code == 0, f"repair: {code}, {out} {err}")
    check_file(path, range(2))
    code, _, err = run(2, arguments(path, ALL_THREE + " existing=continue", 4, 2))
    check(code == 0, f"continued: {code}, {err}")
    check_file(path, range(5))
    # A run without listings leaves none that are wrong.
    check(run(2, arguments(path, "format=grib2", 1))[0] == 0, "a run without listings")
    left = [ending for ending in (".idx", ".index", ".5b7b6.idx") if os.path.exists(path + ending)]
    check(not left, f"listings of a file that was replaced: {left}")


def a_file_for_each_step_and_a_member():
    directory = fresh("rolled")
    options = ALL_THREE + " member=7 members=51"
    code, _, err = run(3, arguments(directory + "/fc+{lead:03h}", options, 2), TAILRACE_SERVERS="1")
    check(code == 0, f"a file for each step: {code}, {err}")
    for hour in range(3):
        check_file(f"{directory}/fc+{hour:03}", [hour], "ENS=+7")
    check(not [name for name in os.listdir(directory) if name.endswith(".new")], f"{os.listdir(directory)}")


def somebody_elses():
    directory = fresh("foreign")
    with open(directory + "/fc.idx", "w") as file:
        file.write("notes\n")
    code, _, err = run(2, arguments(directory + "/fc", ALL_THREE, 1))
    check(code != 0 and "fc.idx" in err and "existing=overwrite" in err, f"{code}, {err}")
    check(contents(directory + "/fc.idx") == b"notes\n" and not os.path.exists(directory + "/fc"), f"{os.listdir(directory)}")


any_number_of_servers()
never_ahead_of_the_index()
killed_repaired_cut_and_continued()
a_file_for_each_step_and_a_member()
somebody_elses()
finish()
