# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A network file system on this machine: a GlusterFS server and a client of it, which talk over the loopback interface. They need no
set-up and no service: both read what they are from a file."""
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

SERVER = """volume brick
  type storage/posix
  option directory {brick}
end-volume
volume locks
  type features/locks
  subvolumes brick
end-volume
volume threads
  type performance/io-threads
  subvolumes locks
end-volume
volume server
  type protocol/server
  option transport-type tcp
  option transport.socket.bind-address 127.0.0.1
  option transport.socket.listen-port {port}
  option auth.addr.threads.allow *
  subvolumes threads
end-volume
"""
CLIENT = """volume client
  type protocol/client
  option transport-type tcp
  option remote-host 127.0.0.1
  option remote-port {port}
  option remote-subvolume threads
end-volume
"""
PATIENCE_SECONDS = 20


def why_not():
    """What is missing to mount one; empty if nothing is."""
    missing = [] if os.geteuid() == 0 else ["only root can mount GlusterFS"]
    if not all(shutil.which(name) for name in ("glusterfs", "glusterfsd")):
        missing.append("GlusterFS is not installed (apt-get install glusterfs-client)")
    if not os.path.exists("/dev/fuse"):
        missing.append("there is no /dev/fuse")
    return missing


class Gluster:
    """Mounts one on `directory`/mounted as long as it is entered. `files` are there; raises OSError if it does not come up."""

    def __init__(self, directory):
        self.directory, self.files = Path(directory), Path(directory) / "mounted"
        self.processes = []

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        brick = self.directory / "brick"
        brick.mkdir(parents=True)
        self.files.mkdir()
        try:
            self.start("glusterfsd", SERVER.format(brick=brick, port=port))
            self.wait(lambda: is_listening(port), "glusterfsd")
            self.start("glusterfs", CLIENT.format(port=port), self.files)
            self.wait(lambda: os.path.ismount(self.files), "glusterfs")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, program, volume, *arguments):
        description = self.directory / f"{program}.vol"
        description.write_text(volume, encoding="ascii")
        self.processes.append(subprocess.Popen(
            [program, "--no-daemon", "-f", description, "-l", self.directory / f"{program}.txt", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def wait(self, is_ready, program):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_ready():
            if self.processes[-1].poll() is not None or time.monotonic() > deadline:
                log = self.directory / f"{program}.txt"
                told = [line for line in log.read_text(errors="replace").splitlines() if " E " in line] if log.exists() else []
                raise OSError(f"{program} did not come up: {told[0] if told else 'without a reason in its log'}")
            time.sleep(0.1)

    def stop(self):
        if os.path.ismount(self.files):
            subprocess.run(["umount", "-l", self.files], check=False)
        for process in reversed(self.processes):
            process.terminate()
            process.wait()


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
