# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Reports as the library writes them, with the figures that a test wants."""
import datetime
import json
import os
import subprocess
import tempfile
from pathlib import Path

COMMAND = os.environ["TEST_COMMAND"]


def spread(total, count=4, most=None):
    each = total / count if count else 0.0
    return {"sum": total, "median": each, "p99": each if most is None else most, "max": each if most is None else most, "count": count}


def compute(rank, elapsed=100.0, **routines):
    """A compute rank. What is not said computes."""
    told = {"capture": 0.0, "staging_full": 0.0, "skew": 0.0, "message": 0.0, "barrier": 0.0, "get_wait": 0.0, **routines}
    told["model"] = elapsed - sum(told.values())
    return {"rank": rank, "role": "compute", "node": 0, "threads": 1, "elapsed_seconds": elapsed, "routines": told, "threads_routines": {}}


def server(rank, elapsed=100.0, encoders=2, storage=1, own=None, **routines):
    """A server: `own` are the routines of its own thread, the others those of its threads, of which some encode and some write. What is not said is idle."""
    threads = encoders + storage
    mine = {"assemble": 0.0, "message": 0.0, "barrier": 0.0, "wait_for_messages": 0.0, "wait_for_storage": 0.0, **(own or {})}
    mine["idle"] = elapsed - sum(mine.values())
    work = {"encode": 0.0, "assemble": 0.0, "write": 0.0, "fsync": 0.0, "commit": 0.0, "wait": 0.0, **routines}
    work["idle"] = threads * elapsed - sum(work.values())
    return {"rank": rank, "role": "server", "node": 0, "threads": threads, "encoders": encoders, "elapsed_seconds": elapsed, "routines": mine, "threads_routines": work}


def both(rank, elapsed=100.0, **routines):
    """A rank without servers: it computes and writes."""
    told = {"capture": 0.0, "encode": 0.0, "write": 0.0, "fsync": 0.0, "skew": 0.0, **routines}
    told["model"] = elapsed - sum(told.values())
    return {"rank": rank, "role": "compute and server", "node": 0, "threads": 1, "elapsed_seconds": elapsed, "routines": told, "threads_routines": {}}


def stream(name="fc.grib2", **more):
    told = {"name": name, "steps": 50, "method": "scan", "records": 500, "bytes_captured": 4_000_000_000, "bytes_in_intervals": 0, "bytes_written": 2_000_000_000,
            "compute": {"blocked_seconds": spread(1.6), "capture_seconds": spread(1.0), "staging_full_seconds": spread(0.0), "staging_full_count": 0, "skew_seconds": spread(0.0)},
            "servers": {"assemble_seconds": spread(1.0, 1), "encode_seconds": spread(9.0, 1), "write_seconds": spread(4.0, 1), "fsync_seconds": spread(2.0, 1),
                        "bytes_sent_between_nodes": 0, "workspace_peak_bytes": 1000, "rounds": 0, "waits_for_space": 0},
            "time_to_durable_seconds": {"sum": 20.0, "median": 0.4, "p99": 0.9, "max": 1.1, "count": 50},
            "files": 2, "durable_steps": 50, "last_durable": "2026-03-01T06:00Z", "bytes_staged_per_step": 80_000_000}
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(told.get(key), dict):
            told[key] = {**told[key], **value}
        else:
            told[key] = value
    return told


def reading(name="boundary.nc", late=0, memory=100, waited=0.0):
    told = stream(name, input={"gets_in_memory": memory, "gets_late": late, "wait_seconds": spread(waited), "records_read": 40, "bytes_read": 5_000_000})
    for key in ("method", "files", "durable_steps", "last_durable", "bytes_staged_per_step"):
        del told[key]
    return {**told, "records": 0, "bytes_captured": 0, "bytes_written": 0, "time_to_durable_seconds": spread(0.0, 0)}


def stamp(seconds_ago=0.0):
    return (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def report(processes=None, streams=None, **more):
    """A run of 100 s with 4 compute ranks and a server that is busy for 60 % of the time: nothing to advise."""
    if processes is None:
        processes = [compute(rank, capture=0.5) for rank in range(4)] + [server(4, own={"assemble": 60.0}, encode=40.0, write=8.0, fsync=4.0)]
    serving = sum(each["role"] == "server" for each in processes)
    return {"version": 2, "tailrace": "0.1.0", "state": "ended", "begun": "2026-11-30T21:49:53Z", "written": "2026-11-30T21:51:33Z", "elapsed_seconds": 100.0,
            "nodes": 1, "staging_bytes": 512 << 20, "compute_ranks": len(processes) - serving, "servers": serving,
            "executor": "servers" if serving else "inline", "processes": processes, "streams": [stream()] if streams is None else streams, **more}


def old_report():
    """As the library wrote it before version 2."""
    told = report()
    for key in ("version", "tailrace", "state", "begun", "written", "elapsed_seconds", "nodes", "staging_bytes", "processes"):
        del told[key]
    for key in ("files", "durable_steps", "last_durable", "bytes_staged_per_step"):
        del told["streams"][0][key]
    return told


def put(path, told):
    """Replaces a file as the library does."""
    Path(f"{path}.new").write_text(told if isinstance(told, str) else json.dumps(told), encoding="utf-8")
    os.replace(f"{path}.new", path)
    return str(path)


def tailrace(*arguments, **more):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8", timeout=60, stdin=subprocess.DEVNULL, **more)


class Files:
    """A directory for each test, and reports in it."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.count = 0

    def path(self, name="run.json"):
        return os.path.join(self.directory.name, name)

    def show(self, told, *options):
        """Returns what `tailrace report` prints of a report."""
        got = tailrace("report", put(self.path(), told), *options)
        self.assertEqual((got.returncode, got.stderr), (0, ""))
        return got.stdout

    def advice(self, told):
        """Returns the advice of a report by rule."""
        return {each["rule"]: each for each in json.loads(self.show(told, "--json"))["advice"]}
