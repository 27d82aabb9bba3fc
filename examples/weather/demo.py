#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Runs the sample forecast with and without I/O servers, checks that the files are the same, also after the forecast was
killed and restarted, and shows the result.

The storage is slowed to a stated rate, so that the difference between the runs is the disk's. `./dev demo` builds the
model and calls this; by hand:

  python3 examples/weather/demo.py --build build/release-openmpi --out out/demo
  python3 examples/weather/demo.py --build build/release-openmpi --quick
  python3 examples/weather/demo.py --build build/release-openmpi --format zarr
  python3 examples/weather/demo.py --build build/release-openmpi --large --rate 40MB/s --servers 1,2

It leaves in the output directory: the files in GRIB2, NetCDF or Zarr, summary.json (every figure of the table), report.json and
trace.json (of the run with servers; trace.json opens in ui.perfetto.dev) and demo.html.
"""
import argparse
import datetime
import json
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import formats
from restart import run_and_kill

TERMINAL = sys.stdout.isatty()


class Failure(Exception):
    """An error that is told in one line, without a traceback."""


# ---- what to do ----------------------------------------------------------------------------------------------

def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="build directory that holds the model")
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="output directory (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="one rank, inline, a small grid: seconds")
    parser.add_argument("--large", action="store_true", help="468x378x40, 48 hours: HIRLAM's size")
    parser.add_argument("--format", choices=list(formats.FORMATS), default="grib2",
                        help="of the forecast's files: grib2 (packed; default; 110 MB a run); cdf5, classic NetCDF with 64-bit "
                        "sizes (whole values: 680 MB); netcdf4 (compressed to the accuracy of each field: 180 MB); or zarr, "
                        "stores of Zarr 3 (compressed, whole values: 580 MB)")
    parser.add_argument("--size", help="grid points NXxNY (default: 312x252)")
    parser.add_argument("--levels", type=int, help="hybrid levels (default: 40)")
    parser.add_argument("--hours", type=int, help="length of the forecast (default: 48)")
    parser.add_argument("--output-every", type=int, default=3, help="hours between outputs of all fields")
    parser.add_argument("--surface-every", type=int, default=1, help="hours between outputs of surface fields")
    parser.add_argument("--ranks", type=int, help="ranks that compute (default: the cores, at most 4)")
    parser.add_argument("--servers", default="1,2",
                        help="numbers of servers to run with besides 0 (default: %(default)s)")
    parser.add_argument("--rate", help="rate of the storage, such as 20MB/s (default: chosen so that writing inline "
                        "takes about as long as computing); 'full' does not slow it")
    parser.add_argument("--keep", action="store_true", help="keep the files of every run, not only of one")
    parser.add_argument("--no-page", action="store_true", help="make no demo.html")
    parser.add_argument("--quiet", action="store_true", help="no progress bars")
    args = parser.parse_args()
    args.format = formats.FORMATS[args.format]
    small = (156, 126) if args.quick else (468, 378) if args.large else (312, 252)
    args.size = args.size or "x".join(map(str, small))
    if not re.fullmatch(r"\d+x\d+", args.size):
        parser.error(f"--size: expected NXxNY such as 312x252, got '{args.size}'")
    args.nx, args.ny = map(int, args.size.split("x"))
    args.levels = args.levels or (10 if args.quick else 40)
    args.hours = args.hours or (6 if args.quick else 48)
    args.ranks = args.ranks or (1 if args.quick else max(1, min(4, cores())))
    if not re.fullmatch(r"\d+(,\d+)*", args.servers):
        parser.error(f"--servers: expected numbers such as 1,2, got '{args.servers}'")
    args.servers = [] if args.quick else sorted({int(n) for n in args.servers.split(",")} - {0})
    return args


def cores():
    return len(os.sched_getaffinity(0))


# ---- programs ------------------------------------------------------------------------------------------------

def require_programs(form):
    package_of = {"cdo": "cdo", **({form.counter: form.package} if form.counter else {})}
    missing = [name for name in package_of if shutil.which(name) is None]
    if missing:
        packages = " ".join(sorted({package_of[name] for name in missing}))
        raise Failure(f"{', '.join(missing)} not found. Install with:  apt-get install {packages}")


def run_tool(*command, **options):
    """The standard output of a short command; its error output only if it fails."""
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))} failed:\n{result.stderr.strip() or result.stdout.strip()}")
    return result.stdout


class Launcher:
    """Starts the model with the MPI that it was built with."""

    def __init__(self, build):
        self.model = build / "examples" / "weather" / "weather"
        if not self.model.exists():
            raise Failure(f"{self.model} does not exist. Build it with ./dev build, or let ./dev demo do everything; "
                          "if it was left out, the configure summary says what is missing.")
        cache = (build / "CMakeCache.txt").read_text(errors="replace") if (build / "CMakeCache.txt").exists() else ""
        found = re.search(r"^MPIEXEC_EXECUTABLE:\w+=(.+)$", cache, re.M)
        # The presets name the launcher without its path.
        self.mpiexec = (shutil.which(found.group(1)) if found else None) or shutil.which("mpirun")
        if self.mpiexec is None:
            raise Failure("no mpirun found. Install with:  apt-get install openmpi-bin")
        version = subprocess.run([self.mpiexec, "--version"], capture_output=True, text=True).stdout
        self.openmpi = "Open MPI" in version or "OpenRTE" in version or "open-mpi" in version
        number = re.search(r"\d+\.\d+\.\d+", version)
        self.name = ("Open MPI " if self.openmpi else "MPICH ") + (number.group() if number else "")
        # A search of the whole build would meet directories that tests beside this one remove.
        yielding = build / "tests/support/libtailrace_mpich_yield.so"
        self.yielding = yielding if yielding.exists() else None

    def command(self, ranks):
        if self.openmpi:
            return [self.mpiexec, "--oversubscribe", "--bind-to", "none", "-n", str(ranks), str(self.model)]
        return [self.mpiexec, "-n", str(ranks), str(self.model)]

    def environment(self, settings):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TAILRACE_")}
        kept.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
        if not self.openmpi and self.yielding:
            kept["LD_PRELOAD"] = str(self.yielding)       # MPICH never yields: without it more ranks than cores crawl
        kept.update({f"TAILRACE_{name}": str(value) for name, value in settings.items()})
        return kept


# ---- the acts ------------------------------------------------------------------------------------------------

def say(text=""):
    print(text, flush=True)


def act(number, title):
    say()
    say(f"\033[1m{number}  {title}\033[0m" if TERMINAL else f"{number}  {title}")


def make_terrain(launcher, args):
    """The topography built into cdo on the model's grid, which the model reads in GRIB2 whatever it writes."""
    terrain, grid = args.out / "terrain.grib2", args.out / "grid.txt"
    grid.write_text(run_tool(launcher.model, "--size", args.size, "--print-grid", env=launcher.environment({})))
    run_tool("cdo", "-s", "-O", "-f", "grb2", "-setname,orog", f"-remapbil,{grid}", "-topo", terrain)
    grid.unlink()
    say(f"  {terrain}: {args.nx} x {args.ny} points, rotated latitude-longitude")
    return terrain


