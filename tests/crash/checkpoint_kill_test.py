# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""kill -9 of a model that saves all the time: what is loaded afterwards is exactly one step's, and no older than the last that was told
to be committed. Copies that are damaged in between, or mixed of two generations, are passed over.
    checkpoint_kill_test.py MODEL [--seed N] [--rounds N]"""
import argparse
import os
import random
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from killed_job import Job, end_all  # noqa: E402
from small_model import *  # noqa: E402,F403

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--seed", type=int, default=int(time.time()))
parser.add_argument("--rounds", type=int, default=(150 if ALL else 24) if MPI == "openmpi" else (60 if ALL else 12))
given = parser.parse_args()
chance = random.Random(given.seed)
counts = {}


class Line:
    """One checkpoint through all its rounds. `modes`: those that it is saved in, by turns. `points`: of the second array,
    where it is large enough to be captured while the program goes on."""

    def __init__(self, name, modes, points=None):
        self.points = points
        self.directory = os.path.abspath(fresh(name))
        self.modes = modes
        self.mode = modes[0]
        self.least = 0  # what is loaded next is this step or a later one
        self.most = None  # and not one after this; None: it is not known how far the program came
        self.story = []
        self.kills = 0

    def check(self, condition, what):
        if not check(condition, f"seed {given.seed}, {self.directory}: {'; '.join(self.story[-6:])}: {what}"):
            # The files are kept as they are; later failures would only follow from this one.
            end_all()
            finish()

    def start(self, steps):
        ranks = chance.choice((1, 3, 4, 7))
        self.mode = chance.choice(self.modes)
        options = [f"mode={self.mode}", *(["async=off"] if chance.random() < 0.25 else [])]
        slow = chance.random() < 0.5 and self.points is None
        settings = {"TAILRACE_THROTTLE": "4MB/s,2ms"} if slow else {}
        options += ["capture=copy_on_write"] if self.points else []
        self.story.append(f"{ranks} ranks, {' '.join(options)}{', slow' if settings else ''}")
        command = [*MPIRUN, "-n", str(ranks), MODEL, "cp", " ".join(options), str(steps), str(chance.choice((0, 1, 4))),
                   *([str(self.points)] if self.points else [])]
        return Job(command, environment(**settings), self.directory)

    def judge(self, job):
        """After the end of a program: what it loaded and what it told."""
        bad = [line for line in job.lines if "BAD: " in line]  # MPICH speaks of bad terminations
        self.check(not bad, f"{bad}")
        for (step,) in job.matches(r"loaded (\d+)"):
            step = int(step)
            self.check(step >= self.least, f"loaded {step}, and {self.least} was committed: {job.lines}")
            self.check(self.most is None or step <= self.most, f"loaded {step}, and {self.most} was the last: {job.lines}")
            self.story.append(f"loaded {step}")
            self.least = step
        for (step,) in job.matches(r"committed (\d+)"):
            self.least = max(self.least, int(step))
        self.most = None

    def undisturbed(self, steps):
        """Starts it, and it ends by itself."""
        job = self.start(steps)
        self.check(job.ended_within(LIMIT) and job.process.returncode == 0, f"did not end well: {job.lines}")
        self.judge(job)
        self.most = self.least
        return job

    # ---- what is done to it

    def kill(self):
        job = self.start(1000000)
        # Each line comes to a committed step in its second round, however few its rounds are.
        moments = ("begun", r"loaded \d+", r"loaded \d+") if self.least > 0 or self.kills == 0 else (r"committed \d+",)
        self.kills += 1
        self.check(job.wait_for(chance.choice(moments)), f"did not begin: {job.lines}")
        time.sleep(0.05 + 0.55 * chance.random() ** 3)
        self.check(job.process.poll() is None, f"ended before it was killed: {job.lines}")
        # A launcher takes seconds to end what is left of its program.
        way = chance.choices(("all", "one", "stopped", "ended by the launcher"), (6, 4, 3, 1))[0]
        self.story.append(f"killed: {way}")
        counts[way] = counts.get(way, 0) + 1
        if way != "all":
            victim = chance.choice(job.ranks())
            job.signal_one(victim, signal.SIGSTOP if way == "stopped" else signal.SIGKILL)
            time.sleep(0.2 * chance.random())
        if way == "stopped":
            self.resume(job, victim)
        if way == "ended by the launcher":
            self.check(job.ended_within(LIMIT), f"the launcher did not end: {job.lines}")
        else:
            job.kill_all()
        self.judge(job)

    def resume(self, job, victim):
        """Goes on with a process that was stopped; sometimes the others are killed while it is."""
        if chance.random() < 0.3:
            return
        job.signal_one(victim, signal.SIGCONT)
        before = len(job.matches(r"committed (\d+)"))
        until = time.monotonic() + LIMIT
        while len(job.matches(r"committed (\d+)")) < before + 2 and time.monotonic() < until:
            time.sleep(0.005)
        self.check(len(job.matches(r"committed (\d+)")) >= before + 2, f"nothing more was committed: {job.lines[-20:]}")

    def damage(self):
        """The newest copy is harmed while nobody runs: the one before is loaded."""
        self.undisturbed(2)  # both copies are whole
        last = self.least
        newest, older = sorted((f"{self.directory}/cp.0", f"{self.directory}/cp.1"), key=generation, reverse=True)
        parts = sorted(name for name in os.listdir(self.directory) if name.startswith(os.path.basename(newest) + ".r"))
        ways = ["flip", "cut"] + (["mixed", "swapped"] if self.mode == "local" else [])
        way = chance.choice(ways)
        self.story.append(f"newest copy: {way}")
        counts[way] = counts.get(way, 0) + 1
        if way in ("mixed", "swapped"):
            part = chance.choice(parts)[-7:]
            self.mix(newest + part, older + part, way)
        else:
            harm(f"{self.directory}/{chance.choice(parts)}" if parts and chance.random() < 0.7 else newest, way)
        self.least = last - 1
        # A bit between the parts means nothing; all else is noticed.
        self.most = last if way in ("flip", "swapped") else last - 1

    def mix(self, newest, older, way):
        shutil.copyfile(newest, newest + "-kept")
        shutil.copyfile(older, newest)
        if way == "swapped":
            # Both are mixed now. Put back, both are whole again.
            shutil.copyfile(newest, older + "-kept")
            shutil.copyfile(newest + "-kept", older)
            least, self.least = self.least, 0
            job = self.undisturbed(0)
            self.check(job.matches("none whole: .*") and self.least == 0, f"two mixed copies were loaded: {job.lines}")
            self.least = least
            shutil.copyfile(newest + "-kept", newest)
            shutil.copyfile(older + "-kept", older)
            os.remove(older + "-kept")
        os.remove(newest + "-kept")


def generation(path):
    with open(path, "rb") as file:
        return int.from_bytes(file.read(32)[24:32], "little")


def harm(path, way):
    size = os.path.getsize(path)
    if way == "cut":
        os.truncate(path, size - 1)
        return
    with open(path, "r+b") as file:
        at = chance.randrange(size)
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ (1 << chance.randrange(8))]))


print(f"seed {given.seed}", flush=True)
lines = [Line("parallel", ("parallel",)), Line("local", ("local",)), Line("by-turns", ("parallel", "local"))]
# 8 MiB on each of 7 ranks: more data, fewer rounds.
large = Line("copy-on-write", ("parallel", "local"), 7 * (9 << 17))
for number in range(given.rounds):
    line = large if number % 6 == 5 else lines[number % len(lines)]
    line.kill()
    if chance.random() < 0.12:
        line.damage()
for line in [*lines, large]:
    line.undisturbed(1)
    print(f"{line.directory}: step {line.least}", flush=True)
    check(line.least > 1, f"{line.directory}: came to step {line.least} only")
    shutil.rmtree(line.directory)
print(counts, flush=True)
finish()
