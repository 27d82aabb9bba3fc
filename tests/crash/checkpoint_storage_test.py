# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Checkpoints on ext4 and XFS that fill up or lose power. A full one is told to every rank alike, and what was saved before is loaded.
After a loss of power the journal is replayed, and other ranks load one step, no older than the last that was told to be committed.
The file systems live in a mount namespace of this script, so that nothing of them is left however the script ends.
    checkpoint_storage_test.py MODEL [--seed N] [--losses N]"""
import argparse
import fcntl
import os
import random
import struct
import subprocess
import sys
import time

if os.environ.get("CHECKPOINT_STORAGE_ISOLATED") != "1":
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        print("skipped: mounting a small file system needs root and mount namespaces")
        sys.exit(77)
    os.environ["CHECKPOINT_STORAGE_ISOLATED"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from killed_job import Job, end_all  # noqa: E402
from small_model import *  # noqa: E402,F403

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--seed", type=int, default=int(time.time()))
parser.add_argument("--losses", type=int, default=12 if MPI == "openmpi" else 8, help="of each file system")
given = parser.parse_args()
chance = random.Random(given.seed)

MEBIBYTE = 1 << 20
# xfsprogs makes none that is smaller than 300 MiB.
KINDS = {"ext4": (64 * MEBIBYTE, ["mkfs.ext4", "-q", "-F", "-m", "0"]), "xfs": (320 * MEBIBYTE, ["mkfs.xfs", "-q", "-f"])}
SHUTDOWN = 0x8004587D  # FS_IOC_SHUTDOWN
# Two ways to lose power: the journal's records in memory still come to storage, or they do not.
LOSSES = {"journal kept": 1, "journal lost": 2}
BLKFLSBUF = 0x1261
POINTS = 200000
COPY = 8 * POINTS  # bytes, nearly
counts = {}


class Unavailable(Exception):
    """This kind of file system cannot be made here."""


def command(*words):
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        raise Unavailable(f"there is no {words[0]}") from None
    except subprocess.TimeoutExpired:
        check(False, f"seed {given.seed}: {' '.join(words)} did not end")
        leave()
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def leave():
    """What comes after a failure would only follow from it."""
    end_all()
    finish()


class FileSystem:
    """One of this kind, made anew. The kernel lets go of the image, which has no name, once neither this nor a mount has its device."""

    def __init__(self, kind):
        self.kind = kind
        self.place = os.path.abspath(fresh("disk"))
        self.image = os.path.abspath("image")
        size, make = KINDS[kind]
        with open(self.image, "wb") as image:
            image.truncate(size)
        try:
            command(*make, self.image)
            command("mount", "-o", "loop", self.image, self.place)
            self.device_name = command("findmnt", "-n", "-o", "SOURCE", self.place)
        finally:
            os.remove(self.image)
        # Holds the device from one mount to the next: it goes with the last who has it.
        self.device = os.open(self.device_name, os.O_RDWR | os.O_CLOEXEC)

    def fill(self, room):
        """Leaves so many bytes, less what the file system needs to keep books."""
        with open(f"{self.place}/ballast", "ab") as ballast:
            for _ in range(2):  # what was reserved for writing comes back once it is written
                state = os.fstatvfs(ballast.fileno())
                length = max(state.f_bavail * state.f_frsize - room, 0)
                while length > 0:
                    length = self.write(ballast, length)
                ballast.flush()
                os.fsync(ballast.fileno())
        return self.free()

    @staticmethod
    def write(ballast, length):
        size = min(length, MEBIBYTE)
        try:
            return length - os.write(ballast.fileno(), bytes(size))
        except OSError:
            return 0

    def free(self):
        state = os.statvfs(self.place)
        return state.f_bavail * state.f_frsize

    def empty(self):
        wanted = self.free() + os.path.getsize(f"{self.place}/ballast") * 9 // 10
        os.remove(f"{self.place}/ballast")
        # XFS gives the blocks of a file back behind the program, and only once its journal is written.
        command("sync", "-f", self.place)
        until = time.monotonic() + 30
        while self.free() < wanted and time.monotonic() < until:
            time.sleep(0.02)

    def lose_power(self, flag):
        directory = os.open(self.place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(directory, SHUTDOWN, struct.pack("I", flag))
        finally:
            os.close(directory)

    def unmount(self):
        # A process may be gone and one of its threads still be in the kernel, with the files it has open.
        until = time.monotonic() + 30
        while not self.is_unmounted(time.monotonic() > until):
            time.sleep(0.02)
        # Nothing that is only in memory may be found by the next mount.
        fcntl.ioctl(self.device, BLKFLSBUF, 0)

    def is_unmounted(self, is_last_try):
        try:
            command("umount", self.place)
        except Unavailable as reason:
            if is_last_try or "busy" not in str(reason):
                raise
            return False
        return True

    def mount(self):
        command("mount", self.device_name, self.place)

    def end(self):
        self.unmount()
        os.close(self.device)


class Line:
    """One checkpoint on this file system, through all the programs that have it."""

    def __init__(self, disk, modes):
        self.disk = disk
        self.modes = modes
        self.least = 0  # what is loaded next is this step or a later one
        self.most = None  # and not one after this; None: it is not known how far the program came
        self.ranks = 0
        self.commits = 0
        self.story = []

    def check(self, condition, what):
        if not check(condition, f"seed {given.seed}, {self.disk.kind}: {'; '.join(self.story[-6:])}: {what}"):
            leave()

    def start(self, options, steps, *more, ranks=0, **settings):
        others = [number for number in (1, 2, 3, 5) if number != self.ranks]
        self.ranks = ranks or chance.choice(others)
        options = [f"mode={chance.choice(self.modes)}", *options, *(["async=off"] if more and chance.random() < 0.3 else [])]
        self.story.append(f"{self.ranks} ranks, {' '.join(options)}")
        words = [*MPIRUN, "-n", str(self.ranks), MODEL, f"{self.disk.place}/cp", " ".join(options), str(steps), "0", *more]
        # Not within the file system, so that this can be unmounted whoever is left.
        return Job(words, environment(**settings), os.getcwd())

    def judge(self, job):
        """After the end of a program: what it loaded and what it told."""
        bad = [line for line in job.lines if "BAD:" in line or "none whole" in line]
        self.check(not bad, f"{bad}")
        for (step,) in job.matches(r"loaded (\d+)"):
            self.loaded(job, int(step))
            break
        for (step,) in job.matches(r"committed (\d+)"):
            self.least = max(self.least, int(step))
            self.commits += 1
        self.most = None

    def loaded(self, job, step):
        self.check(step >= self.least, f"loaded {step}, and {self.least} was committed: {job.lines[:20]}")
        self.check(self.most is None or step <= self.most, f"loaded {step}, and {self.most} was the last: {job.lines[:20]}")
        self.story.append(f"loaded {step}")
        self.least = step

    # ---- a full disk

    def let(self, job, step, *answers):
        """Lets the program save this step, and waits for what it says."""
        with open(f"go.{step}", "w"):
            pass
        for answer in answers:
            self.check(job.wait_for(answer), f"'{answer}' did not come: {job.lines}")

    def ends(self, job):
        self.check(job.ended_within(60) and job.process.returncode == 0, f"did not end well: {job.lines}")
        self.check(job.matches("complete"), f"did not end by itself: {job.lines}")
        self.judge(job)

    def fills_up(self):
        """The second or the third save finds no room, and the next one neither; one more does in the same program, or in the next."""
        for step in range(1, 10):
            if os.path.exists(f"go.{step}"):
                os.remove(f"go.{step}")
        keep = chance.choice((2, 3))
        last = keep - 1  # the first save that needs room of its own after it is the one that fails
        job = self.start([f"keep={keep}"], last + 3, str(POINTS), "held", ranks=3)
        for step in range(1, last + 1):
            self.let(job, step, f"committed {step}")
        left = self.disk.fill(chance.choice((0, int(0.8 * COPY * chance.random()))))
        self.story.append(f"{left} bytes left")
        for step in (last + 1, last + 2):
            self.let(job, step, f"no space {step}")
            self.loads_again(job, step - last, last)
        if chance.random() < 0.5:
            self.disk.empty()
            self.let(job, last + 3, f"committed {last + 3}")
            self.ends(job)
        else:
            self.let(job, last + 3, f"no space {last + 3}")
            self.loads_again(job, 3, last)
            self.ends(job)
            self.next_program_finds_room(keep, last)
        final = self.start([f"keep={keep}"], 0, str(POINTS), "held")
        self.most = self.least
        self.ends(final)

    def loads_again(self, job, times, step):
        until = time.monotonic() + 30
        while len(job.matches(r"loaded \d+")) < 1 + times and time.monotonic() < until:
            time.sleep(0.005)
        found = [int(number) for (number,) in job.matches(r"loaded (\d+)")]
        self.check(found[1:] == [step] * times, f"loaded {found}: {job.lines}")

    def next_program_finds_room(self, keep, last):
        """Other ranks load from the full disk, and save once there is room."""
        # Not even for the file that says that a program is there.
        self.story.append(f"{self.disk.fill(0)} bytes left")
        self.most = last
        os.remove(f"go.{last + 1}")
        os.remove(f"go.{last + 2}")
        job = self.start([f"keep={keep}"], 2, str(POINTS), "held")
        self.let(job, last + 1, f"loaded {last}", f"no space {last + 1}")
        self.loads_again(job, 1, last)
        self.disk.empty()
        self.let(job, last + 2, f"committed {last + 2}")
        self.ends(job)

    # ---- no power

    def begin_anew(self):
        for name in os.listdir(self.disk.place):
            if name.startswith("cp."):
                os.remove(f"{self.disk.place}/{name}")
        # Otherwise they may be back after the loss.
        self.disk.unmount()
        self.disk.mount()
        self.least = 0
        self.most = None

    def loses_power(self):
        # Data that depends on the directory is at stake only while files are new, or come for good.
        if chance.random() < 0.3:
            self.begin_anew()
            self.story.append("anew")
        settings = {"TAILRACE_THROTTLE": "4MB/s,2ms"} if chance.random() < 0.3 else {}
        job = self.start(["keep_every=5"] if chance.random() < 0.3 else [], 1000000, **settings)
        begun = job.wait_for(chance.choice(("begun", r"loaded \d+", r"committed \d+", r"committed \d+")))
        self.check(begun, f"did not begin: {job.lines[-20:]}")
        time.sleep(0.4 * chance.random() ** 2)
        self.check(job.process.poll() is None, f"ended before it lost power: {job.lines[-20:]}")
        what = chance.choice(sorted(LOSSES))
        way = chance.choice(("killed", "told"))
        self.story.append(f"{what}, {way}")
        counts[f"{what}, {way}"] = counts.get(f"{what}, {way}", 0) + 1
        was_loading = not job.matches(r"loaded \d+")
        self.disk.lose_power(LOSSES[what])
        if way == "killed":
            time.sleep(0.02 * chance.random())
            job.kill_all()
        else:
            self.check(job.ended_within(60), f"did not end: {job.lines[-20:]}")
            self.check(job.process.returncode != 0, f"was not told: {job.lines[-20:]}")
        if was_loading and any("none whole" in line and "Input/output error" in line for line in job.lines):
            # It could read none, and came no further.
            self.story.append("while it loaded")
            self.check(not job.matches(r"committed \d+"), f"committed without power: {job.lines[:20]}")
        else:
            # Answers after the loss count too: nobody may be told something that storage does not have.
            self.judge(job)
            if way == "told":
                self.most = self.least + 2  # one was being written, and the next begun
        self.disk.unmount()
        self.disk.mount()


def main():
    print(f"seed {given.seed}", flush=True)
    tried = 0
    for kind in KINDS:
        try:
            disk = FileSystem(kind)
        except Unavailable as reason:
            print(f"no {kind} here: {reason}", flush=True)
            continue
        tried += 1
        try_all(disk)
    if tried == 0:
        print("skipped: no file system can be mounted here")
        sys.exit(77)
    print(counts, flush=True)
    left = command("losetup", "--list", "--noheadings", "--output", "BACK-FILE")
    check(os.path.abspath("image") not in left, f"a loop device is left: {left}")
    finish()


def try_all(disk):
    began = time.monotonic()
    for mode in ("parallel", "local"):
        line = Line(disk, (mode,))
        line.fills_up()
        print(f"{disk.kind}: {'; '.join(line.story)}", flush=True)
        line.begin_anew()
    line = Line(disk, ("parallel", "local"))
    for _ in range(given.losses):
        line.loses_power()
    job = line.start([], 1)
    line.ends(job)
    print(f"{disk.kind}: {given.losses} losses of power, {line.commits} commits, {time.monotonic() - began:.0f} s", flush=True)
    line.check(line.commits > given.losses, f"only {line.commits} commits")
    disk.end()


main()