class Run:
    """One forecast: how it was made, what it took, what it left."""

    def __init__(self, name, title, servers, directory):
        self.name, self.title, self.servers, self.directory = name, title, servers, directory
        self.timings, self.report, self.wall, self.files = {}, None, 0.0, {}
        self.others = None             # share of our cores that other programs took meanwhile

    @property
    def step_seconds(self):
        return self.timings["step_seconds"]

    @property
    def blocked(self):
        return self.timings["blocked_seconds"] + self.timings["closing_seconds"] if self.servers is not None else 0.0


def fresh(directory):
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)


def model_command(launcher, args, ranks, terrain, directory):
    return launcher.command(ranks) + ["--size", args.size, "--levels", str(args.levels), "--hours", str(args.hours),
                                      "--output-every", str(args.output_every), "--surface-every",
                                      str(args.surface_every), "--terrain", str(terrain), "--out", str(directory),
                                      *(["--format", args.format.name] if args.format.name != "grib2" else [])]


def digests(args, directory):
    return {path.name: formats.digest(path) for path in args.format.files(directory)}


def forecast(launcher, args, run, terrain, rate):
    fresh(run.directory)
    command = model_command(launcher, args, args.ranks + (run.servers or 0), terrain, run.directory)
    command += ["--timings", str(run.directory / "timings.json"),
                "--progress", "none" if args.quiet else "bar" if TERMINAL else "lines"]
    settings = {"SERVERS": run.servers or 0}
    if run.servers is None:
        command.append("--no-output")
    else:
        settings.update(REPORT=run.directory / "report.json", TRACE=run.directory / "trace.json")
        if rate:
            settings["THROTTLE"] = rate
    begun, busy = time.monotonic(), busy_seconds()
    process = subprocess.Popen(command, env=launcher.environment(settings), stdin=subprocess.DEVNULL)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    run.wall = time.monotonic() - begun
    if busy is not None:
        taken = [after - before for before, after in zip(busy, busy_seconds())]
        run.others = min(1.0, max(0.0, taken[0] - taken[1]) / (cores() * run.wall))
    if code != 0:
        shown = " ".join(f"TAILRACE_{name}={value}" for name, value in settings.items())
        raise Failure(f"the run '{run.title}' failed with exit code {code}. It was:\n  {shown} {' '.join(command)}")
    run.timings = json.loads((run.directory / "timings.json").read_text())
    report = run.directory / "report.json"
    run.report = json.loads(report.read_text()) if report.exists() else None
    run.files = digests(args, run.directory)


