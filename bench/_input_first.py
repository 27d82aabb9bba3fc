# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The figures of `input` about one field of many files: the first after a program's start, and one far ahead. Programs with
ecCodes are the peers: rank 0 finds and decodes the message, and scatters it."""
import json
import math
import statistics
import subprocess

from _bench import Failure, Figure, say
from _chart import write_chart
from _nodes import faked_nodes

RANKS = (1, 4)
LEVELS, FIELDS = 40, 3
# name: (way of the program, settings, what it is)
WAYS = {
    "cold": ("tailrace", {"CACHE": "none"}, "tailrace, headers of the file looked through"),
    "kept": ("tailrace", {}, "tailrace, inventories kept by an earlier run"),
    "scan": ("scan", {}, "ecCodes, looks through the file up to the message"),
    "index": ("index", {}, "ecCodes, with a grib_index of each file"),
    "index_all": ("index_all", {}, "ecCodes, with one grib_index of all files"),
}
SHORT = {"cold": "tailrace, cold", "kept": "tailrace, kept", "scan": "ecCodes, scan", "index": "ecCodes, index", "index_all": "ecCodes, index_all"}
GETS = {"first": "first field after the open", "far": "a field of the last file"}
PEERS = (("cold", "scan"), ("kept", "index"), ("kept", "index_all"))
BOUNDS = {("first", "kept", "index"): 1.0}


class FirstGroup:
    """`first` and `nodes` of the bench."""

    def first_files(self):
        args = self.args
        size, files = ((96, 78), 12) if args.quick else ((468, 378), 48) if args.large else ((156, 126), 48)
        directory = self.work / "first"
        options = ["--directory", directory, "--columns", size[0], "--rows", size[1], "--levels", LEVELS, "--files", files]
        if not directory.exists():
            (directory / "indexes").mkdir(parents=True)
            self.launcher.run(1, "input_first", options, {})
            names = sorted(directory.glob("f_*.grib2"))
            # In one process ecCodes 2.28 mixes up the files of several indexes.
            for keys, made, of in (("shortName:s,level:l,step:l", "all", names), *(("shortName:s,level:l", name.stem, [name]) for name in (names[0], names[-1]))):
                subprocess.run(["grib_index_build", "-k", keys, "-o", directory / "indexes" / made, *of], check=True, stdout=subprocess.DEVNULL)
            say(f"{files} files of {LEVELS * FIELDS} messages of {size[0]} x {size[1]} points, which are in the page cache")
        return options

    def first(self):
        options = self.first_files()
        cache = self.work / "cache"
        cache.mkdir(exist_ok=True)
        figures, points = [], {get: {} for get in GETS}
        for ranks in RANKS:
            taken = self.first_taken(options, cache, ranks)
            for get, about in GETS.items():
                for way, (_, _, words) in WAYS.items():
                    figures.append(Figure(f"{get}.ranks{ranks}.{way}", [1e3 * each for each in taken[way][get]], "ms", note=words))
                    points[get].setdefault(SHORT[way], []).append((ranks, statistics.median(taken[way][get])))
                for ours, peer in PEERS:
                    ratios = [one / other for one, other in zip(taken[ours][get], taken[peer][get])]
                    figures.append(Figure(f"{get}.ranks{ranks}.{ours}/{peer}", ratios, "ratio", BOUNDS.get((get, ours, peer)), note=about))
        self.show("One field of many files, in a new process; ours until tr_stream_end", figures)
        for get, about in GETS.items():
            path = self.args.charts / f"input-{get}.svg"
            write_chart(path, about, "ranks", "seconds", [(ranks, str(ranks)) for ranks in RANKS], points[get])
            say(f"  chart: {path}")

    def first_taken(self, options, cache, ranks):
        """Ways take turns, and each turn begins with another one. The first keeps the inventories."""
        taken = {way: {get: [] for get in GETS} for way in WAYS}
        names, expected = list(WAYS), None
        for turn in range(6 if self.args.quick else 10):
            for way in names[turn % len(names):] + names[:turn % len(names)]:
                program_way, settings, _ = WAYS[way]
                answer = self.launcher.run(ranks, "input_first", ["--way", program_way, *options], {"CACHE": cache, **settings})
                expected = expected or answer["sums"]
                if not all(math.isclose(one, other, rel_tol=1e-9) for one, other in zip(answer["sums"], expected)):
                    raise Failure(f"{way} on {ranks} ranks read other values: {answer['sums']} instead of {expected}")
                for get in GETS:
                    if turn > 0:
                        taken[way][get].append(answer[get])
        return taken

    def nodes(self):
        """How often a record is read and decoded, by the counts of the report."""
        options = ["--way", "tailrace", "--options", "prefetch=0", *self.first_files()]
        figures = [self.reads("1 node of 6 ranks", options, 6, 1, (), {})]
        faked = faked_nodes(self.launcher, self.work, 3, 2)
        if faked is None:
            say("several nodes on one machine: neither MPICH nor root with Open MPI; left out")
        else:
            nodes, flags, environment = faked
            figures.append(self.reads(f"{nodes} nodes, 6 ranks", options, 6, nodes, flags, environment))
        self.show("Reads of each record; a program whose rank 0 reads and scatters has 1", figures)

    def reads(self, title, options, ranks, nodes, flags, environment):
        report = self.work / "report.json"
        self.launcher.run(ranks, "input_first", options, {"REPORT": report}, environment=environment, flags=flags)
        inputs = [stream["input"] for stream in json.loads(report.read_text())["streams"] if "input" in stream]
        return Figure(f"reads.{title}", [inputs[0]["records_read"] / len(GETS)], "", nodes, note="once on each node")
