# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The report of a running job, of one that has ended and of one that has failed, and the line at the end; without and with servers."""
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

LAST = 3
LINE = re.compile(r"^tailrace: 1 file, [0-9.]+ kB, durable; the model waited [0-9.]+ s of [0-9.]+ s$", re.M)
JSON = os.environ["TEST_JSON"] == "1"


def read(path, wanted, limit=60):
    """Waits until the report has what is wanted. It is whole whenever it is there."""
    end = time.monotonic() + limit
    while True:
        text = contents(path)
        report = json.loads(text) if text else {}
        if wanted(report) or time.monotonic() > end:
            return report
        time.sleep(0.05)


def running_and_ended(servers):
    directory = fresh(f"report-{servers}")
    path, trace, gate = f"{directory}/run.json", f"{directory}/trace.json", f"{directory}/go"
    # With 0 servers rank 0 writes the report in its calls: the pauses let a second pass before the last one.
    settings = {"TAILRACE_SERVERS": str(servers), "SMALL_MODEL_AWAITS": f"{LAST}:{gate}"}
    if JSON:
        settings.update(TAILRACE_REPORT=path, TAILRACE_TRACE=trace)
    command = [*MPIRUN, "-n", str(2 + servers), *arguments(f"{directory}/fc.raw", "format=raw", LAST, 0, 100 if servers else 600)]
    job = subprocess.Popen(command, env=environment(**settings), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    what = f"{servers} servers"
    try:
        if JSON:
            during = read(path, lambda report: report.get("streams") and report["streams"][0]["durable_steps"] > 0)
            check(during.get("state") == "running" and during.get("streams"), f"{what}: the report of the running job: {during}")
            check_times(during, f"{what}, running")
            if servers:
                # The model calls nothing now, and the server goes on telling the time.
                written = during["written"]
                later = read(path, lambda report: report["written"] > written)
                check(later["written"] > written and later["state"] == "running", f"{what}: rewritten while the model computes: {written}, {later['written']}")
    finally:
        with open(gate, "w", encoding="utf-8"):
            pass
        err = job.communicate(timeout=120)[1]
    check(job.returncode == 0, f"{what}: {job.returncode}, {err}")
    check(len(LINE.findall(err)) == 1 and err.count("tailrace:") == 1, f"{what}: one line says what happened: {err!r}")
    if not JSON:
        return
    report = json.loads(contents(path))
    check(report["state"] == "ended" and "error" not in report and report["version"] == 2, f"{what}: {report}")
    check(report["begun"] <= report["written"] and report["elapsed_seconds"] > 1 and report["nodes"] == 1, f"{what}: {report}")
    roles = [process["role"] for process in report["processes"]]
    check(roles == (["compute"] * 2 + ["server"] * servers if servers else ["compute and server"] * 2), f"{what}: {roles}")
    stream = report["streams"][0]
    check((stream["files"], stream["durable_steps"], stream["failed_steps"]) == (1, LAST + 1, 0) and stream["last_durable"] == f"lead {LAST * 3600} s", f"{what}: {stream}")
    check_times(report, what)
    check(not [name for name in os.listdir(directory) if ".tmp" in name], f"{what}: {os.listdir(directory)}")
    events = json.loads(contents(trace))["traceEvents"]
    writes = [event["args"] for event in events if event["name"] == "write"]
    check(writes and all({"stream", "field", "level", "lead"} <= set(args) for args in writes), f"{what}: spans of writes: {writes}")
    check({args["lead"] for args in writes} == {hour * 3600 for hour in range(LAST + 1)}, f"{what}: leads of writes: {writes}")
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    check({(event["pid"], event["tid"]) for event in events if event["ph"] == "X"} == named, f"{what}: threads with names: {named}")


def failed_and_silent(servers):
    """A job that ends without tr_finalize has failed; TAILRACE_LOG=error prints no line, nor does a session that does nothing."""
    directory = fresh(f"report-failed-{servers}")
    path = f"{directory}/run.json"
    more = {"TAILRACE_REPORT": path} if JSON else {}
    code, _, err = run(2 + servers, arguments(f"{directory}/a.raw", "format=raw", 1, 0, 0, "forget"), TAILRACE_SERVERS=str(servers), **more)
    check(code != 0 and "durable" not in "".join(LINE.findall(err)), f"{servers} servers, no tr_finalize: {code}, {err}")
    if JSON:
        report = json.loads(contents(path) or "{}")
        check(report.get("state") == "failed" and "MPI_Finalize was called before tr_finalize" in report.get("error", ""), f"{servers} servers, no tr_finalize: {report}")
    code, _, err = run(2 + servers, arguments(f"{directory}/b.raw", "format=raw", 1), TAILRACE_SERVERS=str(servers), TAILRACE_LOG="error")
    check(code == 0 and err == "", f"{servers} servers, TAILRACE_LOG=error: {code}, {err!r}")


def lost_step():
    """A step that fails is no durable one, and the report has its error."""
    directory = fresh("report-lost")
    path = f"{directory}/run.json"
    more = {"TAILRACE_REPORT": path} if JSON else {}
    code, _, err = run(3, arguments(f"{directory}/fc.raw", "format=raw", 2), TAILRACE_SERVERS="1", TAILRACE_FAULT="nth=2 fault=eio calls=write", **more)
    check(code == 1 and not LINE.search(err) and re.search(r"^tailrace: 1 file, [0-9.]+ kB durable, but [0-9] of 3 steps failed; the model waited", err, re.M), f"a failed step: {code}, {err}")
    if JSON:
        report = json.loads(contents(path))
        check(report["state"] == "failed" and "Input/output error" in report["error"] and report["streams"][0]["failed_steps"] > 0, f"a failed step: {report}")


def slow_and_full():
    """Each call of storage takes long, and a write finds no room: the times of commits and of the wait for room grow, beside a run on the disk as it is."""
    if not JSON:
        return
    directory = fresh("report-slow")
    spent = {}
    for name, settings in (("fast", {}), ("slow", {"TAILRACE_THROTTLE": "100MB/s,100ms"}), ("full", {"TAILRACE_FAULT": "nth=2 fault=enospc calls=write"})):
        path = f"{directory}/{name}.json"
        code, _, err = run(2, arguments(f"{directory}/{name}.raw", "format=raw on_full=wait:1m", 1), TAILRACE_SERVERS="1", TAILRACE_REPORT=path, **settings)
        check(code == 0, f"{name}: {code}, {err}")
        report = json.loads(contents(path) or "{}")
        check_times(report, name)
        servers = report["streams"][0]["servers"]
        spent[name] = {"waits_for_space": servers["waits_for_space"], **{key: servers[key]["sum"] for key in ("commit_seconds", "wait_seconds")}}
        (server,) = [each for each in report["processes"] if each["role"] == "server"]
        check(abs(server["threads_routines"]["commit"] - spent[name]["commit_seconds"]) < 1e-6, f"{name}: the server's own figures: {server}")
        check(abs(server["threads_routines"]["wait"] - spent[name]["wait_seconds"]) < 1e-6, f"{name}: the server's own figures: {server}")
    # A commit opens and writes the index; two steps and the closing record are three.
    check(spent["slow"]["commit_seconds"] > 0.3 and spent["slow"]["commit_seconds"] > spent["fast"]["commit_seconds"] + 0.2, f"commits: {spent}")
    check(spent["full"]["waits_for_space"] == 1 and spent["full"]["wait_seconds"] > 0, f"the wait for room: {spent}")
    check([spent[name]["wait_seconds"] for name in ("fast", "slow")] == [0, 0], f"nobody waited for room: {spent}")


for servers in (0, 1):
    running_and_ended(servers)
    failed_and_silent(servers)
lost_step()
slow_and_full()
finish()
