# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Runs MPI programs that tests kill. Each process of a program makes a file named after its process id in the directory
`pids` of its working directory. Only these processes and the launcher get signals."""
import atexit
import ctypes
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

running = set()


def die_with_the_script():
    # If this script is killed, the kernel kills the launcher, too, and the launcher's end ends its ranks.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Job:
    """One launch. A thread reads its output as it comes."""

    def __init__(self, command, env, directory):
        self.directory = directory
        self.pids = os.path.join(directory, "pids")
        shutil.rmtree(self.pids, ignore_errors=True)
        os.makedirs(self.pids)
        self.lines = []
        self.process = subprocess.Popen(command, env=env, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                                        preexec_fn=die_with_the_script)
        running.add(self)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        # If a rank is killed while it prints, output of the launcher may follow on the same line.
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def matches(self, pattern):
        """Returns the groups of the pattern for each whole line of the output that matches it."""
        found = [re.fullmatch(pattern, line) for line in list(self.lines)]
        return [match.groups() for match in found if match]

    def wait_for(self, pattern, limit=30, times=1):
        """Waits until `times` lines of the output match. Returns False if the program ends before, or after `limit`
        seconds."""
        until = time.monotonic() + limit
        while time.monotonic() < until:
            ended = self.process.poll() is not None
            if ended:
                self.reader.join(2)
            if len(self.matches(pattern)) >= times:
                return True
            if ended:
                return False
            time.sleep(0.005)
        return False

    def ranks(self):
        """Returns the process ids of the ranks that have made their files so far."""
        return sorted(int(name) for name in os.listdir(self.pids))

    def rank_of(self, pid):
        """Returns the rank that the process has written into its file. Only for programs that do so."""
        with open(os.path.join(self.pids, str(pid))) as file:
            return int(file.read())

    def signal_one(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def ended_within(self, limit):
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            return False
        self.finish()
        return True

    def kill_all(self):
        for pid in [self.process.pid, *self.ranks()]:
            self.signal_one(pid, signal.SIGKILL)
        self.process.wait()
        self.finish()

    def finish(self):
        """Kills ranks that have outlived the launcher, waits for their end, and removes files that the launcher has
        left."""
        for pid in self.ranks():
            self.signal_one(pid, signal.SIGKILL)
        for pid in self.ranks():
            until = time.monotonic() + 60  # a killed rank ends once its fsync does, which may take half a minute on busy disks
            while is_alive(pid) and time.monotonic() < until:
                time.sleep(0.005)
        self.reader.join(5)
        running.discard(self)
        for left in glob.glob(f"/tmp/ompi.*/pid.{self.process.pid}"):
            shutil.rmtree(left, ignore_errors=True)


def is_alive(pid):
    # A zombie (Z) has ended, but its parent has not waited for it yet. Its threads may still be in their fsync, and hold its locks.
    try:
        with open(f"/proc/{pid}/stat") as file:
            has_ended = file.read().rsplit(")", 1)[1].split()[0] in "ZX"
        return not has_ended or len(os.listdir(f"/proc/{pid}/task")) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


@atexit.register
def end_all():
    for job in list(running):
        job.kill_all()


signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
