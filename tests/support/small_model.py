# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Runs tests/mpi/small_model.cpp for test scripts. Every launch has a limit of time; a launch that takes longer is
killed."""
import json
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time

MPIRUN = shlex.split(os.environ["TEST_MPIRUN"])
COMMAND = os.environ.get("TEST_COMMAND", "")
MPI = os.environ["TEST_MPI"]
MODEL = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""  # some tests run other programs
ALL = "TEST_ALL" in os.environ  # ./dev test --all
NX, NY, LEVELS = 13, 11, 3
STEP_BYTES = NX * NY * LEVELS * (8 + 4)
# The most seconds of one launch or command. While compilers and other tests run, it may stand still for a minute
# (CONTRIBUTING.md).
LIMIT = 120

failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what, flush=True)
    return condition


def finish():
    print(f"{len(failures)} failures", flush=True)
    sys.exit(1 if failures else 0)


def fresh(directory):
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    return directory


def environment(**settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TAILRACE_")}
    # Open MPI's launcher sleeps for this many seconds (1 if nobody says) after a rank has ended with an error, before it
    # kills the others. In half of the launches here ranks end so on purpose, with nothing to do behind MPI_Finalize.
    env.update(TAILRACE_STAGING="16MiB", OMPI_MCA_odls_base_sigkill_timeout="0")
    env.update(settings)
    return env


def written_formats(kind=""):
    """Returns {format: ending} of the formats that this build writes, in the order of the registry; with `kind` those that are "variables" or "store"."""
    lines = subprocess.run([os.environ["TEST_FORMATS"]], check=True, capture_output=True, text=True, timeout=LIMIT).stdout.splitlines()
    rows = [line.split() for line in lines]
    return {row[0]: row[1] for row in rows if not kind or kind in row[2:]}


def scenes(is_first):
    """Returns pairs of a number of compute ranks and a number of servers, for a test that compares them for several
    formats. The first format gets all pairs. The other formats get two pairs, or all with ./dev test --all."""
    return ((1, 0), (3, 0), (2, 1), (3, 2), (2, 3)) if is_first or ALL else ((1, 0), (3, 2))


def arguments(pattern, options, last, first=0, pause=0, *more):
    return [MODEL, pattern, options, str(first), str(last), str(pause), *more]


def run(ranks, args, limit=LIMIT, launcher=(), **settings):
    """Launches `args` on MPI ranks, and waits. Returns (exit code, standard output, standard error)."""
    command = [*MPIRUN, *launcher, "-n", str(ranks), *args]
    started = subprocess.Popen(command, env=environment(**settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, start_new_session=True)
    try:
        out, err = started.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGTERM)
        time.sleep(2)
        try:
            os.killpg(started.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        out, err = started.communicate()
        check(False, f"{' '.join(command)} did not end within {limit} s: {err[-2000:]}")
        return 124, out, err
    return started.returncode, out, err


def faked_nodes(ranks_alone=0):
    """Returns (flags of the launcher, settings) with which this machine looks to MPI like two nodes, or with
    `ranks_alone` like so many nodes of one rank each. Returns None where that is not possible."""
    if MPI == "mpich":
        return [], {"MPIR_CVAR_NOLOCAL" if ranks_alone else "MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}
    if MPI != "openmpi" or os.geteuid() != 0:
        return None
    agent = os.path.abspath("agent.sh")
    with open(agent, "w") as file:
        file.write('#!/bin/sh\n# Runs what Open MPI would start over ssh here, under another host name.\n'
                   'while [ "${1#-}" != "$1" ]; do shift; done\nhost=$1; shift\n'
                   'exec unshare -u sh -c "hostname $host; $*"\n')
    os.chmod(agent, 0o755)
    if subprocess.run(["unshare", "-u", "true"]).returncode != 0:
        return None
    hosts = ",".join(f"node{number}:1" for number in range(ranks_alone)) or "nodea:3,nodeb:3"
    return ["--mca", "plm_rsh_agent", agent, "-H", hosts, "--map-by", "node", "--mca",
            "plm_rsh_no_tree_spawn", "1", "--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"], {}


def contents(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def image(path):
    """Returns the bytes of a file, or of all objects of a store by name."""
    if os.path.isfile(path):
        return contents(path)
    return {os.path.relpath(os.path.join(folder, name), path): contents(os.path.join(folder, name))
            for folder, _, names in os.walk(path) for name in names}


def tailrace(*args, limit=LIMIT):
    done = subprocess.run([COMMAND, *args], capture_output=True, text=True, timeout=limit)
    return done.returncode, done.stdout, done.stderr


def records_of(path):
    """The records of each step, with their bytes, in no order."""
    code, out, err = tailrace("index", path, "--json", "--records")
    check(code == 0, f"index of {path}: {code}, {err}")
    data = contents(path)
    return [(step["lead"], sorted((each["field"], each["level"], data[each["offset"]:each["offset"] + each["length"]]) for each in step["records"]))
            for step in json.loads(out)["steps"]]


def method_settings(name):
    """The settings of a run with this method. MPI-IO needs MPI_THREAD_MULTIPLE, and shared file pointers of Open MPI need ROMIO."""
    threads = {"SMALL_MODEL_THREADS": "1"} if name.startswith("mpiio") else {}
    return {"TAILRACE_METHOD": name, **threads, **({"OMPI_MCA_io": "^ompio"} if name == "mpiio_shared" else {})}


def raw_steps(path, first, last):
    """True if a raw file holds the steps of these hours. Compares the first value of each step, which is known."""
    data = contents(path)
    if data is None or len(data) != (last - first + 1) * STEP_BYTES:
        return False
    import math
    for number in range(last - first + 1):
        (got,) = struct.unpack_from("<d", data, number * STEP_BYTES)
        if not math.isclose(got, 100.0 * math.sin(0.1 * (first + number)), rel_tol=1e-12, abs_tol=1e-9):
            return False
    return True


def check_times(report, what):
    """Each process of a report tells where all of its time went."""
    for process in report["processes"]:
        elapsed = process["elapsed_seconds"]
        name = f"{what}, rank {process['rank']}"
        for key, expected in (("routines", elapsed), ("threads_routines", elapsed * process["threads"])):
            if key not in process:
                continue
            times = process[key]
            check(abs(sum(times.values()) - expected) < 1e-6 + 1e-6 * expected, f"{name}: {key} sum to {sum(times.values())}, expected {expected}")
            check(min(times.values()) >= 0, f"{name}: {times}")
        check(elapsed > 0, f"{name}: {process}")
