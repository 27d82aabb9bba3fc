# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Every method of writing, in every format, with any number of servers: the same bytes, or where a method gives the records of a step
no order the same records; what is no method is refused.
    methods_test.py MODEL"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

FORMATS = (("raw", ".raw", ""), ("grib2", ".grib2", ""), ("cdf5", ".nc", ""), ("netcdf4", ".nc4", "compress=deflate:1"), ("zarr", ".zarr", "compress=gzip"))
METHODS = ("serial", "offset_guard", "writer", "writer_aio", "mpiio", "mpiio_shared")
ANY_ORDER = ("offset_guard", "mpiio_shared")
LAST = 2


def files_of(path):
    """The bytes of a file, or of all objects of a store."""
    if not os.path.isdir(path):
        return contents(path)
    return {os.path.relpath(os.path.join(top, name), path): contents(os.path.join(top, name)) for top, _, names in os.walk(path) for name in names}


def check_rounds(report, method, what):
    """A collective method has written each step in rounds of all servers, and no other method has."""
    if not os.path.exists(report):
        return  # built without reports
    rounds = [each["servers"]["rounds"] for each in json.loads(contents(report))["streams"]]
    os.remove(report)
    check(len(rounds) == 1 and (rounds[0] > LAST if method == "mpiio" else rounds[0] == 0), f"{what}: {rounds} rounds")


def check_way(report, method, name, what):
    """The report tells by what several writes are under way: objects of a store are written one after another."""
    if not os.path.exists(report):
        return
    told = [each.get("writes_by") for each in json.loads(contents(report))["streams"]]
    expected = ("calls",) if name == "zarr" else ("io_uring", "posix_aio")
    check(len(told) == 1 and (told[0] in expected if method == "writer_aio" else told[0] is None), f"{what}: written by {told}")


def every_method(name, ending, options):
    directory = fresh(f"methods-{name}")
    whole = f"{directory}/scan{ending}"
    code, _, err = run(1, arguments(whole, f"format={name} {options}", LAST))
    if "was built without" in err:
        print(f"{name}: {err.strip().splitlines()[-1]}", flush=True)
        return
    check(code == 0, f"{name}: {code}, {err}")
    for method in METHODS:
        if (method == "mpiio" and name == "zarr") or (method == "mpiio_shared" and name in ("zarr", "cdf5")):
            continue
        for ranks, servers in scenes(name == "grib2"):
            path = f"{directory}/{method}-r{ranks}s{servers}{ending}"
            code, _, err = run(ranks + servers, arguments(path, f"format={name} {options} method={method}", LAST), TAILRACE_SERVERS=str(servers), SMALL_MODEL_THREADS="1",
                               TAILRACE_REPORT=f"{directory}/report.json")
            what = f"{name}, method={method}, {ranks} ranks, {servers} servers"
            check(code == 0, f"{what}: {code}, {err}")
            check_way(f"{directory}/report.json", method, name, what)
            check_rounds(f"{directory}/report.json", method, what)
            if method in ANY_ORDER and name in ("raw", "grib2", "netcdf4"):
                check(records_of(path) == records_of(whole), f"{what}: other records")
                check(tailrace("verify", path)[0] == 0, f"{what}: verify finds something")
            else:
                check(files_of(path) == files_of(whole), f"{what}: other bytes")


def chosen_by_the_setting():
    """The setting holds for streams that say nothing, and the report tells each stream's method."""
    directory = fresh("methods-setting")
    code, _, err = run(3, arguments(f"{directory}/fc.raw", "format=raw", LAST), TAILRACE_SERVERS="2", TAILRACE_METHOD="serial", TAILRACE_REPORT=f"{directory}/report.json")
    check(code == 0 and contents(f"{directory}/fc.raw") == contents("methods-raw/scan.raw"), f"TAILRACE_METHOD=serial: {code}, {err}")
    report = json.loads(contents(f"{directory}/report.json") or "{}")
    check([each.get("method") for each in report.get("streams", [])] == ["serial"], f"the report names the method: {report}")
    run(3, arguments(f"{directory}/own.raw", "format=raw method=scan", LAST), TAILRACE_SERVERS="2", TAILRACE_METHOD="serial", TAILRACE_REPORT=f"{directory}/own.json")
    report = json.loads(contents(f"{directory}/own.json") or "{}")
    check([each.get("method") for each in report.get("streams", [])] == ["scan"], f"the stream's own method counts: {report}")


