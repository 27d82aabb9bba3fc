# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""kill -9 of a program that writes a shared file over and over with little memory: the next one, on other ranks, finds the content of
one flush, whole, and no older than the last that was told to be done.
    shared_kill_test.py MODEL [--seed N] [--rounds N]"""
import argparse
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from killed_job import Job, end_all  # noqa: E402
from small_model import *  # noqa: E402,F403

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--seed", type=int, default=int(time.time()))
parser.add_argument("--rounds", type=int, default=(120 if ALL else 20) if MPI == "openmpi" else (50 if ALL else 10))
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


def start(steps):
    ranks = chance.choice((1, 2, 3, 3, 5))
    mode, safety = chance.choice((("r+", "journal"), ("a+", "journal"), ("r+", "journal"), ("w+", "rename")))
    options = f"safety={safety} page=4KiB memory={chance.choice((16, 32, 200)) * ranks}KiB"
    story.append(f"{ranks} ranks, {mode}, {options}")
    settings = {"TAILRACE_AGGREGATORS": str(chance.choice((1, 2, 4)))}
    words = [*MPIRUN, "-n", str(ranks), MODEL, f"{place}/file", mode, options, str(steps)]
    return Job(words, environment(**settings), place)


def judge(job):
    """After the end of a program: what it found, and what it told."""
    global least
    must(not any(line.startswith("BAD") for line in job.lines), f"{job.lines[-20:]}")
    for (step,) in job.matches(r"found (\d+)"):
        must(least <= int(step) <= least + 1, f"found {step}, and {least} was flushed")
        least = int(step)
        story.append(f"found {step}")
    for (step,) in job.matches(r"(?:flushed|closed) (\d+)"):
        least = int(step)


def kill():
    global in_place
    job = start(1000000)
    must(job.wait_for(chance.choice((r"found \d+", r"flushed \d+", r"flushed \d+"))), f"did not begin: {job.lines[-20:]}")
    time.sleep(0.3 * chance.random() ** 2)
    must(job.process.poll() is None, f"ended before it was killed: {job.lines[-20:]}")
    if chance.random() < 0.4:
        story.append("one killed before the others")
        job.signal_one(chance.choice(job.ranks()), signal.SIGKILL)
        time.sleep(0.1 * chance.random())
    job.kill_all()
    in_place += os.path.exists(f"{place}/file.undo")
    judge(job)


print(f"seed {given.seed}", flush=True)
for number in range(given.rounds):
    kill()
    if chance.random() < 0.2 or number == given.rounds - 1:
        job = start(2)
        must(job.ended_within(60) and job.process.returncode == 0, f"did not end well: {job.lines[-20:]}")
        judge(job)
        left = sorted(name for name in os.listdir(place) if name.startswith("file.undo"))
        must(left == [], f"{left} are left by a program that has closed its file")
print(f"step {least}, {in_place} of {given.rounds} lives ended with undo files", flush=True)
check(least > given.rounds and in_place > given.rounds // 3, f"seed {given.seed}: too little was tried")
finish()
