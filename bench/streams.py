#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What output through streams costs: four groups of figures, each a ratio measured side by side in one run.

  blocked   time blocked in an output step against a plain copy of the same bytes; the whole run against its slowest part
  beside    a model with a server against the same model beside an unconnected process that encodes and writes as much
  rate      encoding and writing by a server, and inline, against loops over ecCodes with handles cloned and kept
  memory    what output adds to the memory of a node, and takes of its budget, against that budget

`./dev bench streams` builds and calls this. Medians of at least five, the first repetition dropped, with the lowest
and the highest; the exit code is 1 if a bound was missed. On a machine that others use at the same time wall clock ratios
mean little: the load is printed.
"""
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from _bench import (MIB, Bench, Failure, Figure, bench_parser, proportional_memory, ranks_below,  # noqa: E402
                    run_main, say)
from _eccodes import newest_eccodes  # noqa: E402

RATE = 50e6                       # bytes a second of the slowed disk
CAPTURE_BOUND, CAPTURE_AIM = 1.25, 1.05
TOTAL_BOUND = BESIDE_BOUND = 1.05
# Ratios of the time that passes with a server, against Debian's ecCodes, by packing, bits and edge. Others are for orientation: that time depends on who
# else computes.
SERVER_BOUNDS = {("simple", 16, 1000): 0.9, ("ccsds", 16, 1000): 2.5, ("simple", 16, 100): 1.5, ("ccsds", 16, 100): 1.5}
# Packing, bits, type of the fields, and the bounds of the ratios of processor time, inline, for fields of 1000 x 1000 points, against Debian's and the newest
# ecCodes, and of 100 x 100. In 16 bits more than half of our time is the write that the peers do, too: 3 against Debian's is out of reach
# (docs/design/004-grib-keys.md).
RATES = (("simple", 12, "f32", (8, 8), None), ("simple", 16, "f32", (2, 3), 1.5), ("simple", 16, "f64", (1.5, 3), None),
         ("simple", 24, "f32", (None, None), None), ("ccsds", 16, "f32", (2.5, 2.5), 1.5), ("ccsds", 16, "f64", (2.5, 2.5), None))
GRIB1_RATES = (("grib1_simple", 16, "f32"), ("grib1_second_order", 16, "f32"))
PEERS = {"cloned": "clone + set + get for each record", "kept": "one handle for each field and level"}
PER_PROCESS = 16 * MIB


class Size:
    """How large everything is; shapes stay those of a real model (HIRLAM's 468 x 378 x 40, halo 2)."""

    def __init__(self, args, levels=40):
        self.columns, self.rows, self.levels, self.fields = 468, 378, levels, 2
        self.steps, self.rounds = (6, 1) if args.quick else (8, 6)
        self.total_steps = 3 if args.quick else 4
        self.rate_levels = {1000: 12, 100: 300} if args.quick else {1000: 40, 100: 2000}
        self.budget = 24 * MIB if args.quick else 64 * MIB
        if args.large:
            self.fields, self.steps, self.rounds, self.budget = 4, 12, 8, 256 * MIB

    @property
    def step_bytes(self):
        return self.columns * self.rows * self.levels * self.fields * 4

    @property
    def packed_bytes(self):
        return self.step_bytes // 2   # 16 bits a value

    def arguments(self, **more):
        words = dict(columns=self.columns, rows=self.rows, levels=self.levels, fields=self.fields)
        words.update(more)
        result = []
        for name, value in words.items():
            name = "--" + name.replace("_", "-")
            if value is True:
                result.append(name)
            elif value is not None and value is not False:
                result += [name, value]
        return result


class StreamsBench(Bench):
    def __init__(self, args):
        super().__init__(args)
        self.size = Size(args)
        self.slowed = Size(args, levels=12 if args.quick else 40)   # what goes to the slowed disk
        self.fast = self.work
        if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 4096 * MIB:
            self.fast = Path(tempfile.mkdtemp(prefix="tailrace-bench-", dir="/dev/shm"))

    def clean(self):
        super().clean()
        shutil.rmtree(self.fast, ignore_errors=True)

    def model(self, ranks, settings, watch=None, **options):
        """One run of the model; its measured steps without the first, and the library's report."""
        settings = dict(threads=1, **settings)
        report = self.work / "report.json"
        report.unlink(missing_ok=True)
        path = self.work / "stream.grib2"
        run = self.launcher.run(ranks, "stream_model", self.size.arguments(file=path, **options),
                                dict(settings, report=report), watch)
        run["file_bytes"] = path.stat().st_size if path.exists() else 0
        for left in self.work.glob("stream.grib2*"):
            left.unlink()
        run["report"] = json.loads(report.read_text())["streams"] if report.exists() else []
        return run

    def seconds_per_sweep(self, ranks=1, levels=40):
        run = self.model(ranks, {}, pin=ranks == 1, no_session=True, steps=5, sweeps=8, levels=levels)
        return min(step["compute"] for step in run["steps"]) / 8

    # ---- blocked ---------------------------------------------------------------------------------------------

    def blocked(self):
        say(f"\nblocked: disk slowed to {RATE / 1e6:.0f} MB/s, fsync on, staging of two steps "
            f"({2 * self.slowed.step_bytes / MIB:.0f} MiB), {self.slowed.fields} x {self.slowed.levels} levels a step")
        settings = dict(throttle=f"{RATE / 1e6:.0f}MB/s", staging=2 * self.slowed.step_bytes, servers=1)
        drain = self.slowed.packed_bytes / RATE
        figures = self.capture(settings, drain) + self.total(settings, drain)
        self.show("Time blocked in output", figures)

    def capture(self, settings, drain):
        figures = []
        for ranks in (1, 2, 4, 8):
            # Computing takes nearly twice as long as the disk, so that staging is never full.
            sweeps = 2 * max(1, math.ceil(0.9 * drain / self.seconds_per_sweep(ranks, self.slowed.levels)))
            run = self.model(ranks + 1, settings, copy=True, pin=ranks == 1, steps=self.slowed.steps, sweeps=sweeps,
                             levels=self.slowed.levels)
            steps = run["steps"][1:]
            clock = "wall" if ranks == 1 else "cpu"
            blocked = [step["blocked" if ranks == 1 else "blocked_cpu"] for step in steps]
            copies = [step["copy" if ranks == 1 else "copy_cpu"] for step in steps]
            middle = statistics.median(copies)
            note = "1 + 1 pinned; aim 1.05" if ranks == 1 else "sum over ranks"
            name = f"{clock}.ranks_{ranks}"
            figures.append(Figure(f"blocked.capture_over_copy.{name}", [b / middle for b in blocked], "ratio",
                                  CAPTURE_BOUND, note=note))
            figures.append(Figure(f"blocked.copy.{name}", [c * 1e3 for c in copies], "ms", note="the peer"))
            full = run["report"][0]["compute"]["staging_full_count"]
            if full:
                figures[-2].note += f"; staging was full {full} times"
        return figures

    def total(self, settings, drain):
        figures, size, sweep = [], self.slowed, self.seconds_per_sweep(levels=self.slowed.levels)
        for name, share in (("compute_bound", 1.2), ("disk_bound", 0.4))[:1 if self.args.quick else 2]:
            sweeps = max(1, round(share * drain / sweep))
            values = []
            for _ in range(6):
                run = self.model(2, settings, pin=True, steps=size.total_steps, sweeps=sweeps, levels=size.levels)
                computing = sum(step["compute"] for step in run["steps"])
                writing = run["file_bytes"] / RATE
                captures = run["report"][0]["compute"]["capture_seconds"]["sum"]
                last = writing / size.total_steps
                values.append((run["total"] - last - captures) / max(computing, writing))
            figures.append(Figure(f"blocked.total.{name}", values[1:], "ratio", TOTAL_BOUND,
                                  note="(total - last drain - captures) / max(compute, bytes/rate)"))
        return figures

    # ---- beside ----------------------------------------------------------------------------------------------

    def beside(self):
        if len(os.sched_getaffinity(0)) < 2:
            raise Failure("this machine has one core: a server beside a model cannot be measured")
        say("\nbeside: packing ccsds, disk not slowed, fsync on, 1 compute rank and 1 server or encoder pinned")
        settings = dict(staging=4 * self.size.step_bytes, servers=1)
        sweeps = self.sweeps_for_a_busy_server(settings)
        ratios, cpu_ratios, inline, busy, periods, lone = [], [], [], [], [], []
        for _ in range(max(self.size.rounds, 1)):
            with_server = self.model(2, settings, packing="ccsds", pin=True, steps=self.size.steps, sweeps=sweeps)
            served = [step["period"] for step in with_server["steps"][1:]]
            alone, alone_cpu, share = self.beside_encoder(sweeps, statistics.median(served))
            inside = self.model(1, dict(settings, servers=0), packing="ccsds", pin=True, steps=self.size.steps,
                                sweeps=sweeps)
            middle = statistics.median(alone)
            samples = served if self.size.rounds == 1 else [statistics.median(served)]
            ratios += [value / middle for value in samples]
            cpu = statistics.median(step["period_cpu"] for step in with_server["steps"][1:])
            cpu_ratios.append(cpu / statistics.median(alone_cpu))
            inline.append(statistics.median(step["period"] for step in inside["steps"][1:]) / middle)
            busy.append(self.share_busy(with_server))
            periods.append(middle * 1e3)
            lone.append(share)
        if self.size.rounds > 1:
            ratios, cpu_ratios, inline, busy, periods, lone = (
                values[1:] for values in (ratios, cpu_ratios, inline, busy, periods, lone))
        self.show("A model with a server, beside a process that knows of no model", [
            Figure("beside.server_over_encoder", ratios, "ratio", BESIDE_BOUND, note="seconds per step"),
            Figure("beside.server_over_encoder.cpu", cpu_ratios, "ratio",
                   note="CPU time of the compute rank per step: less sensitive to others on this machine"),
            Figure("beside.encoder", periods, "ms", note="the peer: a step of the model beside it"),
            Figure("beside.inline_over_encoder", inline, "ratio", note="the same without a server"),
            Figure("beside.server_busy", busy, "share", note="asked for: 0.5 to 0.9"),
            Figure("beside.encoder_busy", lone, "share")])

    def sweeps_for_a_busy_server(self, settings):
        """How much computing between outputs keeps the server busy for about 70 % of the time."""
        sweeps = max(1, round(0.2 / self.seconds_per_sweep()))
        for _ in range(3):
            trial = self.model(2, settings, packing="ccsds", pin=True, steps=4, sweeps=sweeps)
            share = self.share_busy(trial)
            if 0.6 < share < 0.8:
                break
            sweeps = max(1, round(sweeps * share / 0.7))
        return sweeps

    @staticmethod
    def share_busy(run):
        """The share of the time between outputs in which the server has something to do; over 1 if it does not keep up."""
        servers = run["report"][0]["servers"]
        busy = sum(servers[f"{what}_seconds"]["sum"] for what in ("assemble", "encode", "write", "fsync"))
        return busy / sum(step["compute"] for step in run["steps"])

    def beside_encoder(self, sweeps, period):
        """Wall clock and CPU seconds of each step of the model without output beside the encoder, and how busy that was."""
        path = self.work / "lone.grib2"
        command = [self.launcher.program("lone_encoder"), "--columns", self.size.columns, "--rows", self.size.rows,
                   "--records", self.size.levels * self.size.fields, "--packing", "ccsds", "--file", path, "--core", 1,
                   "--period", period]
        encoder = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
        try:
            encoder.stdout.readline()
            run = self.model(1, {}, no_session=True, pin=True, steps=self.size.steps, sweeps=sweeps)
            encoder.send_signal(signal.SIGTERM)
            share = json.loads(encoder.communicate(timeout=60)[0])["busy"]
        finally:
            encoder.kill()
            path.unlink(missing_ok=True)
        return [step["period"] for step in run["steps"][1:]], [step["period_cpu"] for step in run["steps"][1:]], share

    # ---- rate ------------------------------------------------------------------------------------------------

    def rate(self):
        where = "memory (/dev/shm), where fsync costs nothing" if self.fast != self.work else "disk, fsync on"
        say(f"\nrate: files in {where}; 1 thread each, on the core that encodes, in turn; our time is to durable")
        newest, figures = newest_eccodes(), []
        for packing, bits, type_name, large, small in RATES:
            for way in (("server", 2), ("inline", 1)):
                figures += self.rates((packing, bits, type_name), 1000, large, way, newest)
                if small is not None:
                    figures += self.rates((packing, bits, type_name), 100, (small, small), way, newest)
        for kind in GRIB1_RATES:
            figures += self.rates(kind, 1000, (0.9, None), ("inline", 1), newest)
        self.show("Encoding and writing", figures)

    def rates(self, kind, edge, bounds, way, newest):
        """Of one way to run, beside two versions of ecCodes, with a handle cloned for each record and with one kept for each field."""
        (packing, bits, type_name), (way, ranks) = kind, way
        levels = 8 if packing == "grib1_second_order" else self.size.rate_levels[edge]  # ten times as slow
        arguments = ["--columns", edge, "--rows", edge, "--levels", levels, "--packing", packing, "--bits", bits, "--type", type_name,
                     "--steps", 7, "--file", self.fast / "rate.grib2", *newest]
        staging = max(512 * MIB, 2 * edge * edge * levels * 8)
        run = self.launcher.run(ranks, "stream_rate", arguments, dict(servers=ranks - 1, staging=staging, threads=1))
        for left in self.fast.glob("rate.grib2*"):
            left.unlink()
        steps, figures = run["steps"][1:], []
        name, points = f"{packing}{bits}.{type_name}.{edge * edge}", run["points"]
        figures.append(Figure(f"rate.{way}.{name}", [step["ours"] * 1e9 / points for step in steps], "ns", note="a value"))
        for version, prefix, bound in ((run["version"], "", bounds[0]), (run.get("newest"), "newest.", bounds[1])):
            wall_bound = SERVER_BOUNDS.get((packing, bits, edge)) if way == "server" and not prefix else None
            for peer in PEERS if version else ():
                taken = [step[prefix + peer] for step in steps]
                figures.append(Figure(f"rate.{way}_over_eccodes.{name}.{prefix}{peer}",
                                      [statistics.median(taken) / step["ours"] for step in steps], "ratio", wall_bound, "higher"))
                if way == "inline":
                    used = [step[f"{prefix}{peer}.cpu"] for step in steps]
                    figures.append(Figure(f"rate.inline_over_eccodes.{name}.{prefix}{peer}.cpu",
                                          [statistics.median(used) / step["ours.cpu"] for step in steps], "ratio", bound, "higher",
                                          note="processor time: less sensitive to others on this machine"))
                else:
                    figures.append(Figure(f"rate.eccodes.{name}.{prefix}{peer}", [each * 1e9 / points for each in taken], "ns",
                                          note=f"a value, the peer {version}: {PEERS[peer]}"))
        return figures

    # ---- memory ----------------------------------------------------------------------------------------------

    def memory(self):
        size, figures = self.size, []
        steps = math.ceil(20 * size.budget / (size.packed_bytes / size.fields))
        say(f"\nmemory: budget {size.budget / MIB:.0f} MiB a node, {steps} steps that make 20 times as much on disk; "
            "disk not slowed, fsync on; proportional set size of all ranks, looked at every 30 ms")
        bare = self.peak(2, {}, no_session=True, steps=3, fields=1, sweeps=1, linger=0.4)
        for servers in (1, 2, 3):
            settings = dict(memory=size.budget, staging=size.budget, servers=servers)
            ranks = servers + 2
            options = dict(fields=1, sweeps=1, linger=0.4)
            peaks = []
            for _ in range(1 if self.args.quick else 5):
                peaks.append(self.peak(ranks, settings, steps=steps, **options))
            silent = self.peak(ranks, settings, no_puts=True, steps=3, **options)
            bound = (size.budget + ranks * PER_PROCESS) / MIB
            name = f"servers_{servers}"
            figures.append(Figure(f"memory.added_by_output.{name}", [(p - silent) / MIB for p in peaks], "MiB", bound,
                                  note=f"{ranks} processes; against the same run without puts"))
            figures.append(self.launcher.taken(f"memory.taken.{name}", ranks, "stream_model", self.size.arguments(
                file=self.work / "stream.grib2", steps=3, **options), dict(settings, threads=1)))
            figures.append(Figure(f"memory.added_by_everything.{name}", [(p - bare) / MIB for p in peaks], "MiB",
                                  note="against the same model without Tailrace and servers"))
        self.show("Memory of the node", figures)

    def peak(self, ranks, settings, **options):
        most, pids = 0, []

        def watch(process):
            nonlocal most, pids
            if len(pids) < ranks:
                pids = ranks_below(process, "stream_model")
            total = proportional_memory(pids) if len(pids) == ranks else None
            most = max(most, total or 0)
            time.sleep(0.03)

        self.model(ranks, settings, watch, **options)
        if most == 0:
            raise Failure("the memory of the ranks could not be read from /proc/PID/smaps_rollup")
        return most


GROUPS = ("blocked", "beside", "rate", "memory")


def main():
    args = bench_parser(__doc__, GROUPS, quick="small sizes: under a minute",
                        large="four fields a step, longer runs").parse_args()
    return StreamsBench(args).measure("streams", GROUPS)


if __name__ == "__main__":
    run_main(main)