def refused():
    directory = fresh("methods-refused")
    for options, settings, words in (("method=offset_gard", {}, 'did you mean "offset_guard"'), ("method=mpi_io", {}, 'did you mean "mpiio"'),
                                     ("method=mpiio", {}, "MPI_THREAD_MULTIPLE"), ("", {"TAILRACE_METHOD": "mpiio"}, "TAILRACE_METHOD=mpiio is not possible here"),
                                     ("method=mpiio mpiio_hints=cb_nodes", {}, 'has "cb_nodes", which is no hint'),
                                     ("mpiio_hints=cb_nodes=2", {}, "hints are for method=mpiio"),
                                     ('method=""', {}, "the name is empty"), ("", {"TAILRACE_METHOD": "fast"}, 'TAILRACE_METHOD=fast: unknown method "fast"')):
        code, _, err = run(2, arguments(f"{directory}/fc.raw", f"format=raw {options}", LAST), TAILRACE_SERVERS="1", **settings)
        check(code != 0 and words in err, f"{options} {settings}: {code}, {err}")
    check(not os.path.exists(f"{directory}/fc.raw"), "a refused method wrote a file")
    for method in ("mpiio", "mpiio_shared"):
        code, _, err = run(2, arguments(f"{directory}/fc.zarr", f"format=zarr method={method}", LAST), TAILRACE_SERVERS="1", SMALL_MODEL_THREADS="1")
        check(code != 0 and ("is no file of the operating system" in err or "was built without" in err), f"a store: {code}, {err}")
    code, _, err = run(4, arguments(f"{directory}/fc.nc", "format=cdf5 method=mpiio_shared", LAST), TAILRACE_SERVERS="2", SMALL_MODEL_THREADS="1")
    check(code != 0 and "in which each record has a place of its own" in err, f"records with places: {code}, {err}")


def together():
    """method=mpiio with hints, a file for each step, several nodes, throttled storage, and a write that fails."""
    directory = fresh("methods-mpiio")
    threads = {"SMALL_MODEL_THREADS": "1"}
    hints = 'method=mpiio mpiio_hints="cb_nodes=1, romio_cb_write=enable, no_such_hint=7"'
    code, _, err = run(5, arguments(f"{directory}/fc_{{lead:03h}}.raw", f"format=raw {hints}", LAST), TAILRACE_SERVERS="2", **threads)
    whole = b"".join(contents(f"{directory}/fc_{hour:03}.raw") or b"" for hour in range(LAST + 1))
    check(code == 0 and whole == contents("methods-raw/scan.raw"), f"files of one step: {code}, {err}")
    nodes = faked_nodes()
    if nodes:
        launcher, settings = nodes
        code, _, err = run(6, arguments(f"{directory}/nodes.raw", f"format=raw {hints}", LAST), launcher=launcher, TAILRACE_SERVERS="node:1", **settings, **threads)
        check(code == 0 and contents(f"{directory}/nodes.raw") == contents("methods-raw/scan.raw"), f"two nodes: {code}, {err}")
    began = time.monotonic()
    code, _, err = run(3, arguments(f"{directory}/slow.raw", "format=raw method=mpiio", LAST), TAILRACE_SERVERS="1", TAILRACE_THROTTLE="10kB/s", **threads)
    check(code == 0 and time.monotonic() - began > (LAST + 1) * STEP_BYTES / 10e3, f"throttled: {code}, {time.monotonic() - began} s, {err}")
    for fault in ("eio", "enospc"):
        code, _, err = run(3, arguments(f"{directory}/{fault}.raw", "format=raw method=mpiio", LAST), TAILRACE_SERVERS="2", TAILRACE_FAULT=f"nth=2 fault={fault} calls=write", **threads)
        check(code == 1 and f"{directory}/{fault}.raw" in err, f"{fault}: {code}, {err}")
        check(tailrace("verify", f"{directory}/{fault}.raw")[0] == 0, f"{fault}: what is committed is whole")