def busy_ticks(stat, own_cores):
    """Clock ticks in which these cores worked, by the text of /proc/stat (proc(5): user nice system idle iowait irq
    softirq steal). What a hypervisor gave to others is not idle."""
    names = {f"cpu{number}" for number in own_cores}
    lines = [line.split() for line in stat.splitlines()]
    return sum(sum(map(int, words[1:4] + words[6:9])) for words in lines if words and words[0] in names)


def busy_seconds():
    """Seconds that the cores on which we may run have worked for anybody, and for us and the programs that we have waited
    for. None where the system does not tell."""
    try:
        stat = Path("/proc/stat").read_text()
    except OSError:
        return None
    return busy_ticks(stat, os.sched_getaffinity(0)) / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


def killed_and_restarted(launcher, args, undisturbed, terrain, rate):
    """Kills a run at a random moment and goes on from its checkpoint on another number of ranks; its files are those of
    the undisturbed run, or a Failure tells the first difference."""
    directory = args.out / "run-killed"
    fresh(directory)
    settings = {"SERVERS": 0, **({"THROTTLE": rate} if rate else {})}
    options = ["--checkpoint-every", "1", "--progress", "none"]
    wait = random.uniform(0.05, 0.6) * undisturbed.wall
    code = run_and_kill(model_command(launcher, args, args.ranks, terrain, directory) + options,
                        launcher.environment(settings), wait, directory / "restart.0")
    say(f"  {args.ranks} ranks, " + (f"killed (kill -9) {wait:.1f} s after the first checkpoint" if code is None
                                     else "which were done before they could be killed"))
    ranks = args.ranks - 1 if args.ranks > 2 else args.ranks + 1
    command = model_command(launcher, args, ranks, terrain, directory) + [*options, "--restart"]
    again = subprocess.run(command, env=launcher.environment(settings), stdin=subprocess.DEVNULL, capture_output=True,
                           text=True)
    if again.returncode != 0:
        raise Failure(f"the restart failed with exit code {again.returncode}: {again.stderr.strip()}. It was:\n"
                      f"  {' '.join(command)}")
    for line in again.stdout.splitlines():
        say(f"  {ranks} ranks: {line.removeprefix('weather: ')}")
    files = digests(args, directory)
    odd = sorted(name for name in files.keys() | undisturbed.files.keys()
                 if files.get(name) != undisturbed.files.get(name))
    if odd:
        raise Failure(f"{odd[0]} differs from that of the undisturbed run: see {directory}")
    say(f"  {len(files)} files, byte for byte those of the undisturbed run")
    shutil.rmtree(directory)


def bytes_of(run):
    return sum(formats.size(run.directory / name) for name in run.files)


def choose_rate(args, alone):
    """A rate at which writing everything takes four fifths of the forecast's own time, but at most 20 s, so that the
    demo does not last for ever on a busy machine; to two digits."""
    full = 0 if args.output_every == 0 else args.hours // args.output_every
    surface = 0 if args.surface_every == 0 else args.hours // args.surface_every
    values = args.nx * args.ny * (full * (3 * args.levels + 2) + surface * 3)
    rate = values * args.format.bytes_per_value / min(20.0, 0.8 * alone.timings["forecast_seconds"])
    return f"{max(0.1, float(f'{rate / 1e6:.2g}')):g}MB/s"


