# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Every method of writing, in every format, with any number of servers: the same bytes, or where a method gives the records of a step
no order the same records; what is no method is refused.
    methods_test.py MODEL OTHER_FILE_SYSTEM HANGING_WINDOW"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

OPTIONS = {"netcdf4": "compress=deflate:1", "zarr": "compress=gzip"}  # that make records of many sizes
STORES = written_formats("store")
PLACED = ("cdf5", *STORES)  # each record of a step has its place
METHODS = ("serial", "offset_guard", "offset_sharing", "writer", "writer_aio", "mpiio", "mpiio_shared")
ANY_ORDER = ("offset_guard", "offset_sharing", "mpiio_shared")  # of the records of a step, in formats without places
LAST = 2


def check_rounds(report, method, what):
    """A collective method has written each step in rounds of all servers, and no other method has."""
    if not os.path.exists(report):
        return  # built without reports
    check_times(json.loads(contents(report)), what)
    rounds = [each["servers"]["rounds"] for each in json.loads(contents(report))["streams"]]
    os.remove(report)
    check(len(rounds) == 1 and (rounds[0] > LAST if method == "mpiio" else rounds[0] == 0), f"{what}: {rounds} rounds")


def check_way(report, method, name, what):
    """The report tells by what several writes are under way: objects of a store are written one after another."""
    if not os.path.exists(report):
        return
    told = [each.get("writes_by") for each in json.loads(contents(report))["streams"]]
    expected = ("calls",) if name in STORES else ("io_uring", "posix_aio")
    check(len(told) == 1 and (told[0] in expected if method == "writer_aio" else told[0] is None), f"{what}: written by {told}")


def every_method(name, ending):
    directory = fresh(f"methods-{name}")
    options, ending = OPTIONS.get(name, ""), "." + ending
    whole = f"{directory}/scan{ending}"
    code, _, err = run(1, arguments(whole, f"format={name} {options}", LAST))
    check(code == 0, f"{name}: {code}, {err}")
    for method in METHODS:
        if (method == "mpiio" and name in STORES) or (method == "mpiio_shared" and name in PLACED):
            continue
        for ranks, servers in scenes(True) if ALL or name == "grib2" else ((3, 2),):
            path = f"{directory}/{method}-r{ranks}s{servers}{ending}"
            code, _, err = run(ranks + servers, arguments(path, f"format={name} {options} method={method}", LAST), TAILRACE_SERVERS=str(servers), TAILRACE_REPORT=f"{directory}/report.json",
                               **{**method_settings(method), "SMALL_MODEL_THREADS": "1"})
            what = f"{name}, method={method}, {ranks} ranks, {servers} servers"
            check(code == 0, f"{what}: {code}, {err}")
            check_way(f"{directory}/report.json", method, name, what)
            check_rounds(f"{directory}/report.json", method, what)
            if method in ANY_ORDER and name not in PLACED:
                check(records_of(path) == records_of(whole), f"{what}: other records")
                check(tailrace("verify", path)[0] == 0, f"{what}: verify finds something")
            else:
                check(image(path) == image(whole), f"{what}: other bytes")


def preloading(library):
    """The words in front of a program that load a library into each rank, beside what the launcher preloads for its MPI."""
    return ["sh", "-c", f'LD_PRELOAD="{library}${{LD_PRELOAD:+:$LD_PRELOAD}}" exec "$0" "$@"']