def in_turns():
    """method=mpiio_shared with a file for each step, several nodes, throttled storage, and a write that fails."""
    directory = fresh("methods-shared")
    threads = {"SMALL_MODEL_THREADS": "1"}
    code, _, err = run(5, arguments(f"{directory}/fc_{{lead:03h}}.raw", "format=raw method=mpiio_shared", LAST), TAILRACE_SERVERS="2", **threads)
    whole = sum((records_of(f"{directory}/fc_{hour:03}.raw") for hour in range(LAST + 1)), [])
    check(code == 0 and whole == records_of("methods-raw/scan.raw"), f"files of one step: {code}, {err}")
    nodes = faked_nodes()
    if nodes:
        launcher, settings = nodes
        code, _, err = run(6, arguments(f"{directory}/nodes.raw", "format=raw method=mpiio_shared", LAST), launcher=launcher, TAILRACE_SERVERS="node:1", **settings, **threads)
        check(code == 0 and records_of(f"{directory}/nodes.raw") == records_of("methods-raw/scan.raw"), f"two nodes: {code}, {err}")
    began = time.monotonic()
    code, _, err = run(3, arguments(f"{directory}/slow.raw", "format=raw method=mpiio_shared", LAST), TAILRACE_SERVERS="1", TAILRACE_THROTTLE="10kB/s", **threads)
    check(code == 0 and time.monotonic() - began > (LAST + 1) * STEP_BYTES / 10e3, f"throttled: {code}, {time.monotonic() - began} s, {err}")
    for fault in ("eio", "enospc"):
        for nth in (1, 2, 3):
            path = f"{directory}/{fault}{nth}.raw"
            code, _, err = run(3, arguments(path, "format=raw method=mpiio_shared", LAST), TAILRACE_SERVERS="2", TAILRACE_FAULT=f"nth={nth} fault={fault} calls=write", **threads)
            check(code == 1 and path in err, f"{path}: {code}, {err}")
            check(tailrace("verify", path)[0] == 0, f"{path}: what is committed is whole")
    left = [name for name in os.listdir(directory) if not name.endswith((".raw", ".trx", ".jsonl"))]
    check(not left, f"what the MPI has left: {left}")


def under_way():
    """method=writer_aio on throttled storage, with a file for each step, with values that need no encoder from 1 server, and with writes that fail."""
    directory = fresh("methods-aio")
    whole = contents("methods-raw/scan.raw")
    began = time.monotonic()
    code, _, err = run(3, arguments(f"{directory}/slow.raw", "format=raw method=writer_aio", LAST), TAILRACE_SERVERS="1", TAILRACE_THROTTLE="10kB/s,1ms", TAILRACE_LOG="info")
    check(code == 0 and time.monotonic() - began > (LAST + 1) * STEP_BYTES / 10e3, f"throttled: {code}, {time.monotonic() - began} s, {err}")
    check(contents(f"{directory}/slow.raw") == whole and "several writes of a file are under way by" in err, f"throttled: {err}")
    code, _, err = run(5, arguments(f"{directory}/fc_{{lead:03h}}.raw", "format=raw method=writer_aio", LAST), TAILRACE_SERVERS="2")
    steps = b"".join(contents(f"{directory}/fc_{hour:03}.raw") or b"" for hour in range(LAST + 1))
    check(code == 0 and steps == whole, f"files of one step: {code}, {err}")
    for servers in (1, 2):
        for fault in ("eio", "enospc", "short", "eintr"):
            path = f"{directory}/{fault}-s{servers}.raw"
            code, _, err = run(2 + servers, arguments(path, "format=raw method=writer_aio", LAST), TAILRACE_SERVERS=str(servers), TAILRACE_FAULT=f"nth=2 fault={fault} calls=write")
            if fault in ("short", "eintr"):
                check(code == 0 and contents(path) == whole, f"{fault}, {servers} servers: {code}, {err}")
                continue
            check(code == 1 and path in err, f"{fault}, {servers} servers: {code}, {err}")
            check(tailrace("verify", path)[0] == 0, f"{fault}, {servers} servers: what is committed is whole")


for format_of_files in FORMATS:
    every_method(*format_of_files)
under_way()
together()
in_turns()
chosen_by_the_setting()
refused()
finish()
