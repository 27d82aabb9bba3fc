# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What `methods` runs in the simulated world: programs of which each is one method on so many servers, by the clock of a stated machine."""
import concurrent.futures
import json
import os
import subprocess

from _bench import Failure

SERVERS = (1, 4, 16, 64, 256, 1024, 4096)
LARGE = 1024  # from so many servers on a run takes GB of memory, one at a time, and has fewer and larger records
STORAGES = (240, 1700)  # GB/s of all processes: a file system of disks, and one of flash


class Simulated:
    """The results by method and servers, for one rate of all storage."""

    def __init__(self, launcher, servers, storage):
        self.program = launcher.program("simulated_methods")
        self.servers, self.storage = servers, storage
        self.told = {}

    def ask(self, *arguments):
        command = [self.program, *map(str, arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise Failure(f"{' '.join(command)}: exit code {done.returncode}")
        return json.loads(done.stdout)

    def methods(self):
        return self.ask("--methods")

    def costs(self):
        return self.ask("--costs")

    def run(self, methods):
        """Runs every method on every number of servers, as many at a time as there are cores."""
        def one(key):
            # As many bytes for each server.
            size = ("--records", 1, "--record-mib", 16) if key[1] >= LARGE else ("--records", 4, "--record-mib", 4)
            self.told[key] = self.ask("--method", key[0], "--servers", key[1], "--storage", self.storage, *size)
        keys = [(method, servers) for method in methods for servers in self.servers]
        for large in (False, True):
            workers = 1 if large else len(os.sched_getaffinity(0))
            with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                list(pool.map(one, [key for key in keys if (key[1] >= LARGE) == large]))
        return {key: self.told[key] for key in keys}


def rate(told):
    return told["bytes"] / told["seconds"] / 1e6


def shares(told):
    """Where the time went, in words: the parts of a process that take at least 1 % of the time."""
    parts = [f"{name} {100 * part:.0f}" for name, part in told.items() if name != "idle" and part >= 0.005]
    return ", ".join(parts) or "none"
