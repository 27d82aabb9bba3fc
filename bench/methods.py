#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What each method of writing costs: ten files of GRIB2 that are written at once, by 1, 2, 4 and 8 servers, from the first put until all
is durable. Each run stands beside one of `serial` with the same servers in the same turn.

  memory     files in /dev/shm, where fsync costs nothing: what encoding, messages and writing take
  disk       files in --out, with fsync
  throttled  the same files in /dev/shm, but each server writes at a stated rate (--rate), as processes do on parallel file systems
  handoffs   files in /dev/shm, method scan, 1 and 2 servers: by each way in which the ranks' data comes to the servers (handoff=)
  simulated  one file by 1 to 1,024 servers (--large: 4,096) in the simulated world, with the costs of a cluster: as many bytes for each server,
             however many there are. It is the library's own code on a clock of stated costs, so that the load of this machine does not matter

For each method: MB/s, seconds, speed-up over `serial` with 1 server, and efficiency, which is the speed-up for each server. Medians of five turns,
the first dropped. On fewer cores than ranks the speed-up of encoding ends at the number of cores; `throttled` shows what a method does beyond that.

`./dev bench methods` builds and calls this.
"""
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from _bench import Bench, Figure, bench_parser, run_main, say  # noqa: E402
from _chart import chart, section, write_chart, write_page  # noqa: E402
from _simulated_methods import SERVERS as SIMULATED_SERVERS  # noqa: E402
from _simulated_methods import STORAGES, Simulated, rate, shares  # noqa: E402

GROUPS = ("memory", "disk", "throttled", "handoffs", "simulated")
METHODS = ("serial", "scan", "offset_guard", "offset_sharing", "writer", "writer_aio", "mpiio", "mpiio_shared")
SERVERS = (1, 2, 4, 8)
HANDOFFS = ("shared", "messages", "onesided")
TURNS = 6
COMPUTE = 2  # ranks that put
OVER_SERIAL = 3  # of the default method with 4 servers, throttled


class MethodsBench(Bench):
    def __init__(self, args):
        super().__init__(args)
        self.files, self.steps, self.levels = (10, 2, 6) if args.quick else (10, 8, 147) if args.large else (10, 4, 30)
        self.turns = 4 if args.quick else TURNS
        self.methods = args.methods.split(",") if args.methods else METHODS
        self.bytes = 0
        self.sections = []  # of the page

    def run_one(self, directory, method, servers, throttle, handoff):
        settings = {"servers": servers, "method": method, "handoff": handoff, "staging": "512MiB", "threads": 1, **({"throttle": throttle} if throttle else {})}
        told = self.launcher.run(COMPUTE + servers, "method_rate",
                                 ["--files", self.files, "--steps", self.steps, "--levels", self.levels, "--directory", directory], settings,
                                 environment={"OMPI_MCA_io": "^ompio"} if method == "mpiio_shared" else None)
        self.bytes = told["bytes"]
        return told["seconds"]

    def table(self, group, directory, throttle=""):
        seconds = {(method, servers): [] for servers in SERVERS for method in self.methods}
        for _ in range(self.turns):
            for key, list_of in seconds.items():
                list_of.append(self.run_one(directory, *key, throttle, self.args.handoff))
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
        self.draw(group, f"{self.files} files, {self.bytes / 1e6:.0f} MB in all", SERVERS,
                  {key: self.bytes / 1e6 / value for key, value in median.items()}, median)

    def draw(self, group, words, servers, rates, seconds, more_head=(), more=None):
        """Adds a section to the page: the study's table, with `more` columns, and its charts."""
        if not self.args.charts:
            return
        methods = list(dict.fromkeys(method for method, _ in rates))
        base = rates.get(("serial", servers[0]))
        values = {"rate": ("MB/s", rates), "elapsed": ("seconds", seconds)}
        if base:
            values["speed-up"] = ("speed-up over serial on 1 server", {key: value / base for key, value in rates.items()})
            values["efficiency"] = ("speed-up for each server", {key: value / base / key[1] for key, value in rates.items()})
        ticks = [(each, f"{each:,}") for each in servers]
        charts = []
        for name, (axis, by_key) in values.items():
            series = {method: [(each, by_key[(method, each)]) for each in servers] for method in methods}
            drawn = (f"{group}: {name}", "servers", axis, ticks, series)
            charts.append(chart(*drawn))
            file = f"methods-{group}" + ("" if name == "rate" else f"-{name}")
            write_chart(self.args.charts / f"{file.replace(' ', '-').replace('/', '-')}.svg", *drawn)
        rows = [[key[0], f"{key[1]:,}", *(f"{by_key[key]:.4g}" for _, by_key in values.values()), *(more[key] if more else ())] for key in rates]
        head = ["method", "servers", "MB/s", "seconds", *(["speed-up", "efficiency"] if base else []), *more_head]
        self.sections.append(section(group, words, head, rows, charts))

    def memory(self):
        self.table("memory", self.shared_memory())

    def disk(self):
        self.table("disk", self.work)

    def throttled(self):
        median = self.table("throttled", self.shared_memory(), self.args.rate)
        if {"scan", "serial"} <= set(self.methods):
            self.show("bound", [Figure("throttled: scan / serial, 4 servers", [median[("serial", 4)] / median[("scan", 4)]], "x", OVER_SERIAL, "higher")])

    def handoffs(self):
        directory = self.shared_memory()
        seconds = {(handoff, servers): [] for servers in (1, 2) for handoff in HANDOFFS}
        for _ in range(self.turns):
            for (handoff, servers), list_of in seconds.items():
                list_of.append(self.run_one(directory, "scan", servers, "", handoff))
        median = {key: statistics.median(list_of[1:]) for key, list_of in seconds.items()}
        say(f"\nhandoffs: {self.files} files, {self.bytes / 1e6:.0f} MB in all, method=scan")
        say(f"  {'handoff':<14}{'servers':>8}{'MB/s':>9}{'seconds':>10}{'lowest .. highest':>20}{'/ shared':>10}")
        for (handoff, servers), value in median.items():
            times = seconds[(handoff, servers)][1:]
            say(f"  {handoff:<14}{servers:>8}{self.bytes / 1e6 / value:>9.0f}{value:>10.3f}{min(times):>10.3f} .. {max(times):<6.3f}{median[('shared', servers)] / value:10.2f}")
            self.figures.append(Figure(f"handoffs: {handoff}, {servers} servers", [self.bytes / 1e6 / each for each in times], "MB/s", better="higher"))

    def simulated(self):
        servers = [each for each in SIMULATED_SERVERS if each <= (64 if self.args.quick else 4096 if self.args.large else 1024)]
        for storage in STORAGES:
            of = Simulated(self.launcher, servers, storage)
            known = of.methods()
            costs = of.costs() | {"storage_gb_s": storage}
            told = of.run([each for each in known if not self.args.methods or each in self.methods])
            self.print_simulated(f"simulated {storage} GB/s", costs, servers, told)

    def print_simulated(self, group, costs, servers, told):
        rates = {key: rate(each) for key, each in told.items()}
        base = rates.get(("serial", servers[0]))
        words = "costs: " + ", ".join(f"{name} {value:g}" for name, value in costs.items())
        say(f"\n{group}: as many bytes for each server; {words}")
        say(f"  {'method':<14}{'servers':>8}{'MB/s':>10}{'seconds':>9}{'speed-up':>10}{'efficiency':>12}{'root idle':>11}{'others idle':>13}  root busy with; others (%)")
        more = {}
        for key, each in told.items():
            over = f"{rates[key] / base:10.2f}{rates[key] / base / key[1]:12.3f}" if base else " " * 22
            root, others = each["root"], each["servers"]
            more[key] = [f"{100 * root['idle']:.0f} %", f"{100 * others['idle']:.0f} %", shares(root), shares(others)]
            say(f"  {key[0]:<14}{key[1]:>8}{rates[key]:>10.0f}{each['seconds']:>9.3f}{over}{root['idle']:>11.2f}{others['idle']:>13.2f}  "
                f"{shares(root)}; {shares(others)}")
            self.figures.append(Figure(f"{group}: {key[0]}, {key[1]} servers", [rates[key]], "MB/s", better="higher"))
        self.draw(group, words, servers, rates, {key: each["seconds"] for key, each in told.items()},
                  ["root idle", "others idle", "root busy with (%)", "others busy with (%)"], more)

    def clean(self):
        super().clean()
        if self.sections:
            write_page(self.args.charts / "methods.html", "Methods of writing", self.sections)
        folder = Path("/dev/shm") / self.work.name
        if folder.is_dir():
            for each in folder.iterdir():
                each.unlink()
            folder.rmdir()

    def shared_memory(self):
        folder = Path("/dev/shm") / self.work.name
        folder.mkdir(exist_ok=True)
        return folder


def main():
    parser = bench_parser(__doc__, GROUPS, "0.06 GB, three turns; simulated: up to 64 servers", "5.9 GB; simulated: up to 4,096 servers")
    parser.add_argument("--methods", help="methods, separated by commas (default: all)")
    parser.add_argument("--handoff", choices=("auto", *HANDOFFS), default="auto", help="how the ranks' data comes to the servers (default: auto); `handoffs` compares all")
    parser.add_argument("--rate", default="40MB/s", help="of each server in `throttled` (default: 40MB/s)")
    parser.add_argument("--charts", type=Path, help="directory for charts (SVG) of rate, elapsed time, speed-up and efficiency, and for a page with the tables and all of them")
    return MethodsBench(parser.parse_args()).measure("methods", GROUPS)


run_main(main)
