# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Every form of TAILRACE_SERVERS under the launcher, several programs in one job, and nodes without a server."""
import os
import re
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

HOST = socket.gethostname()


def servers_of(out):
    return sorted(int(rank) for rank in re.findall(r"rank (\d+) served", out))


def form(text, ranks, expected, name):
    path = f"forms/{name}.raw"
    code, out, err = run(ranks, arguments(path, "format=raw", 1), TAILRACE_SERVERS=text)
    check(code == 0, f"TAILRACE_SERVERS={text}: {code}, {err}")
    check(servers_of(out) == expected, f"TAILRACE_SERVERS={text} made {servers_of(out)} servers, not {expected}")
    check(contents(path) == reference, f"TAILRACE_SERVERS={text}: other bytes")


def refused(text, ranks, words):
    code, out, err = run(ranks, arguments("forms/never.raw", "format=raw", 1), limit=30, TAILRACE_SERVERS=text)
    check(code != 0 and words in err, f"TAILRACE_SERVERS={text}: {code}, {err}")
    check(not os.path.exists("forms/never.raw"), f"TAILRACE_SERVERS={text} wrote a file")


def several_programs():
    other = os.path.abspath("forms/io_server")
    if os.path.lexists(other):
        os.remove(other)
    with open(MODEL, "rb") as source, open(other, "wb") as copy:  # a link would show the name of what it leads to
        copy.write(source.read())
    os.chmod(other, 0o755)
    path = "forms/mpmd.raw"
    model = arguments(path, "format=raw", 1)
    code, out, err = run(2, [*model, ":", "-n", "1", other, *model[1:]], TAILRACE_SERVERS="app:io_server")
    check(code == 0 and servers_of(out) == [2], f"app:io_server: {code}, {out} {err}")
    check(contents(path) == reference, "app:io_server: other bytes")
    code, out, err = run(1, [other, *model[1:], ":", "-n", "2", *model], TAILRACE_SERVERS="app:io_server")
    check(code == 0 and servers_of(out) == [0], f"app:io_server first: {code}, {out} {err}")
    check(contents(path) == reference, "app:io_server first: other bytes")


def nodes_without_a_server():
    faked = faked_nodes()
    if faked is None:
        print("nodes cannot be faked here: neither MPICH nor root with Open MPI", flush=True)
        return
    flags, settings = faked
    # Ranks alternate between the two nodes: 0, 2, 4 and 1, 3, 5.
    for text, expected, progress in (("ranks:5", [5], "caller"), ("ranks:3,5", [3, 5], "caller"),
                                     ("node:1", [4, 5], "servers"), ("4", [2, 3, 4, 5], "servers"), ("0", [], "servers")):
        path = f"forms/nodes-{text.replace(':', '-')}.raw"
        code, out, err = run(6, arguments(path, "format=raw", 1), launcher=flags, TAILRACE_SERVERS=text,
                             TAILRACE_LOG="info", **settings)
        check(code == 0, f"two nodes, TAILRACE_SERVERS={text}: {code}, {err}")
        check(servers_of(out) == expected, f"two nodes, TAILRACE_SERVERS={text} made servers of {servers_of(out)}")
        check(contents(path) == reference, f"two nodes, TAILRACE_SERVERS={text}: other bytes")
        if text != "0":
            check(f"progress={progress}" in err, f"two nodes, TAILRACE_SERVERS={text}: not progress={progress}: {err}")


def plan_of_a_node():
    """The plan says, once a node, where the ranks may run and whether the staging has huge pages."""
    model = arguments("forms/plan.raw", "format=raw", 1)
    settings = {"TAILRACE_SERVERS": "1", "TAILRACE_THREADS": "2", "TAILRACE_LOG": "info"}
    one_cpu = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    code, out, err = run(3, [*one_cpu, *model], **settings)
    check(code == 0, f"on one CPU: {code}, {err}")
    check(err.count(f"plan: host {HOST}: ranks=3 cpus=1 encoding=2; server rank 2 has 4 threads on CPU") == 1 and
          "--bind-to none" in err, f"a server of four threads on one CPU is not reported: {err}")
    check(len(re.findall(r"plan: host \S+: huge pages for \d+ of \d+ bytes of staging", err)) == 1,
          f"huge pages are not reported: {err}")
    code, out, err = run(3, model, **{**settings, "TAILRACE_HUGE_PAGES": "off"})
    check(code == 0 and "huge pages" not in err, f"huge pages are reported though not asked for: {err}")
    code, out, err = run(2, model, TAILRACE_SERVERS="0", TAILRACE_LOG="info")
    check(code == 0 and f"plan: host {HOST}: ranks=2 cpus=" in err and "threads on" not in err,
          f"without servers there are no threads to report: {err}")


fresh("forms")
code, out, err = run(1, arguments("forms/reference.raw", "format=raw", 1))
reference = contents("forms/reference.raw")
check(code == 0 and raw_steps("forms/reference.raw", 0, 1), f"the one-rank run: {code}, {err}")
form("1", 3, [2], "count")
form("node:2", 4, [2, 3], "node")
form("last:2", 4, [2, 3], "last")
form("ranks:0,2", 4, [0, 2], "ranks")
refused("hosts:" + HOST, 2, "0 compute ranks")
refused("hosts:nowhere", 2, "nowhere, on which no rank runs")
refused("app:nothing", 2, "every rank of the program nothing")
refused("7", 2, "start more ranks or ask for other servers")
refused("nodes:1", 2, "did you mean")
several_programs()
plan_of_a_node()
nodes_without_a_server()
finish()
