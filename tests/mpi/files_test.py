# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What becomes of files: existing ones, roll-over by pattern, manifest, ready markers and hooks, `tailrace wait` beside a running
program, and a forgotten tr_finalize."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from killed_job import Job  # noqa: E402
from small_model import *  # noqa: E402,F403


def existing_files(servers):
    directory = fresh(f"existing-s{servers}")
    path = f"{directory}/fc.raw"
    ranks, settings = 2 + servers, {"TAILRACE_SERVERS": str(servers)}
    code, _, err = run(ranks, arguments(path, "format=raw", 2), **settings)
    check(code == 0 and raw_steps(path, 0, 2), f"the first run ended with {code}: {err}")
    code, _, err = run(ranks, arguments(path, "format=raw existing=fail", 1), **settings)
    check(code == 1 and "exists already (existing=fail)" in err and "tr_stream_create" in err,
          f"existing=fail: {code}, {err}")
    code, _, err = run(ranks, arguments(f"{directory}/f{{lead:h}}.raw", "format=raw", 1), **settings)
    code, _, err = run(ranks, arguments(f"{directory}/f{{lead:h}}.raw", "format=raw existing=fail", 3, 2), **settings)
    check(code == 1 and "f0.raw exists already" in err and "tr_stream_create" in err,
          f"existing=fail with a file of the pattern: {code}, {err}")
    check(raw_steps(path, 0, 2), "existing=fail touched the file")
    code, _, err = run(ranks, arguments(path, "format=raw existing=continue", 4, 3), **settings)
    check(code == 0 and raw_steps(path, 0, 4), f"existing=continue: {code}, {err}")
    code, _, err = run(ranks, arguments(path, "format=raw existing=continue", 4, 4), **settings)
    check(code == 1 and "goes up to lead 14400 s already" in err, f"continuing at a lead that is there: {code}, {err}")
    check(raw_steps(path, 0, 4), "a refused continuation touched the file")
    code, _, err = run(ranks, arguments(path, "format=raw existing=replace", 1), **settings)
    check(code == 0 and raw_steps(path, 0, 1), f"existing=replace: {code}, {err}")
    code, out, err = tailrace("index", path, "--json")
    check(code == 0 and len(json.loads(out)["steps"]) == 2, f"the index after existing=replace: {out} {err}")


def what_cannot_be_written_fails_at_create(servers):
    directory = fresh(f"unwritable-s{servers}")
    ranks, settings = 2 + servers, {"TAILRACE_SERVERS": str(servers)}
    with open(f"{directory}/file", "w") as file:
        file.write("no directory")
    code, _, err = run(ranks, arguments(f"{directory}/file/fc.raw", "format=raw", 1), **settings)
    check(code == 1 and "tr_stream_create" in err, f"a directory that is none: {code}, {err}")
    with open(f"{directory}/fc.raw", "w") as file:
        file.write("somebody's results")
    for existing in ("", "existing=continue"):
        code, _, err = run(ranks, arguments(f"{directory}/fc.raw", f"format=raw {existing}", 1), **settings)
        check(code == 1 and "fc.raw" in err and "existing=overwrite" in err, f"{existing} a foreign file: {code}, {err}")
        check(contents(f"{directory}/fc.raw") == b"somebody's results", f"{existing} changed a foreign file")
    code, _, err = run(ranks, arguments(f"{directory}/fc.raw", "format=raw existing=overwrite", 1), **settings)
    check(code == 0 and raw_steps(f"{directory}/fc.raw", 0, 1), f"existing=overwrite: {code}, {err}")
    check([name for name in os.listdir(directory) if "lock" in name] == [], f"locks stayed: {os.listdir(directory)}")
    # What was meant by a slip is told, and nothing is written.
    code, _, err = run(ranks, arguments(f"{directory}/fc.grib2", "centr=98", 1), TAILRCE_SERVERS="1", **settings)
    check("TAILRCE_SERVERS means nothing to Tailrace; did you mean TAILRACE_SERVERS?" in err and err.count("TAILRCE") == 1, f"a slip: {err}")
    if "built without ecCodes" not in err:
        check(code == 1 and 'did you mean "centre"?' in err and "tr_stream_create" in err, f"a key that no message has: {code}, {err}")
        check(not os.path.exists(f"{directory}/fc.grib2"), "a refused key has left a file")


def one_job_for_a_pattern(servers):
    """Files of one job are closed while the next step is computed: their own locks would not keep another job out."""
    directory = os.path.abspath(fresh(f"twice-s{servers}"))
    pattern = directory + "/fc+{lead:03h}.raw"
    command = [*MPIRUN, "-n", str(2 + servers), *arguments(pattern, "format=raw", 3)]
    first = Job(command, environment(TAILRACE_SERVERS=str(servers), SMALL_MODEL_AWAITS=f"3:{directory}/never"), directory)
    try:
        until = time.time() + 60
        while not os.path.exists(f"{directory}/fc+001.raw") and time.time() < until and first.process.poll() is None:
            time.sleep(0.01)
        before = contents(f"{directory}/fc+000.raw")
        code, _, err = run(2 + servers, arguments(pattern, "format=raw", 1), TAILRACE_SERVERS=str(servers))
        check(first.process.poll() is None, "the first job was over too early")
        check(code == 1 and "another stream writes files of the same names" in err and "held by" in err,
              f"a second job with the same names: {code}, {err}")
        check(contents(f"{directory}/fc+000.raw") == before, "the second job wrote into the first one's file")
    finally:
        first.kill_all()
    # The lock went with its process, whatever is left of it.
    code, _, err = run(2 + servers, arguments(pattern, "format=raw", 1), TAILRACE_SERVERS=str(servers))
    check(code == 0, f"a job after the one that was killed: {code}, {err}")


