# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A forecast that is killed and gone on with, as often as it takes: what demo.py shows and the test of it repeats."""
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path


def descendants(pid):
    """The process and all that came of it, the youngest last."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # The name in the second field may hold blanks; the parent is the second field behind it.
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def kill_all(process):
    """kill -9 of a launcher and all of its ranks at once, none of which can clean up."""
    for pid in descendants(process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


def run_and_kill(command, environment, delay, checkpoint=None):
    """Starts the forecast and kills it `delay` seconds later, counted from its first checkpoint where one is named.
    Returns its exit code, or None if it was killed."""
    # Killed ranks of Open MPI 4 leave their shared memory. It has a directory of its own here, which goes with it.
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tailrace-demo-", dir=place, ignore_cleanup_errors=True) as shared:
        environment = {"OMPI_MCA_btl_vader_backing_directory": shared, **environment}
        return run_until_killed(command, environment, delay, checkpoint)


def run_until_killed(command, environment, delay, checkpoint):
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        while checkpoint is not None and process.poll() is None and not checkpoint.exists():
            time.sleep(0.02)
        return process.wait(timeout=delay)
    except subprocess.TimeoutExpired:
        kill_all(process)
        return None
    except BaseException:
        kill_all(process)
        raise