def counted():
    """method=offset_sharing: one-sided where the MPI has it, else by messages, which report and log tell; with 0 servers by the setting."""
    directory = fresh("methods-counted")
    for servers, settings, nodes in ((2, {}, None), (3, {"TAILRACE_METHOD": "offset_sharing"}, None), (0, {"TAILRACE_METHOD": "offset_sharing"}, None),
                                     (0, {}, None), (1, {}, None), ("node:1", {}, faked_nodes())):
        launcher, more = nodes or (None, {})
        if servers == "node:1" and not nodes:
            continue
        what = f"offset_sharing, servers={servers}, {settings}"
        path, report = f"{directory}/fc.raw", f"{directory}/report.json"
        count = 6 if nodes else 3 + servers
        code, _, err = run(count, arguments(path, "format=raw" if settings else "format=raw method=offset_sharing", LAST), **({"launcher": launcher} if launcher else {}),
                           TAILRACE_SERVERS=str(servers), TAILRACE_REPORT=report, TAILRACE_LOG="info", **settings, **more)
        check(code == 0 and records_of(path) == records_of("methods-raw/scan.raw"), f"{what}: {code}, {err}")
        told = [line for line in err.splitlines() if "servers take offsets by" in line]
        check(len(told) == (0 if servers == 1 else 1), f"{what}: the log says once how offsets are taken, if servers share them: {told}")
        one_sided = "by one-sided adds" in told[0] if told else False
        print(what, ":", *told, flush=True)
        if servers == 0 and not settings:
            check(told and "every rank serves itself" in told[0], f"{what}: {told}")
        if os.path.exists(report):
            expected = [None if servers == 1 else "one-sided" if one_sided else "messages"]
            offsets = [each.get("offsets") for each in json.loads(contents(report))["streams"]]
            check(offsets == expected, f"{what}: the report has {offsets}, expected {expected}")
            os.remove(report)
        for name in (path, path + ".trx"):
            os.remove(name)
    code, _, err = run(4, arguments(f"{directory}/places.nc", "format=cdf5 method=offset_sharing", LAST), TAILRACE_SERVERS="2", TAILRACE_LOG="info")
    check(code == 0 and "servers make a window" not in err and "servers take offsets" not in err, f"a format with places needs no counters: {code}, {err}")
    for servers in (0, 2):
        code, _, err = run(2 + servers, preloading(sys.argv[3]) + arguments(f"{directory}/hangs.raw", "format=raw", LAST), TAILRACE_SERVERS=str(servers),
                           TAILRACE_METHOD="offset_sharing", TAILRACE_WATCHDOG="1s", TAILRACE_TIMEOUT="3s")
        check(code not in (0, 124) and "has waited 1 s for MPI_Win_allocate" in err and "gives up (TAILRACE_TIMEOUT)" in err, f"the MPI hangs, {servers} servers: {code}, {err}")
    for fault in ("eio", "enospc"):
        path = f"{directory}/{fault}.raw"
        code, _, err = run(5, arguments(path, "format=raw method=offset_sharing", LAST), TAILRACE_SERVERS="2", TAILRACE_FAULT=f"nth=2 fault={fault} calls=write")
        check(code == 1 and path in err, f"{fault}: {code}, {err}")
        check(tailrace("verify", path)[0] == 0, f"{fault}: what is committed is whole")
        stands = [lead for lead, _ in records_of(path)]
        whole = records_of("methods-raw/scan.raw")
        check(0 < len(stands) <= LAST and stands[-1] == whole[-1][0], f"{fault}: a step fails, and the next one stands: {stands}")
        check(records_of(path) == [step for step in whole if step[0] in stands], f"{fault}: other records")
        check(len(contents(path)) == len(stands) * STEP_BYTES, f"{fault}: {len(contents(path))} bytes for {len(stands)} steps: the failed one was not cut off")


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


def chosen_by_the_file_system():
    """method=auto: rank 0 looks at the file system (here what a preloaded library tells of it), and all ranks take its choice."""
    directory = fresh("methods-auto")
    nodes = faked_nodes()
    for number, setup, options, settings, expected, words in (
            ("ef53", None, "method=auto", {}, "scan", "ext4 bears many writers"), ("6969", None, "method=auto", {}, "scan", "all servers are on one"),
            ("65735546", None, "", {"TAILRACE_METHOD": "auto"}, "writer", "on FUSE each file should have one writer"), ("12345", None, "method=auto", {}, "scan", "is not known"),
            ("6969", nodes, "method=auto", {}, "writer", "on NFS writers of one file on 2 nodes")):
        if words.startswith("on NFS") and not setup:
            continue
        launcher, more = setup or (None, {})
        path, report = f"{directory}/fc.raw", f"{directory}/report.json"
        code, _, err = run(6 if setup else 4, preloading(sys.argv[2]) + arguments(path, f"format=raw {options}", LAST), **({"launcher": launcher} if setup else {}), **more, **settings,
                           TAILRACE_SERVERS="node:1" if setup else "2", TAILRACE_REPORT=report, TAILRACE_LOG="info", TEST_FILE_SYSTEM=number)
        what = f"auto on {number}, {options} {settings}"
        check(code == 0 and contents(path) == contents("methods-raw/scan.raw"), f"{what}: {code}, {err}")
        check(err.count(f"method=auto takes {expected}: ") == 1 and words in err, f"{what}: {err}")
        if os.path.exists(report):
            (told,) = json.loads(contents(report))["streams"]
            check(told["method"] == expected and words in told["method_chosen"], f"{what}: {told}")
        for name in (path, path + ".trx"):
            os.remove(name)


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
    threads = method_settings("mpiio_shared")
    if MPI == "openmpi":
        code, _, err = run(4, arguments(f"{directory}/ompio.raw", "format=raw", LAST), TAILRACE_SERVERS="2", **{**threads, "OMPI_MCA_io": "ompio"})
        check(code != 0 and "set OMPI_MCA_io=^ompio" in err and not os.path.exists(f"{directory}/ompio.raw"), f"OMPIO: {code}, {err}")
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


def two_at_once():
    """Two streams whose files have the same name in different directories."""
    for method in ("mpiio", "mpiio_shared", "writer_aio"):
        directory = fresh(f"methods-twin-{method}")
        os.makedirs(f"{directory}/there")
        paths = f"{directory}/fc.raw", f"{directory}/there/fc.raw"
        code, _, err = run(4, arguments(paths[0], "format=raw", LAST), TAILRACE_SERVERS="2", SMALL_MODEL_TWIN=paths[1], **method_settings(method))
        check(code == 0, f"two streams, {method}: {code}, {err}")
        for path in paths:
            check(records_of(path) == records_of("methods-raw/scan.raw"), f"{path}: other records")


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


for format_and_ending in written_formats().items():
    every_method(*format_and_ending)
under_way()
together()
in_turns()
counted()
two_at_once()
chosen_by_the_setting()
chosen_by_the_file_system()
refused()
finish()
