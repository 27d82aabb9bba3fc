#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The sample forecast, killed at random moments and restarted until it is done, on other numbers of ranks and servers each
time: its files are those of an undisturbed run, and no others.

    restart_test.py WEATHER grib2|cdf5|netcdf4|zarr [ROUNDS [SEED]]"""
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "examples", "weather"))
from formats import FORMATS, digest  # noqa: E402
from restart import run_and_kill  # noqa: E402

MOST_KILLS = 4  # in one round: then it may come to its end


def skip_without(*tools):
    for tool in tools:
        if shutil.which(tool) is None:
            print(f"skipped: {tool} is not installed")
            sys.exit(77)


def command(model, form, ranks, directory, *more):
    return [*os.environ["TEST_MPIRUN"].split(), "-n", str(ranks), model, "--size", "48x40", "--levels", "4", "--hours", "12",
            "--output-every", "2", "--terrain", "terrain.grib2", "--out", str(directory), "--quiet", "--format", form.name, *more]


def environment(servers):
    return {**os.environ, "TAILRACE_SERVERS": str(servers), "TAILRACE_THROTTLE": "3MB/s"}


def make_terrain(model):
    grid = subprocess.run([model, "--size", "48x40", "--print-grid"], check=True, capture_output=True, text=True).stdout
    Path("grid.txt").write_text(grid)
    subprocess.run(["cdo", "-s", "-O", "-f", "grb2", "-setname,orog", "-remapbil,grid.txt", "-topo", "terrain.grib2"],
                   check=True)


def digests(form, directory):
    return {path.name: digest(path) for path in form.files(Path(directory))}


def one_round(model, form, choose, expected, seconds):
    directory = Path("killed")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    story = []
    for kill in range(MOST_KILLS + 1):
        servers = choose.choice((0, 0, 1))
        ranks = choose.choice((1, 2, 3, 4)) + servers
        delay = choose.uniform(0.2, 1.1) * seconds if kill < MOST_KILLS else 120
        story.append(f"{ranks} ranks, {servers} servers, {delay:.2f} s")
        code = run_and_kill(command(model, form, ranks, directory, "--checkpoint-every", "1", "--restart"),
                            environment(servers), delay)
        if code is not None:
            break
    else:
        sys.exit(f"FAILED: still not done; it was {story}")
    left = digests(form, directory)
    odd = sorted(name for name in left.keys() | expected.keys() if left.get(name) != expected.get(name))
    if code != 0 or odd:
        sys.exit(f"FAILED: exit code {code}, other files: {odd}; it was {story}; see {directory.absolute()}")
    more = sorted(path.name for path in directory.iterdir() if ".again" in path.name or path.suffix in (".lock", ".old"))
    if more:
        sys.exit(f"FAILED: left behind: {more}; it was {story}")
    return len(story) - 1


def main():
    model = sys.argv[1]
    form = FORMATS[sys.argv[2]]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 10 if "TEST_ALL" in os.environ else 3
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    skip_without("cdo")
    print(f"seed {seed}", flush=True)
    make_terrain(model)
    shutil.rmtree("undisturbed", ignore_errors=True)
    Path("undisturbed").mkdir()
    begun = time.monotonic()
    subprocess.run(command(model, form, 2, "undisturbed"), env=environment(0), check=True)
    seconds = time.monotonic() - begun
    expected = digests(form, "undisturbed")
    assert len(expected) == 7, expected.keys()
    choose = random.Random(seed)
    kills = sum(one_round(model, form, choose, expected, seconds) for _ in range(rounds))
    print(f"{rounds} forecasts were killed {kills} times and ended with the files of the undisturbed one")
    for directory in ("killed", "undisturbed"):
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
