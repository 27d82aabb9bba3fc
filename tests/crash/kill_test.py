# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""kill -9 of every process of a run, at several instants: the index tells whole steps, nothing is left behind, `tailrace repair` cuts
back, and a run that continues, also with another method, ends with the bytes of an undisturbed one."""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

LAST = 11  # hours


def in_shared_places():
    """What lies there, but for the MPI libraries' own."""
    return {f"{place}/{name}" for place in ("/dev/shm", "/tmp") for name in os.listdir(place)
            if "tailrace" in name.lower() or name.startswith(("tr_", "memfd"))}


def left_behind(before, limit=90):
    """What is new in the shared places and stays. Tests that run beside this one have names there for a while."""
    names = in_shared_places() - before
    until = time.time() + limit
    while names and time.time() < until:
        time.sleep(0.2)
        names &= in_shared_places()
    return names


def committed(path):
    code, out, err = tailrace("index", path, "--json")
    if code != 0:
        return None
    return [step["lead"] // 3600 for step in json.loads(out)["steps"]]


def kill_everything(process):
    for pid in [process.pid, *map(int, os.listdir("pids"))]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
    # A process is gone once init or its parent has seen it end.
    for pid in map(int, os.listdir("pids")):
        for _ in range(200):
            try:
                with open(f"/proc/{pid}/stat") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] in "ZX":
                        break
            except FileNotFoundError:
                break
            time.sleep(0.02)


def is_same(path, reference, steps, keeps_order):
    """True if the first steps of the file are those of the reference: byte for byte, or if the method gives records of a step no order, record by record."""
    if keeps_order:
        return contents(path)[:steps * STEP_BYTES] == reference[:steps * STEP_BYTES]
    return records_of(path)[:steps] == records_of("undisturbed/fc.raw")[:steps]


def interrupted_run(path, servers, after_steps, delay, settings):
    fresh("pids")
    process = subprocess.Popen([*MPIRUN, "-n", str(2 + servers), *arguments(path, "format=raw", LAST, 0, 40)],
                               env=environment(TAILRACE_SERVERS=str(servers), SMALL_MODEL_AWAITS=f"{LAST}:killed/never", **settings),
                               stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    until = time.time() + 60
    while time.time() < until and process.poll() is None:
        if os.path.exists(path + ".trx") and len(committed(path) or []) >= after_steps:
            break
        time.sleep(0.005)
    time.sleep(delay)
    kill_everything(process)


def files_of_mpi(directory):
    """What the MPI, or a trial of appends, has made beside the outputs."""
    return {name for name in os.listdir(directory) if ".shfp" in name or ".trial" in name or name.endswith(".lock") and "-" in name}


def crash_and_continue(reference, servers, after_steps, delay, first="scan", then="scan"):
    what = f"servers={servers}, {first} and then {then}, killed {delay} s after step {after_steps}"
    directory = fresh(f"killed-s{servers}-{after_steps}-{first}")
    path = f"{directory}/fc.raw"
    interrupted_run(path, servers, after_steps, delay, method_settings(first))
    left_by_kill = files_of_mpi(directory)
    check(len(left_by_kill) <= ("mpiio_shared" in first), f"{what}: beside the file are {left_by_kill}")
    steps = committed(path)
    if not check(steps is not None and len(steps) >= after_steps, f"{what}: the index tells {steps}"):
        return
    check(steps == list(range(len(steps))), f"{what}: the index tells {steps}")
    check(len(steps) <= LAST, f"{what}: the run was over before it was killed")
    whole = len(steps) * STEP_BYTES
    keeps_order = not {"mpiio_shared", "offset_sharing"} & {first, then}
    check(is_same(path, reference, len(steps), keeps_order), f"{what}: committed bytes differ")

    copy = f"{directory}/repaired.raw"
    for ending in ("", ".trx"):
        with open(copy + ending, "wb") as file:
            file.write(contents(path + ending))
    code, out, err = tailrace("repair", copy)
    check(code == 0, f"{what}: repair ended with {code}: {err}")
    check(len(contents(copy)) == whole and is_same(copy, reference, len(steps), keeps_order), f"{what}: the repaired file has not the whole steps alone")
    check(committed(copy) == steps, f"{what}: the repaired index tells {committed(copy)}")

    code, out, err = run(2 + servers, arguments(path, "format=raw existing=continue", LAST, len(steps)),
                         TAILRACE_SERVERS=str(servers), **method_settings(then))
    check(code == 0, f"{what}: the run that continues ended with {code}: {err}")
    check(files_of_mpi(directory) <= left_by_kill, f"{what}: the run that continues has left {files_of_mpi(directory) - left_by_kill}")
    check(len(contents(path)) == len(reference) and is_same(path, reference, LAST + 1, keeps_order), f"{what}: the continued file differs from the undisturbed one")
    check(committed(path) == list(range(LAST + 1)), f"{what}: the continued index tells {committed(path)}")


before = in_shared_places()
fresh("undisturbed")
code, out, err = run(1, arguments("undisturbed/fc.raw", "format=raw", LAST))
check(code == 0, f"the undisturbed run ended with {code}: {err}")
reference = contents("undisturbed/fc.raw")
check(raw_steps("undisturbed/fc.raw", 0, LAST), "the undisturbed file is not what the model has")
for servers in (0, 2):
    for after_steps, delay in ((1, 0.0), (4, 0.013), (8, 0.031)):
        crash_and_continue(reference, servers, after_steps, delay)
crash_and_continue(reference, 2, 3, 0.007, "mpiio", "writer")
crash_and_continue(reference, 0, 5, 0.003, "mpiio", "mpiio")
for servers, after_steps, delay, first, then in ((2, 2, 0.005, "offset_sharing", "offset_sharing"), (3, 6, 0.011, "offset_sharing", "scan"), (0, 4, 0.009, "scan", "offset_sharing")):
    crash_and_continue(reference, servers, after_steps, delay, first, then)
crash_and_continue(reference, 2, 4, 0.005, "writer_aio", "mpiio")
crash_and_continue(reference, 1, 6, 0.001, "writer_aio", "writer_aio")
crash_and_continue(reference, 2, 2, 0.004, "mpiio_shared", "mpiio_shared")
crash_and_continue(reference, 2, 7, 0.002, "mpiio_shared", "scan")
crash_and_continue(reference, 0, 7, 0.006, "scan", "mpiio_shared")
left = left_behind(before)
check(not left, f"left behind: {sorted(left)}")
finish()