def every_file_has_a_line(servers):
    directory = fresh(f"listed-s{servers}")
    code, _, err = run(2 + servers, arguments(f"{directory}/fc.raw", "format=raw", 1), TAILRACE_SERVERS=str(servers))
    with open(f"{directory}/manifest.jsonl") as file:
        manifest = [json.loads(line) for line in file]
    check(code == 0 and [(entry["path"], entry["leads"]) for entry in manifest] == [("fc.raw", [0, 3600])],
          f"the manifest of a file without leads in its name: {code}, {manifest}, {err}")


def rolled_over_files(servers):
    directory = fresh(f"rolled-s{servers}")
    hook = f"echo $1 $(stat -c %s $1) >>{directory}/hooked"
    options = f"format=raw ready=.ready hook='{hook}'"
    pattern = directory + "/fc_{base:%Y%m%d%H}+{lead:03h}.raw"
    code, out, err = run(2 + servers, arguments(pattern, options, 3), TAILRACE_SERVERS=str(servers))
    check(code == 0, f"rolling over ended with {code}: {err}")
    names = [f"fc_2026030100+{hour:03}.raw" for hour in range(4)]
    for hour, name in enumerate(names):
        check(raw_steps(f"{directory}/{name}", hour, hour), f"{name} has not its step")
        check(os.path.exists(f"{directory}/{name}.ready"), f"{name}.ready is missing")
    with open(f"{directory}/manifest.jsonl") as file:
        manifest = [json.loads(line) for line in file]
    check([entry["path"] for entry in manifest] == names, f"the manifest lists {manifest}")
    for hour, entry in enumerate(manifest):
        check(entry["size"] == STEP_BYTES and entry["leads"] == [3600 * hour] and entry["records"] == 2 * LEVELS,
              f"the manifest's line {entry}")
    with open(f"{directory}/hooked") as file:
        hooked = file.read().split("\n")[:-1]
    check(hooked == [f"{directory}/{name} {STEP_BYTES}" for name in names], f"the hook saw {hooked}")


def a_hook_that_cannot_be_run_is_told(servers):
    directory = fresh(f"hook-s{servers}")
    for hook, why in (("tailrace-no-such-command", "exit status 127: command not found"), ("exit 3", "exit status 3"),
                      ("kill -9 $$", "ended by signal 9"), ("kill -TERM $$; sleep 5", "ended by signal 15")):
        code, _, err = run(2 + servers, arguments(f"{directory}/fc.raw", f"format=raw existing=replace hook='{hook}'", 0),
                           TAILRACE_SERVERS=str(servers))
        check(code == 0 and f"hook '{hook}' failed for {directory}/fc.raw ({why})" in err,
              f"a hook that fails: {code}, {err}")


def waiting_beside_the_run(servers):
    directory = fresh(f"waited-s{servers}")
    pattern = directory + "/fc_{base:%Y%m%d%H}+{lead:03h}.raw"
    where = ["wait", pattern, "--base", "2026-03-01T00:00Z"]
    check(tailrace(*where, "--lead", "1h", "--timeout", "0")[0] == 3, "wait for what nobody writes")
    beside = subprocess.Popen([*MPIRUN, "-n", str(2 + servers), *arguments(pattern, "format=raw", 6)],
                              env=environment(TAILRACE_SERVERS=str(servers), SMALL_MODEL_AWAITS=f"4:{directory}/go"),
                              stdout=subprocess.DEVNULL)
    code, out, err = tailrace(*where, "--lead", "2h", "--timeout", "30s")
    check(code == 0 and out.strip().endswith("+002.raw"), f"wait beside the run: {code}, {out} {err}")
    check(raw_steps(out.strip(), 2, 2), "wait came back before the step was in its file")
    check(beside.poll() is None, "wait came back only after the whole run")
    open(f"{directory}/go", "w", encoding="ascii").close()
    check(beside.wait(timeout=60) == 0, "the run beside wait failed")
    code, out, err = tailrace("wait", f"{directory}/fc_2026030100+006.raw", "--lead", "9h", "--timeout", "5s")
    check(code == 5, f"wait for a step that a closed file has not: {code}, {err}")
    check(tailrace(*where, "--timeout", "0")[0] == 2, "wait without a lead is a usage error")


def forgotten_finalize(servers):
    directory = fresh(f"forgotten-s{servers}")
    code, out, err = run(2 + servers, arguments(f"{directory}/fc.raw", "format=raw", 1, 0, 0, "forget"),
                         TAILRACE_SERVERS=str(servers))
    check(code != 0, "a forgotten tr_finalize ended with 0")
    check("before tr_finalize" in err, f"a forgotten tr_finalize said: {err}")


def open_at_finalize(servers):
    directory = fresh(f"open-s{servers}")
    code, out, err = run(2 + servers, arguments(f"{directory}/fc.raw", "format=raw", 2), SMALL_MODEL_KEEPS_OPEN="1",
                         TAILRACE_SERVERS=str(servers))
    check(code == 0 and raw_steps(f"{directory}/fc.raw", 0, 2), f"tr_finalize closes what is open: {code}, {err}")


for servers in (0, 2):
    existing_files(servers)
    rolled_over_files(servers)
    what_cannot_be_written_fails_at_create(servers)
    one_job_for_a_pattern(servers)
    every_file_has_a_line(servers)
    a_hook_that_cannot_be_run_is_told(servers)
    forgotten_finalize(servers)
    open_at_finalize(servers)
    if COMMAND:
        waiting_beside_the_run(servers)
finish()
