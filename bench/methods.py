#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What each method of writing costs: ten files of GRIB2 that are written at once, by 1, 2, 4 and 8 servers, from the first put until all
is durable. Each run stands beside one of `serial` with the same servers in the same turn.

  memory     files in /dev/shm, where fsync costs nothing: what encoding, messages and writing take
  disk       files in --out, with fsync
  throttled  the same files in /dev/shm, but each server writes at a stated rate (--rate), as processes do on parallel file systems

For each method: MB/s, seconds, speed-up over `serial` with 1 server, and efficiency, which is the speed-up for each server. Medians of five turns,
the first dropped. On fewer cores than ranks the speed-up of encoding ends at the number of cores; `throttled` shows what a method does beyond that.

`./dev bench methods` builds and calls this.
"""
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from _bench import Bench, Figure, bench_parser, run_main, say  # noqa: E402
from _chart import write_chart  # noqa: E402

GROUPS = ("memory", "disk", "throttled")
METHODS = ("serial", "scan", "offset_guard", "offset_sharing", "writer", "writer_aio", "mpiio", "mpiio_shared")
SERVERS = (1, 2, 4, 8)
TURNS = 6
COMPUTE = 2  # ranks that put
OVER_SERIAL = 3  # of the default method with 4 servers, throttled


class MethodsBench(Bench):
    def __init__(self, args):
        super().__init__(args)
        self.files, self.steps, self.levels = (10, 2, 6) if args.quick else (10, 8, 147) if args.large else (10, 4, 30)
        self.turns = 4 if args.quick else TURNS
        self.methods = args.methods.split(",")
        self.bytes = 0

    def run_one(self, directory, method, servers, throttle):
        settings = {"servers": servers, "method": method, "staging": "512MiB", "threads": 1, **({"throttle": throttle} if throttle else {})}
        told = self.launcher.run(COMPUTE + servers, "method_rate",
                                 ["--files", self.files, "--steps", self.steps, "--levels", self.levels, "--directory", directory], settings)
        self.bytes = told["bytes"]
        return told["seconds"]

    def table(self, group, directory, throttle=""):
        seconds = {(method, servers): [] for servers in SERVERS for method in self.methods}
        for _ in range(self.turns):
            for key, list_of in seconds.items():
                list_of.append(self.run_one(directory, *key, throttle))
        median = {key: statistics.median(list_of[1:]) for key, list_of in seconds.items()}
        base = median[("serial", 1)] if "serial" in self.methods else None
        say(f"\n{group}: {self.files} files, {self.bytes / 1e6:.0f} MB in all" + (f", each server writes {throttle}" if throttle else ""))
        say(f"  {'method':<14}{'servers':>8}{'MB/s':>9}{'seconds':>10}{'lowest .. highest':>20}{'speed-up':>10}{'efficiency':>12}{'/ serial':>10}")
        for (method, servers), value in median.items():
            times = seconds[(method, servers)][1:]
            over = f"{base / value:10.2f}{base / value / servers:12.2f}{median[('serial', servers)] / value:10.2f}" if base else ""
            say(f"  {method:<14}{servers:>8}{self.bytes / 1e6 / value:>9.0f}{value:>10.3f}{min(times):>10.3f} .. {max(times):<6.3f}{over}")
        self.keep(group, seconds, median)
        return median

    def keep(self, group, seconds, median):
        for (method, servers), list_of in seconds.items():
            rates = [self.bytes / 1e6 / each for each in list_of[1:]]
            self.figures.append(Figure(f"{group}: {method}, {servers} servers", rates, "MB/s", better="higher"))
        if not self.args.charts:
            return
        ticks = [(servers, str(servers)) for servers in SERVERS]
        rates = {method: [(servers, self.bytes / 1e6 / median[(method, servers)]) for servers in SERVERS] for method in self.methods}
        write_chart(self.args.charts / f"methods-{group}.svg", f"Writing {self.files} files, {group}", "servers", "MB/s", ticks, rates)
        write_chart(self.args.charts / f"methods-{group}-elapsed.svg", f"Writing {self.files} files, {group}", "servers", "seconds", ticks,
                    {method: [(servers, median[(method, servers)]) for servers in SERVERS] for method in self.methods})
        if "serial" not in self.methods:
            return
        base = median[("serial", 1)]
        write_chart(self.args.charts / f"methods-{group}-speed-up.svg", f"Speed-up over serial, {group}", "servers", "speed-up", ticks,
                    {method: [(servers, base / median[(method, servers)]) for servers in SERVERS] for method in self.methods})
        write_chart(self.args.charts / f"methods-{group}-efficiency.svg", f"Efficiency, {group}", "servers", "speed-up for each server", ticks,
                    {method: [(servers, base / median[(method, servers)] / servers) for servers in SERVERS] for method in self.methods})

    def memory(self):
        self.table("memory", self.shared_memory())

    def disk(self):
        self.table("disk", self.work)

    def throttled(self):
        median = self.table("throttled", self.shared_memory(), self.args.rate)
        if {"scan", "serial"} <= set(self.methods):
            self.show("bound", [Figure("throttled: scan / serial, 4 servers", [median[("serial", 4)] / median[("scan", 4)]], "x", OVER_SERIAL, "higher")])

    def shared_memory(self):
        folder = Path("/dev/shm") / self.work.name
        folder.mkdir(exist_ok=True)
        return folder

    def clean(self):
        super().clean()
        folder = Path("/dev/shm") / self.work.name
        if folder.is_dir():
            for each in folder.iterdir():
                each.unlink()
            folder.rmdir()


def main():
    parser = bench_parser(__doc__, GROUPS, "0.06 GB, three turns", "5.9 GB")
    parser.add_argument("--methods", default=",".join(METHODS), help="methods, separated by commas (default: all)")
    parser.add_argument("--rate", default="40MB/s", help="of each server in `throttled` (default: 40MB/s)")
    parser.add_argument("--charts", type=Path, help="directory for charts (SVG) of rate, elapsed time, speed-up and efficiency")
    return MethodsBench(parser.parse_args()).measure("methods", GROUPS)


run_main(main)
