# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Chains of runs that write one file, each with another method, handoff and number of ranks and servers: runs are killed, told to stop by a
signal, the time limit or the halt file, or find the disk full, and the next one goes on. What the index tells is there after each of them, and in
the end the file is that of a run that nobody disturbed. (tests/sim/chains_test.cpp has many more of them, with losses of power.)
    chains_test.py MODEL [--seed N] [--chain N]"""
import argparse
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from killed_job import Job, end_all  # noqa: E402
from small_model import *  # noqa: E402,F403

LAST = 11  # hours
METHODS = ("scan", "serial", "offset_guard", "offset_sharing", "writer", "writer_aio", "mpiio", "mpiio_shared")
ANY_ORDER = {"offset_guard", "offset_sharing", "mpiio_shared"}  # of the records of a step
HANDOFFS = ("auto", "shared", "messages", "onesided")
ENDS = ("kill", "TERM", "kill_one", "USR1", "limit", "kill", "halt", "full")
# Each chain has as many disturbed runs. With all chains each method has come with each handoff, and with each end.
LIVES = 4
CHAINS = range(len(METHODS) * len(HANDOFFS) // LIVES) if ALL else (0,)

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--seed", type=int, default=int(time.time()))
parser.add_argument("--chain", type=int, help="this one alone")
given = parser.parse_args()


class ChainFailed(Exception):
    pass


class Chain:
    def __init__(self, number):
        self.number = number
        self.random = random.Random(given.seed * 1000 + number)
        self.directory = os.path.abspath(fresh(f"chain-{number}"))
        self.path = f"{self.directory}/fc.raw"
        self.story = [f"seed {given.seed}, chain {number}"]
        self.keeps_order = True
        self.steps = 0

    def check(self, condition, what):
        if not check(condition, f"{'; '.join(self.story)}: {what}"):
            raise ChainFailed

    def start(self, method, handoff, pause=30, **more):
        ranks, servers = self.random.choice((1, 2, 3)), self.random.choice((0, 1, 2, 3))
        self.keeps_order = self.keeps_order and method not in ANY_ORDER
        self.story.append(f"{method}, {handoff}, {ranks} ranks, {servers} servers, from step {self.steps}")
        settings = {"TAILRACE_SERVERS": str(servers), "TAILRACE_HANDOFF": handoff, "TAILRACE_HALT_FILE": "halt", "SMALL_MODEL_STOPS": "1", "TAILRACE_TIME_LIMIT": "off",
                    **method_settings(method), **more}
        args = arguments("fc.raw", "format=raw existing=continue", LAST, self.steps, pause)
        return Job([*MPIRUN, "-n", str(ranks + servers), *args], environment(**settings), self.directory)

    def committed(self):
        code, out, _ = tailrace("index", self.path, "--json")
        return [step["lead"] // 3600 for step in json.loads(out)["steps"]] if code == 0 else []

    def wait_for_steps(self, job, count):
        until = time.monotonic() + LIMIT
        while len(self.committed()) < count and job.process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(self.random.uniform(0, 0.04))

    def disturb(self, method, handoff, end):
        limits = {"limit": {"TAILRACE_TIME_LIMIT": "2s", "TAILRACE_STOP_MARGIN": f"{self.random.choice((1, 2))}s"},
                  "full": {"TAILRACE_FAULT": f"nth={self.random.randint(1, 3)} fault=enospc calls=write for=good"}}
        job = self.start(method, handoff, **limits.get(end, {}))
        self.story.append(end)
        if end not in limits:
            self.wait_for_steps(job, self.steps + self.random.randint(1, 2))
        if end == "kill":
            job.kill_all()
        elif end == "kill_one" and job.ranks():
            job.signal_one(self.random.choice(job.ranks()), signal.SIGKILL)
        elif end in ("TERM", "USR1"):
            for pid in job.ranks():
                job.signal_one(pid, getattr(signal, f"SIG{end}"))
        elif end == "halt":
            open(f"{self.directory}/halt", "w", encoding="ascii").close()
        self.check(end == "kill" or job.ended_within(LIMIT), f"did not end: {job.lines}")
        if end in ("TERM", "USR1", "halt", "limit") and len(self.committed()) <= LAST:
            self.check(job.process.returncode == 0 and len(job.matches(r"stopped \d+")) == 1, f"ended with {job.process.returncode}: {job.lines}")
        if end == "full" and job.process.returncode != 0:
            self.check(any("No space left on device" in line for line in job.lines), f"the disk is full, and nobody says so: {job.lines}")
        if os.path.exists(f"{self.directory}/halt"):
            os.remove(f"{self.directory}/halt")
        self.look()

    def look(self):
        """What the index tells is there, and is no less than before."""
        steps = self.committed()
        self.check(steps == list(range(len(steps))) and len(steps) >= self.steps, f"the index tells {steps}, and told {self.steps} steps before")
        self.steps = len(steps)
        if not steps:
            return
        self.check(records_of(self.path) == whole[:self.steps], "other records")
        code, out, err = tailrace("verify", self.path)
        self.check(code == 0, f"verify: {code}, {out}{err}")

    def complete(self):
        """The last run writes in the order of puts, or not, as the chain did."""
        job = self.start(self.random.choice([each for each in METHODS if not self.keeps_order or each not in ANY_ORDER]), self.random.choice(HANDOFFS), 0)
        self.check(job.ended_within(LIMIT) and job.process.returncode == 0, f"ended with {job.process.returncode}: {job.lines}")
        self.look()
        self.check(self.steps == LAST + 1, f"{self.steps} steps")
        data, index, listed = contents(self.path), contents(self.path + ".trx"), contents(f"{self.directory}/manifest.jsonl")
        self.check(len(data) == len(reference) and (not self.keeps_order or data == reference), "the file is not that of the undisturbed run")
        code, out, err = tailrace("repair", self.path)
        self.check(code == 0 and f"{LAST + 1} whole steps kept" in out and "0 whole steps dropped, 0 bytes cut off the data, 0 off the index, closed" in out, f"repair: {code}, {out}{err}")
        self.check((contents(self.path), contents(self.path + ".trx"), contents(f"{self.directory}/manifest.jsonl")) == (data, index, listed), "repair has changed something")
        left = [name for name in os.listdir(self.directory) if name not in ("fc.raw", "fc.raw.trx", "manifest.jsonl", "pids", "fc.raw.lock", "fc.raw.stream.lock", "manifest.jsonl.lock")]
        of_mpi = [name for name in left if name.startswith(".fc.raw.shfp") or ".trial" in name or name.endswith(".lock")]  # of killed runs (docs/methods.md, mpiio_shared)
        self.check(sorted(left) == sorted(of_mpi), f"left: {left}")

    def play(self):
        for life in range(LIVES):
            place = self.number * LIVES + life
            method = METHODS[place % len(METHODS)]
            handoff = HANDOFFS[(place // len(METHODS) + place) % len(HANDOFFS)]
            self.disturb(method, handoff, ENDS[(place * 3 + place // len(METHODS)) % len(ENDS)])
            if self.steps > LAST:
                break
        self.complete()


fresh("undisturbed")
code, _, err = run(1, arguments("undisturbed/fc.raw", "format=raw", LAST))
check(code == 0, f"the undisturbed run: {code}, {err}")
reference, whole = contents("undisturbed/fc.raw"), records_of("undisturbed/fc.raw")
for number in [given.chain] if given.chain is not None else CHAINS:
    chain = Chain(number)
    try:
        chain.play()
    except ChainFailed:
        end_all()
    print("; ".join(chain.story), flush=True)
finish()
