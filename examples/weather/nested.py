#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A nested forecast: the whole area coarsely, then Europe inside of it, held to the coarse forecast at its rims.

The coarse forecast leaves a boundary file every 3 hours. cdo interpolates each to the grid of the nested one, which reads
them ahead while it computes. It runs three times, and its files must be the same each time:

  1  with all boundaries read at the start and kept in memory
  2  with boundaries that are read ahead, two files at a time
  3  at the same time as the coarse forecast: it follows the files as they come

nested.svg in the output directory shows both forecasts and how far they are apart near the border.

By hand, after ./dev build:

  python3 examples/weather/nested.py --build build/release-openmpi --out out/nested
  python3 examples/weather/nested.py --build build/release-openmpi --size 60x48 --levels 4 --hours 12
"""
import argparse
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import formats
from demo import Failure, Launcher, act, cores, fresh, require_programs, run_tool, say
from nested_picture import make_picture

BOUNDARIES = "bd_{base:%Y%m%d%H}+{lead:03h}.grib2"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="build directory that holds the model")
    parser.add_argument("--out", type=Path, default=Path("out/nested"), help="output directory (default: %(default)s)")
    parser.add_argument("--size", default="156x126", help="grid points of both forecasts; the nested one's are half as far apart "
                        "(default: %(default)s)")
    parser.add_argument("--levels", type=int, default=20, help="hybrid levels of the nested forecast (default: %(default)s)")
    parser.add_argument("--hours", type=int, default=24, help="length of the forecasts (default: %(default)s)")
    parser.add_argument("--every", type=int, default=3, help="hours between boundary files (default: %(default)s)")
    parser.add_argument("--ranks", type=int, default=max(1, min(4, cores())), help="of the nested forecast (default: %(default)s)")
    parser.add_argument("--servers", type=int, default=0, help="I/O servers of the nested forecast (default: %(default)s)")
    return parser.parse_args()


class Pair:
    """The two forecasts, their terrain and the boundary files between them."""

    def __init__(self, launcher, out, size, levels, hours, every):
        self.launcher, self.out, self.size, self.levels, self.hours, self.every = launcher, out.absolute(), size, levels, hours, every
        self.grid = self.out / "nested_grid.txt"
        self.boundaries = self.out / "boundaries"

    def make_terrain(self):
        for nested, name in (([], "terrain.grib2"), (["--nested"], "nested_terrain.grib2")):
            grid = self.grid if nested else self.out / "grid.txt"
            grid.write_text(run_tool(self.launcher.model, "--size", self.size, *nested, "--print-grid", env=self.launcher.environment({})))
            run_tool("cdo", "-s", "-O", "-f", "grb2", "-setname,orog", f"-remapbil,{grid}", "-topo", self.out / name)

    def interpolation(self, source):
        """The shell command that interpolates one boundary file, and says that it is whole: who follows waits for the mark."""
        grid, folder = shlex.quote(str(self.grid)), shlex.quote(str(self.boundaries))
        return (f'name={folder}/bd_$(basename {source} | sed s/outer_//) && '
                f'cdo -s -O -b 24 remapbil,{grid} {source} "$name.part" && '
                'mv "$name.part" "$name" && : > "$name.ready"')

    def outer(self, directory, *more, ranks=1):
        return self.launcher.command(ranks) + [
            "--size", self.size, "--levels", "1", "--hours", str(self.hours), "--boundaries-every", str(self.every), "--no-output",
            "--terrain", str(self.out / "terrain.grib2"), "--out", str(directory), "--quiet", *more]

    def inner(self, directory, *more, ranks=1):
        return self.launcher.command(ranks) + [
            "--nested", "--size", self.size, "--levels", str(self.levels), "--hours", str(self.hours),
            "--boundaries-every", str(self.every), "--boundaries", str(self.boundaries / BOUNDARIES),
            "--terrain", str(self.out / "nested_terrain.grib2"), "--out", str(directory), "--quiet", *more]

    def make_boundaries(self):
        """The coarse forecast, and its files interpolated one after the other. Returns how many they are."""
        outer = self.out / "outer"
        fresh(outer)
        fresh(self.boundaries)
        run_tool(*self.outer(outer), env=self.launcher.environment({}))
        files = sorted(outer.glob("outer_*.grib2"))
        for file in files:
            run_tool("sh", "-c", self.interpolation('"$1"'), "sh", file)
        return len(files)

    def run_inner(self, name, *more, ranks=1, settings=None):
        """Returns the digests of the files, the times, and the report of the streams that are read."""
        directory = self.out / name
        fresh(directory)
        timings, report = directory / "timings.json", directory / "report.json"
        run_tool(*self.inner(directory, "--timings", str(timings), *more, ranks=ranks),
                 env=self.launcher.environment({"REPORT": report, **(settings or {})}))
        return self.digests(directory), json.loads(timings.read_text()), json.loads(report.read_text())

    def run_both(self, name, timeout="2m", ranks=1, settings=None):
        """Both at the same time: boundary files come as the coarse forecast finishes its own."""
        outer = self.out / "outer"
        fresh(outer)
        fresh(self.boundaries)
        with open(self.out / "outer.log", "w") as log:
            process = subprocess.Popen(self.outer(outer, "--hook", self.interpolation('"$1"')), env=self.launcher.environment({}),
                                       stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            try:
                answer = self.run_inner(name, "--follow", timeout, ranks=ranks, settings=settings)
                if process.wait(timeout=120):
                    raise Failure(f"the coarse forecast ended with {process.returncode}; see {log.name}")
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()
        return answer

    @staticmethod
    def digests(directory):
        return {path.name: formats.digest(path) for path in formats.FORMATS["grib2"].files(directory)}


def tell(title, seconds, timings):
    say(f"  {title:28} {seconds:6.1f} s in all; in calls for boundaries {timings['boundary_seconds']:.2f} s")


def main():
    args = parse_arguments()
    launcher = Launcher(args.build)
    require_programs(formats.FORMATS["grib2"])
    args.out.mkdir(parents=True, exist_ok=True)
    pair = Pair(launcher, args.out, args.size, args.levels, args.hours, args.every)
    settings, ranks = {"SERVERS": args.servers}, args.ranks + args.servers
    act(1, "the coarse forecast, and its boundary files")
    pair.make_terrain()
    begun = time.monotonic()
    say(f"  {pair.make_boundaries()} files, interpolated by cdo: {time.monotonic() - begun:.1f} s")
    act(2, "the nested forecast")
    results = []
    for title, name, more in (("boundaries in memory", "memory", ["--boundaries-in-memory"]), ("boundaries read ahead", "ahead", [])):
        begun = time.monotonic()
        files, timings, _ = pair.run_inner(name, *more, ranks=ranks, settings=settings)
        tell(title, time.monotonic() - begun, timings)
        results.append(files)
    act(3, "both at the same time")
    begun = time.monotonic()
    files, timings, _ = pair.run_both("followed", ranks=ranks, settings=settings)
    tell("following the coarse one", time.monotonic() - begun, timings)
    results.append(files)
    if not results[0] or any(files != results[0] for files in results):
        raise Failure(f"the nested forecasts left other files in {args.out}/memory, ahead and followed")
    say(f"\nThe {len(results[0])} files of the three nested forecasts are the same, byte for byte: {args.out}/ahead")
    say(f"Both forecasts in one picture: {make_picture(args.out)}")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"nested.py: {failure}")
