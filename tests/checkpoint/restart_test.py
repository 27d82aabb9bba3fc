# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A model that is killed at random moments, or stopped in good order, and goes on from its checkpoint, on other numbers of ranks and servers,
leaves the files of a run that was never disturbed; what it announced as finished on the way is right, and stays.
Where a small file system can be mounted, some rounds have one, and some runs end because it is full.
    restart_test.py MODEL [--format NAME ENDING] [--seed N] [--rounds N] [--round N]"""
import argparse
import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

# The small file systems live in a mount namespace of this script, so that nothing of them is left however it ends.
MOUNTS = os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0
if MOUNTS and os.environ.get("RESTART_TEST_ISOLATED") != "1":
    os.environ["RESTART_TEST_ISOLATED"] = "1"
    os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from killed_job import Job, end_all  # noqa: E402
from small_model import *  # noqa: E402,F403

STEPS = 26  # of a quarter of an hour; the last save is that of step 24
RESTORES = 0.5  # of the ends before time: the outputs are brought to the last save from outside
STOPS = 0.4  # of the ends before time: told to stop, by a signal, the time limit or the halt file; the others are kills
METHODS = ("scan", "serial", "writer", "writer_aio")  # those that give records the order of puts
HANDOFFS = ("auto", "shared", "messages", "onesided")
LOGS = ["log.bin", "log.txt", "own.log", "pages.bin", "state.bin"]

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--seed", type=int, default=int(time.time()))
parser.add_argument("--format", nargs=2, default=("raw", ".raw"))
parser.add_argument("--rounds", type=int)
parser.add_argument("--round", type=int, help="this one alone")
given = parser.parse_args()
FORMAT, ENDING = given.format
# What the steps' times count; GRIB has no times without a date.
TIMES = random.Random(given.seed).choice(("", "lead_unit=ms") if FORMAT == "grib2" else ("", "lead_unit=ms", "time=model"))
PATTERN = ("out/fc_{time:.0f}" if TIMES == "time=model" else "out/fc_{valid:%Y%m%d%H}") + ENDING
OPTIONS = f"format={FORMAT} ready=.ready manifest=on {TIMES}"
ROUNDS = (24 if MPI == "openmpi" else 20) if ALL and FORMAT == "raw" else 8 if ALL else 6 if FORMAT == "raw" else 1
GROWS = FORMAT in ("raw", "grib2")  # a file that was stopped early is the beginning of the whole one
DISK = 12 << 20
SMALL_DISKS, FULL_DISKS = 0.5, 0.5  # of the rounds; of the ends before time in such a round


class RoundFailed(Exception):
    pass


class Round:
    """One model from its first start until it has completed."""

    def __init__(self, number):
        self.random = random.Random(given.seed * 1000 + number)
        self.directory = os.path.abspath(fresh(f"round-{number}"))
        self.options = self.random.choice(("mode=parallel", "mode=local", "keep=3", "async=off"))
        self.log_mode = self.random.choice(("w", "wp", "ws", "wps", "a", "ap"))
        self.commits = number % 2 == 1  # without data: the model has restart files of its own
        self.story = [f"seed {given.seed}, round {number}, {self.options}, logs {self.log_mode}{', commits' if self.commits else ''}"]
        self.published = {}  # bytes by name
        self.stopped = False  # in the middle of a file, which is announced with fewer steps then
        self.committed = (0, 0)  # generation and step
        self.without_save = set()  # runs that ended before their first save: the next one begins anew, and no checkpoint knows them
        self.small = MOUNTS and self.random.random() < SMALL_DISKS and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", self.directory], capture_output=True).returncode == 0

    def check(self, condition, what):
        # Later failures would only follow from this one; the directory stays as it is.
        if not check(condition, f"{'; '.join(self.story)}: {what}"):
            raise RoundFailed

    def start(self, pause=12, limited=False):
        servers = self.random.choice((0, 1, 1, 2))
        ranks = self.random.choice((1, 2, 3, 4))
        throttle, self.seconds = self.random.choice((("", 0.45), ("250kB/s,1ms", 1.2), ("120kB/s,3ms", 2.0)))
        method, handoff = self.random.choice(METHODS), self.random.choice(HANDOFFS)
        settings = {"TAILRACE_SERVERS": str(servers), "TAILRACE_METHOD": method, "TAILRACE_HANDOFF": handoff, "TAILRACE_PARALLEL_THRESHOLD": self.random.choice(("0", "1MiB")),
                    **({"TAILRACE_THROTTLE": throttle} if throttle else {})}
        settings["TAILRACE_HALT_FILE"] = "halt"
        if self.commits:
            settings["RESTART_MODEL_COMMITS"] = "1"
        if limited:
            settings.update(TAILRACE_TIME_LIMIT=f"{self.random.choice((1, 2))}s", TAILRACE_STOP_MARGIN="0s")
        self.story.append(f"{ranks} ranks, {servers} servers, {method}, {handoff}, throttle {throttle or 'none'}")
        command = [*MPIRUN, "-n", str(ranks + servers), MODEL, PATTERN, OPTIONS, "cp", f"overwritten=journal {self.options}",
                   str(STEPS), str(pause), self.log_mode]
        return Job(command, environment(**settings), self.directory)

    def loaded(self, job):
        """What the program loaded; checks that it is no older than what was told to be committed."""
        lines = job.matches(r"loaded (\d+) (\d+)")
        if not lines:
            return None
        generation, step = map(int, lines[0])
        self.story.append(f"went on from step {step}")
        self.check((generation, step) >= self.committed, f"loaded {generation} {step}, committed were {self.committed}")
        return step

    def after(self, job):
        """What must hold whenever the program is down."""
        step = self.loaded(job)
        for line in job.matches(r"committed (\d+) (\d+)"):
            self.committed = max(self.committed, tuple(map(int, line)))
        if self.committed == (0, 0):
            self.without_save |= {run_of(f"{self.directory}/out/{name}") for name in names_in(f"{self.directory}/out") if name.endswith(ENDING)} - {None}
        data = {name[:-6]: content_of(f"{self.directory}/out/{name[:-6]}") or b""
                for name in names_in(f"{self.directory}/out") if name.endswith(".ready")}
        ready = {name: len(content) for name, content in data.items()}
        if step:  # a run from the very beginning replaces what an earlier one has left
            less = sorted(name for name, size in self.published.items() if ready.get(name, -1) < size)
            self.check(not less, f"no longer announced, or with less than before: {less}")
        self.published = ready
        listed = manifest(f"{self.directory}/out")
        for name in sorted(ready):
            begun = reference_data[name].startswith(data[name]) if GROWS else len(data[name]) <= len(reference_data[name])
            right = begun if self.stopped else data[name] == reference_data[name]
            self.check(right, f"{name} is announced and not right")
            self.check(any(entry["path"] == name for entry in listed), f"{name} is announced and not in the manifest")

    def run_state(self, *options):
        return tailrace("run-state", "-C", self.directory, "cp", *options)

    def restore(self):
        """Brings everything to the last save from outside; some restores are killed, and repeated."""
        if self.random.random() < 0.5:
            began = subprocess.Popen([COMMAND, "run-state", "-C", self.directory, "cp", "--restore"], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            time.sleep(self.random.uniform(0, 0.03))
            began.kill()
            began.wait()
            self.story.append("killed a restore")
        before, _, _ = self.run_state()
        code, out, err = self.run_state("--restore")
        if self.committed == (0, 0) and code in (2, 4):
            return  # there may be no copy yet
        self.story.append(f"restored ({before})")
        self.check(code == 0 and before in (0, 1), f"run-state {before}, --restore {code}: {out}{err}")
        if "nothing was changed: the run has ended well" in out:  # it was over before it was stopped
            left = [name for name in LOGS if contents(f"{self.directory}/{name}") != contents(f"undisturbed/{name}")]
            self.check(not left, f"the run has ended well, but {left} are not those of the undisturbed run: {out}")
            return
        code, out, err = self.run_state("--json")
        outputs, verdict = json.loads(out)["outputs"], json.loads(out)["verdict"]
        shared = [each for each in outputs if each["kind"] == "shared"]
        self.check([each["path"].split("/")[-1] for each in shared] == ["pages.bin"], f"the shared files are {shared}")
        self.check(code == 0 and verdict.startswith("everything is at generation"), f"restored, but {code}: {out}{err}")
        kinds = [each["kind"] for each in outputs]
        self.check("stream" in kinds and [kind for kind in kinds if kind != "stream"] == ["file"] * 3 + ["covered"] * (1 + self.commits) + ["shared"], f"the outputs are {kinds}")
        step = int(json.loads(tailrace("checkpoint", "show", f"{self.directory}/cp", "--values", "1", "--json")[1])["items"][0]["values"][0])
        self.check(not self.commits or contents(f"{self.directory}/restart.{step}") == b"%d\n" % step, "the model's restart file is gone")
        self.check(step >= self.committed[1], f"restored to step {step}, committed was {self.committed}")
        until = "undisturbed" if step == STEPS else undisturbed(step)
        for name in LOGS:
            self.check(contents(f"{self.directory}/{name}") == contents(f"{until}/{name}"), f"{name} is not at step {step}")
        for name in names_in(f"{self.directory}/out"):
            if not name.endswith(ENDING):
                continue
            if run_of(f"{self.directory}/out/{name}") in self.without_save:
                continue  # the run has not come so far again
            found = steps_of(f"{self.directory}/out/{name}")
            is_finished = found[1] is True  # such a file stays, announced or not yet
            wanted = steps_of(f"{until}/out/{name}")[0] if os.path.exists(f"{until}/out/{name}") else []  # cut to no step
            self.check(is_finished or found[0] == wanted, f"{name} is not at step {step}: {found}")

    def kill(self, job):
        self.check(job.wait_for("begun"), f"did not begin: {job.lines}")
        if self.random.random() < 0.2:
            code, out, err = self.run_state("--restore")
            self.check(code == 2 or job.process.poll() is not None, f"restored under a program, {code}: {out}{err}")
        time.sleep(self.random.uniform(0, 0.05 + self.seconds * (1 - self.committed[1] / STEPS)))
        if job.process.poll() is not None:
            self.story.append("was over before it was killed")
            self.check(job.ended_within(1) and job.process.returncode == 0, f"ended: {job.lines}")
        elif self.random.random() < 0.3:
            victim = self.random.choice(job.ranks())
            self.story.append("killed one process")
            job.signal_one(victim, signal.SIGKILL)
            self.check(job.ended_within(60), f"the launcher did not end: {job.lines}")
        else:
            self.story.append("killed all")
            job.kill_all()

    def stop(self):
        how = self.random.choice(("signal", "signal", "limit", "limit", "halt"))
        job = self.start(limited=how == "limit")
        self.check(job.wait_for("begun"), f"did not begin: {job.lines}")
        if how != "limit":
            time.sleep(self.random.uniform(0, 0.05 + self.seconds * (1 - self.committed[1] / STEPS)))
        if how == "signal":
            for rank in job.ranks():
                job.signal_one(rank, signal.SIGTERM)
        if how == "halt":
            open(f"{self.directory}/halt", "w", encoding="ascii").close()
        self.check(job.ended_within(90), f"did not end: {job.lines}")
        if os.path.exists(f"{self.directory}/halt"):
            os.remove(f"{self.directory}/halt")
        # A signal that comes when all is done ends the program in its own way.
        done = job.matches("stopped") or job.matches("complete")
        self.check(done and (how == "signal" or job.process.returncode == 0), f"ended with {job.process.returncode}: {job.lines}")
        self.story.append(f"stopped by {how}" if job.matches("stopped") else "was over before it was stopped")
        self.stopped = True
        return job

    def fill(self):
        """Takes all space of the disk but a little, until the run has ended."""
        job = self.start()
        self.check(job.wait_for("begun"), f"did not begin: {job.lines}")
        time.sleep(self.random.uniform(0, 0.05 + self.seconds * (1 - self.committed[1] / STEPS)))
        space = os.statvfs(self.directory)
        with open(f"{self.directory}/filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):  # the run writes, too
            filler.write(bytes(max(0, space.f_bavail * space.f_bsize - self.random.choice((0, 4096, 20480)))))
        self.check(job.ended_within(90), f"did not end: {job.lines}")
        os.remove(f"{self.directory}/filler")
        told = any("No space left on device" in line or "no space for" in line for line in job.lines)
        self.check(told or job.process.returncode == 0, f"ended with {job.process.returncode}: {job.lines}")
        self.story.append("the disk was full" if told else "was over before the disk was full")
        return job

    def disturb(self):
        if self.small and self.random.random() < FULL_DISKS:
            return self.fill()
        if self.random.random() < STOPS:
            return self.stop()
        job = self.start()
        self.kill(job)
        return job

    def complete(self):
        job = self.start(2)
        self.check(job.ended_within(90), f"did not end: {job.lines}")
        self.after(job)
        self.check(job.process.returncode == 0 and job.matches("complete"),
                   f"ended with {job.process.returncode}: {job.lines}")

    def compare(self):
        out = f"{self.directory}/out"
        self.check(names_in(out) == names_in("undisturbed/out"), f"the files are {names_in(out)}")
        of_checkpoint = re.compile(r"cp\.(\d(\.r\d{5})?|u\d+\.[0-9a-f]{16}\.\d+)|restart\.\d+|pages\.bin\.undo\.(u\d+\.[0-9a-f]{16}|f[0-9a-f]+)\.\d+")
        beside = {name for name in names_in(self.directory) if not of_checkpoint.fullmatch(name)}
        self.check(beside == {*LOGS, "pages.bin.undo.kept", "out", "pids"}, f"beside them are {sorted(beside)}")
        # Each page once for each copy, once for what came behind, and no more.
        pages = sum(os.path.getsize(f"{self.directory}/{name}") for name in names_in(self.directory) if name.startswith("pages.bin.undo.u"))
        self.check(pages <= 10 * 16384, f"{pages} bytes of undo files lie beside pages.bin")
        for name in LOGS:
            self.check(contents(f"{self.directory}/{name}") == contents(f"undisturbed/{name}"),
                       f"{name} differs from the undisturbed run's")
        for name, data in reference_data.items():
            self.check(content_of(f"{out}/{name}") == data, f"{name} differs from the undisturbed run's")
            self.check(steps_of(f"{out}/{name}") == steps_of(f"undisturbed/out/{name}"), f"the index of {name} differs")
        lines = manifest(out)
        last = {entry["path"]: entry for entry in lines}
        expected = {entry["path"]: entry for entry in manifest("undisturbed/out")}
        self.check(len({entry["run"] for entry in last.values()}) == 1, f"the manifest tells of several runs: {lines}")
        told = {(entry["path"], entry["run"], entry["size"]) for entry in lines}
        self.check(len(told) == len(lines), f"lines come twice: {lines}")
        self.check(without_run(last) == without_run(expected), f"the manifest differs: {lines}")

    def play(self):
        for _ in range(self.random.choice((1, 2, 3, 3))):
            self.after(self.disturb())
            if self.random.random() < RESTORES:
                self.restore()
        self.complete()
        self.compare()
        # Once more, from the last save: nothing is withdrawn, and nothing is told twice.
        before = contents(f"{self.directory}/out/manifest.jsonl")
        self.complete()
        self.compare()
        self.check(contents(f"{self.directory}/out/manifest.jsonl") == before, "a run that changed nothing changed the manifest")
        if self.small:
            subprocess.run(["umount", "-l", self.directory], check=False)
        else:
            self.forget()
        shutil.rmtree(self.directory)

    def forget(self):
        """The checkpoint is removed for good: the undo files of pages.bin stay until somebody says so."""
        command = ("checkpoint", "forget", f"{self.directory}/cp", f"{self.directory}/pages.bin")
        pages = contents(f"{self.directory}/pages.bin")
        code, _, err = tailrace(*command)
        self.check(code == 2 and "under its name" in err, f"forgot a checkpoint that has copies, {code}: {err}")
        for name in names_in(self.directory):
            if name.startswith("cp."):
                os.remove(f"{self.directory}/{name}")
        code, out, err = tailrace(*command)
        left = [name for name in names_in(self.directory) if name.startswith("pages.bin.undo")]
        self.check(code == 0 and not left, f"forget: {code}, {out}{err}, {left} are left")
        self.check(contents(f"{self.directory}/pages.bin") == pages, "forget has changed pages.bin")


def content_of(path):
    """The bytes of a file, or of all objects of a store with their names."""
    if not os.path.isdir(path):
        return contents(path)
    objects = sorted(os.path.join(top, name) for top, _, names in os.walk(path) for name in names)
    return b"".join(os.path.relpath(each, path).encode() + b"\0" + (contents(each) or b"") for each in objects)


def names_in(directory):
    return sorted(os.listdir(directory)) if os.path.isdir(directory) else []


def manifest(directory):
    """The lines of a manifest; what a kill has left of an append is passed over, as the format tells readers to."""
    text = contents(f"{directory}/manifest.jsonl") or b""
    return [json.loads(line) for line in text.split(b"\n")[:-1]]


def without_run(entries):
    return {path: {key: value for key, value in entry.items() if key != "run"} for path, entry in entries.items()}


def steps_of(path):
    code, out, err = tailrace("index", path, "--json")
    if code != 0:
        return err
    index = json.loads(out)
    return index["steps"], index.get("closed")


def run_of(path):
    code, out, _ = tailrace("index", path, "--json")
    return json.loads(out)["run"] if code == 0 else None


for name in names_in("."):
    if name.startswith("undisturbed-"):  # of an earlier run of this script, with another pattern perhaps
        shutil.rmtree(name)


def undisturbed(steps=STEPS):
    """The directory of a run of so many steps that nothing disturbs."""
    directory = os.path.abspath("undisturbed" if steps == STEPS else f"undisturbed-{steps}")
    if os.path.exists(directory) and steps != STEPS:
        return directory
    fresh(directory)
    command = [*MPIRUN, "-n", "1", MODEL, PATTERN, OPTIONS, "cp", "overwritten=journal", str(steps), "0", "w"]
    job = Job(command, environment(), directory)
    ended = job.ended_within(60)
    check(ended and job.process.returncode == 0, f"the undisturbed run ended with {job.process.returncode}: {job.lines}")
    return directory


def reference():
    undisturbed()
    data = {name: content_of(f"undisturbed/out/{name}") for name in names_in("undisturbed/out") if name.endswith(ENDING)}
    check(len(data) == 7, f"the undisturbed run left {names_in('undisturbed/out')}")
    check((contents("undisturbed/log.txt") or b"").count(b"\n") == 2 * STEPS, "the undisturbed run left no lines")
    check(len(contents("undisturbed/log.bin") or b"") == STEPS * (8 * (23 * 19 + 333) + 6), "the undisturbed run left no arrays")
    return data


def ended_well():
    """The undisturbed run has ended well: nothing leads back behind its finished files, and its logs keep their last lines."""
    logs = {name: contents(f"undisturbed/{name}") for name in LOGS}
    code, out, err = tailrace("run-state", "-C", "undisturbed", "cp", "--restore")
    check(code == 0 and "nothing was changed: the run has ended well" in out and logs == {name: contents(f"undisturbed/{name}") for name in LOGS},
          f"--restore of a run that has ended well: {code}: {out}{err}")
    code, out, err = tailrace("checkpoint", "show", "undisturbed/cp")
    check(code == 0 and "  covered file own.log  of " in out, f"covered files of a copy: {code}: {out}{err}")
    shown = json.loads(tailrace("checkpoint", "show", "--json", "undisturbed/cp")[1])
    check([each["path"] for each in shown["covered"]] == ["own.log"] and not shown["covered"][0]["restart_file"], f"show --json: {shown['covered']}")


def lost_log():
    """A log that was lost keeps everything as it is, unless somebody says that it is to stay lost."""
    shutil.rmtree("lost", ignore_errors=True)
    shutil.copytree("undisturbed", "lost")
    os.remove("lost/own.log")
    code, out, err = tailrace("run-state", "-C", "lost", "cp", "--restore")
    check(code == 4 and "own.log is not there" in out and "TAILRACE_LOST_LOGS=go_on" in out and "nothing was changed" in out, f"--restore without a log: {code}: {out}{err}")
    # A killed run has left the lock, and what refuses to restore leaves it, too.
    open("lost/cp.lock", "w").close()
    code, out, err = tailrace("run-state", "-C", "lost", "cp", "--restore")
    check(code == 4 and os.path.exists("lost/cp.lock"), f"--restore without a log took the sign of a kill: {code}: {out}{err}")
    os.remove("lost/cp.lock")
    code, out, err = tailrace("run-state", "-C", "lost", "cp", "--restore", "--leave-lost")
    check(code == 0 and "the run has ended well" in out and contents("lost/log.bin") == contents("undisturbed/log.bin"), f"--leave-lost behind the end of a run: {code}: {out}{err}")
    code, out, err = tailrace("run-state", "-C", "lost", "cp", "--leave-lost")
    check(code == 1 and "covered file own.log  LOST" in out and "own.log stays as it is" in out, f"--leave-lost: {code}: {out}{err}")
    job = Job([*MPIRUN, "-n", "2", MODEL, PATTERN, OPTIONS, "cp", "overwritten=journal", str(STEPS), "0", "w"], environment(TAILRACE_LOST_LOGS="go_on"), os.path.abspath("lost"))
    ended = job.ended_within(60)
    check(ended and job.process.returncode == 0 and any("lost_logs=go_on" in line and "own.log is not there" in line for line in job.lines) and
          any(line.startswith("loaded ") for line in job.lines), f"a run without its log: {job.process.returncode}: {job.lines}")
    shutil.rmtree("lost")


def damaged_beside_shared():
    """What lies beside a shared file is damaged: it stays, and is named, and all other outputs go back."""
    shutil.rmtree("damaged", ignore_errors=True)
    shutil.copytree("undisturbed", "damaged")
    generation = json.loads(tailrace("run-state", "-C", "damaged", "cp", "--json")[1])["generation"]
    with open("damaged/pages.bin.undo", "w") as undo:
        undo.write("of another program")
    with open("damaged/own.log", "a") as log:
        log.write("behind\n")
    pages = contents("damaged/pages.bin")
    code, out, err = tailrace("run-state", "-C", "damaged", "cp")
    check(code == 1 and "pages.bin.undo has to tell" in out, f"run-state of a shared file with a damaged one beside it: {code}: {out}{err}")
    code, out, err = tailrace("run-state", "-C", "damaged", "cp", "--to", str(generation), "--restore")
    check(code == 4 and "pages.bin.undo has to tell" in out and "everything else is at generation" in out and contents("damaged/pages.bin") == pages and
          b"behind" not in contents("damaged/own.log"), f"--restore of a shared file with a damaged one beside it: {code}: {out}{err}")
    shutil.rmtree("damaged")


def silent():
    """A program that calls nothing behind its save goes on from it after a kill: the save counts without a call, once its steps are durable."""
    directory = os.path.abspath(fresh("silent"))
    command = [*MPIRUN, "-n", "3", MODEL, PATTERN, OPTIONS, "cp", "overwritten=journal", str(STEPS), "0", "w"]
    # Storage is so slow that the last step is durable only when the part is written and no rank is in a call any more.
    job = Job(command, environment(TAILRACE_SERVERS="1", TAILRACE_THROTTLE="1MB/s,100ms", RESTART_MODEL_SILENT="3"), directory)
    said = job.wait_for(r"silent 3")
    until = time.monotonic() + LIMIT
    while said and time.monotonic() < until and "whole" not in tailrace("checkpoint", "ls", f"{directory}/cp")[1]:
        time.sleep(0.05)
    listed = tailrace("checkpoint", "ls", f"{directory}/cp")[1]
    check(said and "whole" in listed, f"the save of a silent program counts: {listed}, {job.lines}")
    job.kill_all()
    job = Job(command, environment(TAILRACE_SERVERS="1"), directory)
    ended = job.ended_within(LIMIT)
    check(ended and job.process.returncode == 0 and job.matches("loaded 1 3") and job.matches("complete"),
          f"a silent program goes on from its save: {job.lines}")
    for name, data in reference_data.items():
        check(content_of(f"{directory}/out/{name}") == data, f"{name} differs behind a silent program")
    shutil.rmtree(directory)


print(f"seed {given.seed} {TIMES}", flush=True)
reference_data = reference()
if FORMAT == "raw" and given.round is None:
    ended_well()
    lost_log()
    damaged_beside_shared()
    silent()
for number in [given.round] if given.round is not None else range(given.rounds or ROUNDS):
    one = Round(number)
    try:
        one.play()
    except RoundFailed:
        end_all()
    print("; ".join(one.story), flush=True)
finish()