def shown_rate(rate):
    return re.sub(r"(\d)\s*([kMGT]?i?B/s)", r"\1 \2", rate) if rate else "not slowed"


def check_identical(runs):
    """Every run left the same files with the same bytes, or a Failure that names the first difference."""
    first = runs[0]
    if not first.files:
        raise Failure(f"the run '{first.title}' left no file in {first.directory}")
    for other in runs[1:]:
        if first.files.keys() != other.files.keys():
            odd = sorted(first.files.keys() ^ other.files.keys())
            raise Failure(f"'{first.title}' and '{other.title}' left different files: {', '.join(odd[:4])}")
        for name, sha in first.files.items():
            if other.files[name] != sha:
                raise Failure(f"{name} differs between '{first.title}' and '{other.title}': see {first.directory} and "
                              f"{other.directory}")


def check_readable(args, run):
    """cdo and, where they are there, the format's own tools find in each file what the model has put there. Returns what
    the files hold, by their names."""
    found = {}
    for name in run.files:
        if name.startswith("surface_"):
            levels, steps = {"sp": 1, "tp": 1, "gh": 1}, args.hours // args.surface_every
        else:
            levels, steps = {"t": args.levels, "u": args.levels, "v": args.levels, "sp": 1, "tp": 1}, 1
        found[name] = formats.check(args.format, run.directory / name, levels, steps)
    return found


def records_in(args, found):
    """Such as "2096 GRIB2 messages" or "NetCDF: 5 variables x 1 step, 3 variables x 48 steps"."""
    records = sum(each.records for each in found.values())
    if args.format.name == "grib2":
        return f"{records} GRIB2 messages"
    kinds = sorted({(len(each.steps), len(each.levels)) for each in found.values()})
    return f"{args.format.title}: " + ", ".join(f"{count} variables x {steps} step{'s' * (steps > 1)}"
                                                for steps, count in kinds)


# ---- figures -------------------------------------------------------------------------------------------------

def split_steps(args, run):
    """Seconds of the steps that make output of all fields, of those with surface fields only, and of the others."""
    step = run.timings["time_step"]
    full, surface, plain = [], [], []
    for number, seconds in enumerate(run.step_seconds, start=1):
        lead = number * step
        if args.output_every and lead % (3600 * args.output_every) == 0:
            full.append(seconds)
        elif args.surface_every and lead % (3600 * args.surface_every) == 0:
            surface.append(seconds)
        else:
            plain.append(seconds)
    return full, surface, plain


def durable_seconds(report):
    """(median, max) of the time from the end of a step to durable, the worst stream; (None, None) if not reported."""
    found = []

    def search(node):
        if isinstance(node, dict):
            for key, value in node.items():
                if "durable" in key and isinstance(value, dict) and {"median", "max"} <= value.keys():
                    found.append((value["median"], value["max"]))
                else:
                    search(value)
        elif isinstance(node, list):
            for value in node:
                search(value)

    search(report)
    return max(found, key=lambda pair: pair[1]) if found else (None, None)


def figures_of(args, run):
    full, surface, plain = split_steps(args, run)
    median = lambda values: statistics.median(values) if values else None
    durable = durable_seconds(run.report)
    size = bytes_of(run)
    return {
        "name": run.name, "title": run.title, "servers": run.servers, "ranks": run.timings["ranks"],
        "blocked_seconds": run.blocked, "blocked_in_steps_seconds": run.timings["blocked_seconds"],
        "closing_seconds": run.timings["closing_seconds"], "forecast_seconds": run.timings["forecast_seconds"],
        "total_seconds": run.timings["total_seconds"], "wall_seconds": run.wall,
        "durable_median_seconds": durable[0], "durable_max_seconds": durable[1],
        "bytes": size, "files": len(run.files), "others_share": run.others,
        "step_median_seconds": median(plain), "output_step_median_seconds": median(full),
        "output_step_max_seconds": max(full, default=None), "surface_step_median_seconds": median(surface),
    }


