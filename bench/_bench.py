# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What every bench needs: its options, starting programs under the launcher of a build, figures with their bounds, table
and JSON."""
import argparse
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MIB = 1 << 20


class Failure(Exception):
    """An error that is told in one line, without a traceback."""


def say(text=""):
    print(text, flush=True)


# ---- figures -------------------------------------------------------------------------------------------------

class Figure:
    """One measured value with its spread. A figure without a bound is a limit or peer, or stands for orientation."""

    def __init__(self, name, values, unit, bound=None, better="lower", note=""):
        self.name, self.unit, self.bound, self.better, self.note = name, unit, bound, better, note
        self.value, self.low, self.high = statistics.median(values), min(values), max(values)
        self.count = len(values)

    @property
    def ok(self):
        if self.bound is None:
            return None
        return self.value <= self.bound if self.better == "lower" else self.value >= self.bound

    def as_dict(self):
        return {"name": self.name, "value": self.value, "unit": self.unit, "low": self.low, "high": self.high,
                "bound": self.bound, "better": self.better, "ok": self.ok, "samples": self.count, "note": self.note}

    def line(self):
        bound = "" if self.bound is None else ("<= " if self.better == "lower" else ">= ") + f"{self.bound:.4g}"
        verdict = {None: "", True: "ok", False: "MISSED"}[self.ok]
        spread = f"{self.low:.4g} .. {self.high:.4g}"
        return f"  {self.name:<44}{self.value:>10.4g} {self.unit:<6}{spread:>22}  {bound:<9}{verdict:<7}{self.note}"


def print_figures(title, figures):
    say()
    say(title)
    say(f"  {'':<44}{'median':>10} {'':<6}{'lowest .. highest':>22}  bound")
    for figure in figures:
        say(figure.line())


def write_json(path, name, machine, figures):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    content = {"name": name, "machine": machine, "figures": [figure.as_dict() for figure in figures]}
    Path(path).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    say(f"\nAll figures: {path}")


def first_line_of(path, pattern, otherwise="unknown"):
    found = re.search(pattern, Path(path).read_text(errors="replace"), re.M)
    return found.group(1).strip() if found else otherwise


def file_system_of(path):
    answer = subprocess.run(["stat", "-f", "-c", "%T", str(path)], stdout=subprocess.PIPE, text=True)
    return answer.stdout.strip() or "unknown"


def machine(launcher, out):
    return {"system": platform.platform(),
            "processor": first_line_of("/proc/cpuinfo", r"^model name\s*:(.*)$"),
            "cores": len(os.sched_getaffinity(0)),
            "memory_MiB": int(first_line_of("/proc/meminfo", r"^MemTotal:\s*(\d+)", "0")) // 1024,
            "mpi": launcher.name, "file_system": file_system_of(out), "load_before": os.getloadavg()[0]}


# ---- programs ------------------------------------------------------------------------------------------------

class Launcher:
    """Starts programs with the MPI that they were built with."""

    def __init__(self, build):
        self.build = Path(build)
        cache = self.build / "CMakeCache.txt"
        if not cache.exists():
            raise Failure(f"{build} holds no build; ./dev bench makes one")
        found = re.search(r"^MPIEXEC_EXECUTABLE:\w+=(.+)$", cache.read_text(errors="replace"), re.M)
        # The presets name the launcher without its path.
        self.mpiexec = (shutil.which(found.group(1)) if found else None) or shutil.which("mpirun")
        if self.mpiexec is None:
            raise Failure("no mpirun was found; ./dev setup build installs one")
        version = subprocess.run([self.mpiexec, "--version"], stdout=subprocess.PIPE, text=True).stdout
        self.openmpi = "Open MPI" in version or "OpenRTE" in version or "open-mpi" in version
        number = re.search(r"\d+\.\d+\.\d+", version)
        self.name = ("Open MPI " if self.openmpi else "MPICH ") + (number.group() if number else "")
        self.yielding = next(iter(sorted(self.build.rglob("libtailrace_mpich_yield.so"))), None)

    def find(self, name):
        """The path of a program of this build, or None if it was left out."""
        folders = ("bench", "bench/files", "bench/checkpoint", "bench/formats", "bench/shared", "bin")
        return next((str(self.build / folder / name) for folder in folders if (self.build / folder / name).exists()), None)

    def program(self, name):
        path = self.find(name)
        if path is None:
            raise Failure(f"{self.build} holds no {name}: which library did the configuration not find?")
        return path

    def start(self, ranks, program, arguments, settings, environment=None, errors=None, stdin=subprocess.DEVNULL, flags=()):
        """`settings` are the library's, `environment` is anybody's else, `flags` the launcher's; standard error goes to the file `errors`."""
        command = [self.mpiexec]
        if self.openmpi:
            # The programs bind themselves: one launcher's words for it differ from the other's.
            command += ["--oversubscribe", "--bind-to", "none"]
        command += [*flags, "-n", str(ranks), self.program(program), *map(str, arguments)]
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("TAILRACE_")}
        environment = dict(inherited, **(environment or {}))
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                           OMPI_MCA_mpi_yield_when_idle="1")
        if not self.openmpi and self.yielding:
            # MPICH never yields: with more ranks than cores it crawls.
            environment["LD_PRELOAD"] = ":".join(filter(None, (str(self.yielding), environment.get("LD_PRELOAD"))))
        environment.update({f"TAILRACE_{key.upper()}": str(value) for key, value in settings.items()})
        return subprocess.Popen(command, env=environment, stdin=stdin, stdout=subprocess.PIPE, stderr=errors,
                                text=True)

    def run(self, ranks, program, arguments, settings, watch=None, environment=None, timeout=600, errors=None, flags=()):
        """Runs to the end; the JSON that the program printed. `watch(process)` is called over and over meanwhile."""
        process = self.start(ranks, program, arguments, settings, environment, errors, flags=flags)
        try:
            while watch and process.poll() is None:
                watch(process)
            output = process.communicate(timeout=timeout)[0]
        except BaseException:
            process.terminate()
            raise
        if process.returncode != 0:
            raise Failure(f"{program} {' '.join(map(str, arguments))}: exit code {process.returncode}")
        return json.loads(output)

    def taken(self, name, ranks, program, arguments, settings, environment=None):
        """A figure: what one run took of its node's budget, beside the budget. It is not timed: it logs."""
        with tempfile.TemporaryFile("w+") as errors:
            self.run(ranks, program, arguments, dict(settings, log="info"), environment=environment, errors=errors)
            errors.seek(0)
            told = re.findall(r"memory: host \S+: of (\S+), at most (\S+) \((.*)\) were taken", errors.read())
        if len(told) != 1:
            raise Failure(f"{program} did not say what it took of its memory")
        budget, most, shares = told[0]
        return Figure(name, [in_mebibytes(most)], "MiB", in_mebibytes(budget), note=f"{shares} of {budget}")


