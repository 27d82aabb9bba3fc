#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The nested forecast leaves the same files however it comes by its boundaries: read ahead by threads, by servers or not at all,
all at the start, from files of a forecast that still runs, and where it is killed and gone on with.

    nested_test.py [ROUNDS [SEED]]"""
import os
import random
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "examples", "weather"))
from demo import Failure, Launcher, fresh  # noqa: E402
from nested import Pair  # noqa: E402
from restart import run_and_kill  # noqa: E402

MOST_KILLS = 3  # in one round: then it may come to its end


def fail(text):
    sys.exit(f"FAILED: {text}")


def same(what, files, expected):
    odd = sorted(name for name in files.keys() | expected.keys() if files.get(name) != expected.get(name))
    if odd:
        fail(f"{what}: other files: {odd}")
    print(f"{what}: the same {len(files)} files", flush=True)


def killed_and_gone_on_with(pair, choose, seconds):
    directory = pair.out / "killed"
    fresh(directory)
    story = []
    for kill in range(MOST_KILLS + 1):
        servers, ranks = choose.choice((0, 1)), choose.choice((1, 2, 3))
        delay = choose.uniform(0.2, 1.1) * seconds if kill < MOST_KILLS else 120
        story.append(f"{ranks} ranks, {servers} servers, {delay:.2f} s")
        code = run_and_kill(pair.inner(directory, "--checkpoint-every", "1", "--restart", ranks=ranks + servers),
                            pair.launcher.environment({"SERVERS": servers, "THROTTLE": "3MB/s"}), delay)
        if code is not None:
            break
    if code != 0:
        fail(f"exit code {code}; it was {story}")
    return f"killed {len(story) - 1} times and gone on with", pair.digests(directory)


def a_missing_file_ends_the_forecast(pair):
    """The text names the lead and the files, once; nothing hangs."""
    gone = pair.boundaries / "bd_2026030100+012.grib2"
    gone.rename(pair.out / "gone")
    told = ""
    try:
        pair.run_inner("missing", ranks=2)
    except Failure as failure:
        told = str(failure)
    (pair.out / "gone").rename(gone)
    lines = [line for line in told.splitlines() if "bd_" in line and "lead 33000" in line]
    if len(lines) != 1:
        fail(f"one line of a forecast without its last boundary file is to name the files and the lead: {told}")
    print(lines[0], flush=True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 6 if "TEST_ALL" in os.environ else 1
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for tool in ("cdo", "grib_count"):
        if shutil.which(tool) is None:
            print(f"skipped: {tool} is not installed")
            sys.exit(77)
    print(f"seed {seed}", flush=True)
    out = Path("nested")
    fresh(out)
    pair = Pair(Launcher(Path(os.environ["TEST_BUILD"])), out, "48x40", 2, 12, 3)
    pair.make_terrain()
    if pair.make_boundaries() != 5:
        fail("the coarse forecast left no file for each 3 hours from 0 to 12")
    expected, _, _ = pair.run_inner("memory", "--boundaries-in-memory")
    if len(expected) != 5:
        fail(f"the nested forecast left {sorted(expected)}")
    begun = time.monotonic()
    same("read ahead", pair.run_inner("ahead", ranks=2)[0], expected)
    seconds = time.monotonic() - begun
    same("read by a server", pair.run_inner("served", ranks=4, settings={"SERVERS": 1})[0], expected)
    same("read when it is asked for", pair.run_inner("late", "--prefetch", "0", ranks=3, settings={"IO_THREADS": 0})[0], expected)
    choose = random.Random(seed)
    for _ in range(rounds):
        same(*killed_and_gone_on_with(pair, choose, seconds), expected)
    a_missing_file_ends_the_forecast(pair)
    same("following", pair.run_both("followed", ranks=2)[0], expected)
    shutil.rmtree(out)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        fail(failure)
