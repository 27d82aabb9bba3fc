# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A program that writes a shared file over and over with little memory is ended in several ways: the next one, on other ranks, finds the
content of one flush, whole, and no older than the last that was told to be done. As long as one of its processes is there, no other program
may bring the file back.
    shared_kill_test.py MODEL [--seed N] [--rounds N]"""
import argparse
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from killed_job import Job, end_all, is_alive  # noqa: E402
from small_model import *  # noqa: E402,F403

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--seed", type=int, default=int(time.time()))
parser.add_argument("--rounds", type=int, default=(120 if ALL else 9) if MPI == "openmpi" else (50 if ALL else 6))
given = parser.parse_args()
chance = random.Random(given.seed)
place = os.path.abspath(fresh("shared-kill"))
story = []
least = 0
in_place = 0  # lives that ended while FILE.undo was there


def must(condition, what):
    if not check(condition, f"seed {given.seed}: {'; '.join(story[-6:])}: {what}"):
        end_all()
        finish()


def start(steps, ranks=None):
    ranks = ranks or chance.choice((1, 2, 3, 3, 5))
    mode, safety = chance.choice((("r+", "journal"), ("a+", "journal"), ("r+", "journal"), ("w+", "rename")))
    options = f"safety={safety} page=4KiB memory={chance.choice((16, 32, 200)) * ranks}KiB"
    story.append(f"{ranks} ranks, {mode}, {options}")
    settings = {"TAILRACE_AGGREGATORS": str(chance.choice((1, 2, 4)))}
    words = [*MPIRUN, "-n", str(ranks), MODEL, f"{place}/file", mode, options, str(steps)]
    with open(f"{place}/told", "w"):
        pass
    return Job(words, environment(**settings), place)


def judge(job):
    """After the end of a program: what it found, and what it told. Lines that a killed launcher had not passed on are in the file."""
    global least
    with open(f"{place}/told", encoding="ascii") as file:
        told = [line.split() for line in file]
    must(not any(line.startswith("BAD") for line in job.lines), f"{job.lines[-20:]}")
    for word, step in told:
        must(word != "found" or least <= int(step) <= least + 1, f"found {step}, and {least} was flushed")
        least = int(step)
        if word == "found":
            story.append(f"found {step}")


def kill_all(job):
    job.kill_all()


def kill_one_first(job):
    job.signal_one(chance.choice(job.ranks()), signal.SIGKILL)
    time.sleep(0.1 * chance.random())
    job.kill_all()


def ask_to_end(job):
    """As a user does, or a batch system before the job's end. MPICH's launcher passes the signal on, and a program that has not
    asked whether it is to stop goes on."""
    job.signal_one(job.process.pid, signal.SIGTERM)
    if MPI == "openmpi":
        must(job.ended_within(LIMIT), "SIGTERM does not end it")
    elif not job.ended_within(chance.random()):
        job.kill_all()


def end_by_time_limit(job):
    """As a batch system does: first a warning to all processes, soon afterwards their end."""
    for pid in job.ranks():
        job.signal_one(pid, signal.SIGTERM)
    time.sleep(0.05 * chance.random())
    job.kill_all()


def live(number):
    """A life of the file that ends by force."""
    global in_place
    job = start(1000000)
    # Each third life ends early, the others after some flushes, however long these take.
    flushes = (0, 2, 4)[number % 3]
    must(job.wait_for(r"flushed \d+" if flushes else r"found \d+", LIMIT, max(flushes, 1)), f"did not begin: {job.lines[-20:]}")
    time.sleep(0.3 * chance.random() ** 2)
    must(job.process.poll() is None, f"ended before it was killed: {job.lines[-20:]}")
    end = chance.choice((kill_all, kill_all, kill_one_first, kill_one_first, ask_to_end, end_by_time_limit))
    story.append(end.__name__)
    end(job)
    in_place += os.path.exists(f"{place}/file.undo")
    judge(job)


def live_well():
    """A life that ends with a close, which leaves nothing beside the file."""
    job = start(chance.choice((1, 2, 3)))
    must(job.ended_within(LIMIT) and job.process.returncode == 0, f"did not end well: {job.lines[-20:]}")
    judge(job)
    left = sorted(name for name in os.listdir(place) if name.startswith("file."))
    must(left == [], f"{left} are left by a program that has closed its file")


def launchers(job):
    """The processes between the launcher and its ranks, and itself."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parents[int(name)] = int(file.read().rsplit(")", 1)[1].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            pass
    found = [job.process.pid]
    for pid in found:
        found += [each for each, parent in parents.items() if parent == pid and each not in job.ranks()]
    return found


def outlive_first_rank():
    """The first rank is killed, and nobody tells the others: they may still store, and so nobody else may use the file."""
    story.append("first rank killed, others stay")
    job = start(1000000, 3)
    must(job.wait_for(r"flushed \d+", LIMIT), f"did not begin: {job.lines[-20:]}")
    stopped = launchers(job)
    for pid in stopped:
        job.signal_one(pid, signal.SIGSTOP)
    pids = sorted(job.ranks(), key=job.rank_of)
    job.signal_one(pids[0], signal.SIGKILL)
    if chance.random() < 0.5:
        job.signal_one(pids[1], signal.SIGKILL)
    until = time.monotonic() + 30
    while is_alive(pids[0]) and time.monotonic() < until:
        time.sleep(0.005)
    must(is_alive(pids[2]), "the last rank has ended with the first one")
    other = Job([*MPIRUN, "-n", "1", MODEL, f"{place}/file", "r+", "safety=journal", "-1"], environment(), f"{place}.other")
    must(other.ended_within(LIMIT), "another program hangs")
    must(any("all processes of that program have ended" in line for line in other.lines), f"another program may use it: {other.lines[-20:]}")
    for pid in stopped[1:]:
        job.signal_one(pid, signal.SIGKILL)
    job.kill_all()
    judge(job)


print(f"seed {given.seed}", flush=True)
for number in range(given.rounds):
    if number % 20 == 1:
        outlive_first_rank()
    live(number)
    if chance.random() < 0.2 or number == given.rounds - 1:
        live_well()
if COMMAND:
    # A crash within an open leaves this alone.
    with open(f"{place}/file.undo.new", "wb"):
        pass
    code, out, err = tailrace("repair", f"{place}/file")
    check(code == 0 and "not changed since it was opened" in out, f"repair: {code}, {out} {err}")
    check(not os.path.exists(f"{place}/file.undo.new"), "repair leaves file.undo.new")
print(f"step {least}, {in_place} of {given.rounds} lives ended with undo files", flush=True)
check(least > given.rounds and in_place > given.rounds // 3, f"seed {given.seed}: too little was tried")
finish()