def in_mebibytes(text):
    """Of a size as the library prints it, with a unit."""
    number, unit = re.fullmatch(r"([\d.e+]+)([KMGT]iB)", text).groups()
    return float(number) * 1024 ** ("KMGT".index(unit[0]) - 1)


# ---- a bench -------------------------------------------------------------------------------------------------

def bench_parser(doc, groups, quick, large):
    """The options that all benches have; `quick` and `large` say what those sizes are."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="build directory that holds the programs")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--large", action="store_true", help=large)
    parser.add_argument("--only", choices=groups, action="append", help="one group of figures; may be repeated")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--out", type=Path, help="directory for the files that are written (default: the system's for "
                        "temporary files)")
    return parser


class Bench:
    """A method for each group of figures, and what they share: the launcher, a directory, the figures so far."""

    def __init__(self, args):
        self.args, self.launcher = args, Launcher(args.build)
        self.work = Path(tempfile.mkdtemp(prefix="tailrace-bench-", dir=args.out))
        self.figures = []

    def clean(self):
        shutil.rmtree(self.work, ignore_errors=True)

    def show(self, title, figures):
        print_figures(title, figures)
        self.figures += figures

    def measure(self, name, groups):
        """Runs the groups, prints which bounds were kept, and returns the exit code."""
        begin = time.monotonic()
        about = machine(self.launcher, self.work)
        say(", ".join(f"{key} {value}" for key, value in about.items()))
        try:
            for group in self.args.only or groups:
                getattr(self, group)()
        finally:
            self.clean()
        about["load_after"] = os.getloadavg()[0]
        bounded = [figure for figure in self.figures if figure.bound is not None]
        missed = [figure.name for figure in bounded if not figure.ok]
        say(f"\n{len(bounded) - len(missed)} of {len(bounded)} bounds kept in {time.monotonic() - begin:.0f} s; load "
            f"{about['load_before']:.1f} before, {about['load_after']:.1f} after"
            + (f"\nmissed: {', '.join(missed)}" if missed else ""))
        if self.args.json:
            write_json(self.args.json, name, about, self.figures)
        return 1 if missed else 0


def ranks_below(process, program):
    """Process ids of the ranks: all descendants of the launcher that run `program`."""
    parents, names = {}, {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            name, rest = re.match(r"\d+ \((.*)\) \S (\d+)", Path(f"/proc/{entry}/stat").read_text()).groups()
        except (OSError, AttributeError):
            continue
        parents[int(entry)], names[int(entry)] = int(rest), name

    def is_below(pid):
        while pid in parents:
            if pid == process.pid:
                return True
            pid = parents[pid]
        return False

    return [pid for pid, name in names.items() if name == program[:15] and is_below(pid)]


def proportional_memory(pids):
    """Sum of PSS in bytes, or None if one of them has gone meanwhile."""
    total = 0
    for pid in pids:
        try:
            found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
        except OSError:
            return None
        if not found:
            return None
        total += int(found.group(1)) * 1024
    return total


def run_main(main):
    # A bench that is told to end removes its files, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"bench: {failure}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