ROWS = (
    ("blocked in output, all of the run", "blocked_seconds", "s"),
    ("   while the forecast runs", "blocked_in_steps_seconds", "s"),
    ("   at its end, until all is durable", "closing_seconds", "s"),
    ("last step computed after", "forecast_seconds", "s"),
    ("total, everything on storage", "total_seconds", "s"),
    ("time to durable, median of steps", "durable_median_seconds", "s"),
    ("time to durable, slowest step", "durable_max_seconds", "s"),
    ("step without output, median", "step_median_seconds", "ms"),
    ("step with surface output, median", "surface_step_median_seconds", "ms"),
    ("step with output of all fields, median", "output_step_median_seconds", "ms"),
    ("step with output of all fields, slowest", "output_step_max_seconds", "ms"),
    ("bytes written", "bytes", "MB"),
    ("cores taken by other programs", "others_share", "%"),
)


def cell(value, unit):
    if value is None:
        return "-"
    if unit == "ms":
        return f"{1e3 * value:.1f} ms" if value < 0.1 else f"{1e3 * value:.0f} ms"
    if unit == "%":
        return f"{100 * value:.0f} %"
    return f"{value / 1e6:.1f} MB" if unit == "MB" else f"{value:.2f} s"


def print_table(figures):
    width = max(len(row[0]) for row in ROWS) + 2
    say(" " * (width + 2) + "".join(f"{entry['title']:>16}" for entry in figures))
    for label, key, unit in ROWS:
        hidden = ("blocked_seconds", "blocked_in_steps_seconds", "closing_seconds", "bytes")
        cells = ["-" if entry["servers"] is None and key in hidden else cell(entry[key], unit) for entry in figures]
        say(f"  {label:<{width}}" + "".join(f"{text:>16}" for text in cells))


def remarks(ranks, servers, own_cores, figures):
    """What has to be known about the machine to read the figures, in sentences: for the console and the page."""
    said = []
    if own_cores < ranks + max(servers, default=0):
        who = f"{ranks} rank{'s' * (ranks > 1)}" + (" and their servers" if servers else "")
        said.append(f"{who} share {own_cores} core{'s' * (own_cores > 1)} here"
                    + (": while a server works, a rank waits." if servers else "."))
    taken = max((entry["others_share"] for entry in figures if entry["others_share"] is not None), default=0.0)
    steps = [entry["step_median_seconds"] for entry in figures[:2]]
    uneven = len(steps) == 2 and None not in steps and max(steps) > 1.3 * min(steps)
    if taken > 0.1:
        said.append(f"The machine was busy: other programs took up to {100 * taken:.0f} % of its cores while the forecasts "
                    "ran. The times say little; run the demo again when it is quiet.")
    if uneven:
        said.append(f"A step without output took {cell(steps[0], 'ms')} in the run without output and "
                    f"{cell(steps[1], 'ms')} in the run written inline, although both compute the same: so much the "
                    "machine's own speed has changed between the runs.")
    return said


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                 platform.processor()) if Path("/proc/cpuinfo").exists() else platform.processor()
    return {"cpu": model, "cores": cores(), "system": platform.platform()}


# ---- the whole -----------------------------------------------------------------------------------------------

def quick(launcher, args):
    terrain = make_terrain(launcher, args)
    run = Run("inline", "inline", 0, args.out / "run")
    act(2, f"A forecast of {args.hours} hours on {args.ranks} rank, written inline")
    forecast(launcher, args, run, terrain, args.rate if args.rate != "full" else None)
    found = check_readable(args, run)
    act(3, "The same forecast, killed and restarted")
    killed_and_restarted(launcher, args, run, terrain, None)
    keep_files(args, run, [])
    act(4, "What cdo sees")
    with formats.for_cdo([args.out / min(run.files)]) as (file,):
        say(run_tool("cdo", "sinfon", file).rstrip())
    say()
    say(f"{records_in(args, found)} in {len(run.files)} files in {args.out}/")


def keep_files(args, run, others):
    """The files of one run go up to the output directory; unless asked for, those of the others, the same bytes, go."""
    for path in sorted(run.directory.iterdir()):
        if path.name != "timings.json":
            copy = shutil.copytree if path.is_dir() else shutil.copy2
            copy(path, args.out / path.name) if args.keep else path.replace(args.out / path.name)
    if not args.keep:
        for each in [run, *others]:
            shutil.rmtree(each.directory)


def clean(directory):
    """Removes what an earlier demo left, and nothing else."""
    directory.mkdir(parents=True, exist_ok=True)
    files = [f"{start}_*{form.ending}{end}" for form in formats.FORMATS.values() for start in ("fc", "surface") for end in ("", ".*")]
    for pattern in (*files, "terrain.grib2", "manifest.jsonl", "report.json", "trace.json", "summary.json", "demo.html"):
        for path in directory.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def whole(launcher, args):
    terrain = make_terrain(launcher, args)
    runs = [Run("alone", "no output", None, args.out / "run-alone"),
            Run("inline", "inline", 0, args.out / "run-inline")]
    runs += [Run(f"servers-{n}", f"{n} server{'s' * (n > 1)}", n, args.out / f"run-{n}") for n in args.servers]
    alone, *writing = runs
    act(2, f"The forecast alone: {args.hours} hours on {args.ranks} ranks, nothing written")
    forecast(launcher, args, alone, terrain, None)
    rate = None if args.rate == "full" else args.rate or choose_rate(args, alone)
    slow = f"on storage slowed to {shown_rate(rate)}" if rate else "on storage at full speed"
    for number, run in enumerate(writing, start=3):
        how = "each rank waits while files are written" if not run.servers else \
            f"{run.title} beside the {args.ranks} ranks"
        act(number, f"The same forecast with output every {args.output_every} h {slow}: {how}")
        forecast(launcher, args, run, terrain, rate)
    act(len(runs) + 2, "The files")
    check_identical(writing)
    found = check_readable(args, writing[0])
    say(f"  {len(writing[0].files)} files, {bytes_of(writing[0]) / 1e6:.1f} MB, {records_in(args, found)}: "
        + {1: "one run", 2: "identical, byte for byte, in both runs"}.get(
            len(writing), f"identical, byte for byte, in all {len(writing)} runs"))
    say(f"  {args.format.readers()} read every one of them")
    act(len(runs) + 3, "The same forecast, killed and restarted")
    killed_and_restarted(launcher, args, writing[0], terrain, rate)
    figures = [figures_of(args, run) for run in runs]
    kept = writing[1] if len(writing) > 1 else writing[0]
    summary = {
        "when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "machine": machine(),
        "mpi": launcher.name, "format": args.format.name, "size": [args.nx, args.ny, args.levels], "hours": args.hours,
        "output_every_hours": args.output_every, "surface_every_hours": args.surface_every, "ranks": args.ranks,
        "time_step_seconds": alone.timings["time_step"], "storage_rate": shown_rate(rate),
        "files_identical": True, "records": sum(each.records for each in found.values()), "sha256": writing[0].files, "runs": figures,
        "remarks": remarks(args.ranks, args.servers, cores(), figures),
    }
    steps = {run.name: run.timings for run in runs}
    keep_files(args, kept, [run for run in runs if run is not kept])
    (args.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    if not args.no_page:
        act(len(runs) + 4, "The page")
        import make_page
        try:
            say(f"  {make_page.make_page(args.out, terrain, summary, steps)}")
        except formats.Unreadable as error:
            raise Failure(f"the page could not be made: {error}") from None
    conclude(args, figures, rate, [*summary["remarks"], args.format.about])


def conclude(args, figures, rate, said):
    say()
    print_table(figures)
    alone, inline, *served = figures
    say()
    if served:
        first = served[0]
        say(f"  Waiting for output while the forecast runs: {inline['blocked_in_steps_seconds']:.2f} s inline, "
            f"{first['blocked_in_steps_seconds']:.2f} s with {first['title']}, which had "
            f"{first['closing_seconds']:.2f} s left to write at the end.\n  Everything on storage after "
            f"{inline['total_seconds']:.2f} s and {first['total_seconds']:.2f} s; without output the forecast took "
            f"{alone['total_seconds']:.2f} s. Storage: {shown_rate(rate)}.")
    for sentence in said:
        say(f"  {sentence}")
    say(f"  Left in {args.out}/: {args.format.title} files, demo.html, summary.json, report.json, trace.json")


def main():
    args = parse_arguments()
    try:
        require_programs(args.format)
        launcher = Launcher(args.build)
        clean(args.out)
        act(1, "The terrain: cdo's topography on the model's grid")
        (quick if args.quick else whole)(launcher, args)
    except (Failure, formats.Unreadable) as failure:
        sys.exit(f"demo: {failure}")
    except KeyboardInterrupt:
        sys.exit("demo: interrupted")


if __name__ == "__main__":
    main()
