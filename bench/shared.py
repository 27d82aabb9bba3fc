#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What small pieces cost that all ranks write into one file and read back, in sections: wopen, write, wclose, ropen, read, rclose.

  elements     the list of elements of a hexahedral grid, a column a call, on storage as it is: a directory and /dev/shm
  interleaved  pieces of 1 KiB and of 32 bytes, dealt out to the ranks in turn, a call each, on the same storage
  flush        pieces of 1 KiB until they are on storage, beside one rank that writes the same bytes in blocks of 16 MiB and calls fsync
  latency      both on storage that serves one call after another: 1 ms each, 1 ms for a lock that another rank has, and 500 MB/s
  network      elements on a network file system until they are on storage: GlusterFS over loopback, if it is installed and root
               calls this, or what is mounted on --mounted DIR
  arrays       elements of 8 bytes of a global array, gathered and scattered in random order: on one node beside a plain copy by the
               same numbers, and between two faked nodes

The contenders take turns within one run: the library, a call for each piece (tailrace) or one call with a list of them
(tailrace_list); pwrite and pread (posix); fseek with fwrite and fread (stdio); MPI_File_write_at and _read_at (mpi_at), and
MPI_File_write_all and _read_all with a view (mpi_all), on each I/O layer of the MPI.

`./dev bench shared` builds and calls this. Medians with the lowest and the highest; a section ends when the last rank
is done. Ratios are a contender's time over tailrace's in the same repetition. The exit code is 1 if a bound was missed.
"""
import os
import shutil
import signal
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from _bench import MIB, Bench, Failure, Figure, bench_parser, file_system_of, run_main, say  # noqa: E402
from _chart import write_chart  # noqa: E402
from _gluster import Gluster, why_not  # noqa: E402
from _shared_arrays import ArraysGroup  # noqa: E402

GROUPS = ("elements", "interleaved", "flush", "latency", "network", "arrays")
SECTIONS = ("wopen", "write", "wclose", "ropen", "read", "rclose")
SUMS = {"writing": SECTIONS[:3], "reading": SECTIONS[3:], "total": SECTIONS}
COLUMNS = (*SECTIONS, *SUMS)
GRIDS = ((41, 41, 31), (81, 81, 61), (121, 121, 91))
LARGE_GRID = (361, 361, 271)  # 1.04 GiB
RANKS, LARGE_RANKS, BOUND_RANKS = (1, 2, 4, 8, 16), (4, 16), 4
REPEAT, SLOW_REPEAT = 6, 3  # the first is dropped, but on slow storage, where it is like the others
CONTENDERS = ("tailrace", "tailrace_list", "posix", "stdio", "mpi_at", "mpi_all")
FLUSH_CONTENDERS = ("tailrace", "tailrace_list", "blocks")
OURS = ("tailrace", "tailrace_list")
LAYERS = {"romio": {"OMPI_MCA_io": "romio321"}, "ompio": {"OMPI_MCA_io": "ompio"}}
OVER_ON_SLOW_STORAGE, WRITING_OVER_POSIX, READING_OVER_POSIX, WRITING_OVER_ALL, FLUSH_OVER_BLOCKS = 15, 4, 3, 1.5, 0.85
SMALL_OVER_LARGE = 1  # what is gained on mpi_all with pieces of 32 bytes over that with 1 KiB
CLOCKS_BYTES = 4096  # slow_storage.c has 64 clocks of 8 bytes there


class Case:
    """What is written, and how the program is told."""

    def __init__(self, name, size, *arguments):
        self.name, self.bytes, self.arguments = name, size, arguments
        self.is_grid = arguments[0] == "--grid"

    @classmethod
    def grid(cls, shape):
        name = "x".join(map(str, shape))
        return cls(name, (shape[0] - 1) * (shape[1] - 1) * (shape[2] - 1) * 32, "--grid", name)

    @classmethod
    def pieces(cls, each, count):
        return cls(f"{each}B" if each < 1024 else f"{each // 1024}KiB", each * count, "--piece", each, "--pieces", count)


class Place:
    """Where the file lies; `environment` makes it slow."""

    def __init__(self, name, directory, about, environment=None):
        self.name, self.directory, self.about, self.environment = name, Path(directory), about, environment or {}

    @property
    def file(self):
        return self.directory / "shared.dat"


class Taken:
    """Of one contender in one case: its name, the seconds of each column and repetition, those of ours in the same repetitions,
    and what slow storage counted."""

    def __init__(self, name, answer, ours, dropped):
        self.name, self.answer = name, answer
        self.seconds, self.ours = in_columns(answer, dropped), in_columns(ours, dropped)

    def median(self, column):
        return statistics.median(self.seconds[column])

    def ratios(self, column):
        return [theirs / ours for theirs, ours in zip(self.seconds[column], self.ours[column])]

    def add(self, other):
        for column in COLUMNS:
            self.seconds[column] += other.seconds[column]
            self.ours[column] += other.ours[column]


def in_columns(answer, dropped):
    seconds = {section: answer[section][dropped:] for section in SECTIONS}
    for name, parts in SUMS.items():
        seconds[name] = [sum(values) for values in zip(*(seconds[part] for part in parts))]
    return seconds


class SharedBench(ArraysGroup, Bench):
    def __init__(self, args):
        args.out = args.out or args.build
        super().__init__(args)
        self.in_memory = Path(tempfile.mkdtemp(prefix="tailrace-bench-", dir="/dev/shm")) if os.path.isdir("/dev/shm") else None
        self.ranks = (1, 4) if args.quick else RANKS
        self.grids = [Case.grid(shape) for shape in (GRIDS[:2] if args.quick else GRIDS)]
        self.chosen = args.contenders.split(",") if args.contenders else CONTENDERS
        self.clocks = None
        say(f"{'each file is on storage when wclose ends' if args.fsync else 'no fsync'}; with more ranks than cores they take turns")

    def clean(self):
        super().clean()
        if self.in_memory:
            shutil.rmtree(self.in_memory, ignore_errors=True)

    # ---- storage -----------------------------------------------------------------------------------------------

    def places(self):
        found = [Place("disk", self.work, f"{file_system_of(self.work)}, page cache")]
        if self.in_memory:
            found.append(Place("memory", self.in_memory, "/dev/shm"))
        return found

    def slow_place(self):
        """The ranks find the clocks through this process: nothing is left of them however it ends."""
        preload = self.launcher.find("libbench_slow_storage.so")
        if preload is None:
            raise Failure(f"{self.args.build} holds no libbench_slow_storage.so; ./dev bench builds it")
        if self.clocks is None:
            self.clocks = os.memfd_create("tailrace-bench-clocks")
            os.ftruncate(self.clocks, CLOCKS_BYTES)
        directory = self.in_memory or self.work
        about = f"{self.args.latency:g} ms a call and {self.args.rate:g} MB/s, one call after another"
        if self.args.handover > 0:
            about += f", {self.args.handover:g} ms for a lock that another rank has"
        return Place("slow", directory, about, {
            "LD_PRELOAD": preload, "BENCH_SLOW_FILE": str(directory / "shared.dat"),
            "BENCH_SLOW_CLOCKS": f"/proc/{os.getpid()}/fd/{self.clocks}",
            "BENCH_SLOW_LATENCY_NS": str(round(self.args.latency * 1e6)), "BENCH_SLOW_HANDOVER_NS": str(round(self.args.handover * 1e6)),
            "BENCH_SLOW_RATE": str(round(self.args.rate * 1e6))})

    # ---- one case ----------------------------------------------------------------------------------------------

    def launches(self, group):
        """Contenders that take turns, the layer that MPI-IO has, and how it is chosen. What calls no MPI-IO is measured once."""
        if group == "flush":
            yield FLUSH_CONTENDERS, "", {}
            return
        layers = LAYERS if self.launcher.openmpi else {"romio": {}}
        for number, (layer, environment) in enumerate(layers.items()):
            names = [name for name in self.chosen if number == 0 or name.startswith("mpi_")]
            if [name for name in names if name != "tailrace"] or number == 0:
                yield ["tailrace", *(name for name in names if name != "tailrace")], layer, environment

    def measure_case(self, group, case, place, ranks):
        """Prints the table of a case; what each contender took."""
        slow, sync = place.name == "slow", self.args.fsync or group in ("flush", "network")
        repeat, dropped = (SLOW_REPEAT, 0) if slow else (REPEAT, 1)
        taken = {}
        for names, layer, environment in self.launches(group):
            arguments = ["--contenders", ",".join(names), *case.arguments, "--repeat", repeat, "--file", place.file]
            answer = self.launcher.run(ranks, "shared_pieces", arguments + (["--sync"] if sync else []), {},
                                       environment={**place.environment, **environment}, timeout=3600)["contenders"]
            for name in names:
                full = f"{name}.{layer}" if name.startswith("mpi_") else name
                one = Taken(full, answer[name], answer["tailrace"], dropped)
                if slow:
                    check_counts(one, case)
                if full in taken:
                    taken[full].add(one)  # ours
                else:
                    taken[full] = one
        prefix = f"{group}.{place.name}.{case.name}.ranks_{ranks}"
        self.show_case(prefix, case, place, ranks, taken)
        if slow:
            self.show_calls(prefix, taken)
        return taken

    def show_case(self, prefix, case, place, ranks, taken):
        say(f"\n{prefix}: {case.bytes / 1e6:.4g} MB, {place.about}, {ranks} rank{'s' if ranks > 1 else ''}; milliseconds, and times "
            "those of tailrace")
        say(f"  {'':<16}" + "".join(f"{column:>10}" for column in COLUMNS) + f"{'total, lowest .. highest':>28}")
        shown = []
        for one in taken.values():
            total = one.seconds["total"]
            say(f"  {one.name:<16}" + "".join(f"{1e3 * one.median(column):>10.4g}" for column in COLUMNS) +
                f"{f'{1e3 * min(total):.4g} .. {1e3 * max(total):.4g}':>28}")
            self.figures += [Figure(f"{prefix}.{one.name}.{column}", one.seconds[column], "s") for column in COLUMNS]
            if one.name == "tailrace":
                continue
            ratios = [Figure(f"{prefix}.{one.name}_over_tailrace.{column}", one.ratios(column), "ratio",
                             bound_of(prefix.split(".")[0], one.name, column, ranks), "higher") for column in COLUMNS]
            if one.name == "blocks":
                behind = Figure(f"{prefix}.blocks.writing_over_tailrace.wclose",
                                [theirs / ours for theirs, ours in zip(one.seconds["writing"], one.ours["wclose"])], "ratio",
                                note="all their writing over our flush and close alone; ours was stored in part before")
                self.figures.append(behind)
                shown.append(behind)
            total = one.ratios("total")
            say(f"  {'':<16}" + "".join(f"{times(figure.value):>10}" for figure in ratios[:len(COLUMNS)]) +
                f"{f'{times(min(total))} .. {times(max(total))}':>28}")
            self.figures += ratios
            shown += [figure for figure in ratios if figure.bound is not None]
        for figure in shown:
            say(figure.line())

    def show_calls(self, prefix, taken):
        """What reached storage. Our writes, but the last of each process, are promised to have 1 MiB or more."""
        say("  calls that reached storage:")
        for one in taken.values():
            words = []
            for calls, moved in (("writes", "bytes_written"), ("reads", "bytes_read")):
                figure = Figure(f"{prefix}.{one.name}.{calls}", one.answer[calls], "calls")
                self.figures.append(figure)
                words.append(f"{figure.value:g} {calls} of {statistics.median(one.answer[moved]) / max(1, figure.value):.0f} bytes")
            say(f"  {one.name:<16}{', '.join(words)}")
        for one in taken.values():
            if one.name in OURS:
                small = [few - last for few, last in zip(one.answer["small_writes"], one.answer["last_write_is_small"])]
                self.figures.append(Figure(f"{prefix}.{one.name}.small_writes", small, "calls", 0,
                                           note="below 1 MiB, but for the last of each process"))
                say(self.figures[-1].line())

    def sweep(self, group, plan, places):
        """Every case of the plan with its numbers of ranks, and charts of their totals over ranks and over sizes. Returns what
        contenders took, by the name of the place, the case and the number of ranks."""
        everything = {}
        for place in places:
            taken = {(case, number): self.measure_case(group, case, place, number) for case, ranks in plan for number in ranks}
            everything.update({(place.name, *each): of for each, of in taken.items()})
            for case, ranks in plan:
                if len(ranks) > 1:
                    if group in ("latency", "network"):
                        self.show_growth(f"{group}.{place.name}.{case.name}", [(number, taken[case, number]) for number in ranks])
                    self.chart(f"{group}-{place.name}-{case.name}", f"{group} {case.name}, {place.about}", "ranks",
                               [(number, str(number), taken[case, number]) for number in ranks])
            sizes = [(case.bytes, f"{case.bytes / 1e6:.3g} MB", taken[case, BOUND_RANKS]) for case, ranks in plan
                     if case.is_grid and BOUND_RANKS in ranks]
            if len(sizes) > 1:
                self.chart(f"{group}-{place.name}-sizes", f"{group} on {BOUND_RANKS} ranks, {place.about}", "size of the file", sizes)
        return everything

    def show_growth(self, prefix, taken_on):
        """The ratios that have a bound by number of ranks, and that on the most ranks over that on the fewest."""
        say(f"\n{prefix}: total over that of tailrace, by number of ranks")
        fewest, most = taken_on[0], taken_on[-1]
        for name in fewest[1]:
            if bound_of(prefix.split(".")[0], name, "total", most[0]) is None:
                continue
            ratios = [statistics.median(taken[name].ratios("total")) for _, taken in taken_on]
            growth = Figure(f"{prefix}.{name}_over_tailrace.total.ranks_{most[0]}_over_{fewest[0]}", [ratios[-1] / ratios[0]], "ratio")
            self.figures.append(growth)
            say(f"  {name:<16}" + "".join(f"{f'{number}: {times(ratio)}':>14}" for (number, _), ratio in zip(taken_on, ratios)) +
                f"   {'grows' if growth.value > 1 else 'does not grow'} ({times(growth.value)})")

    def chart(self, name, title, x_title, points):
        """`points` are (place on the axis, words there, what the contenders took)."""
        path = self.args.charts / f"shared-{name}.svg"
        series = {each: [(x, taken[each].median("total")) for x, _, taken in points] for each in points[0][2]}
        write_chart(path, title, x_title, "seconds, all sections", [(x, words) for x, words, _ in points], series)
        say(f"  chart: {path}")

    # ---- groups ------------------------------------------------------------------------------------------------

    def elements(self):
        plan = [(case, self.ranks) for case in self.grids]
        self.sweep("elements", plan + ([(Case.grid(LARGE_GRID), LARGE_RANKS)] if self.args.large else []), self.places())

    def interleaved(self):
        mebibytes = (16, 2) if self.args.quick else (1024, 64) if self.args.large else (64, 8)
        large, small = [Case.pieces(each, size * MIB // each) for each, size in zip((1024, 32), mebibytes)]
        places = self.places()
        taken = self.sweep("interleaved", [(case, self.ranks) for case in (large, small)], places)
        say(f"\ninterleaved: what is gained on MPI_File_write_all with small pieces, over what is gained with large ones; {BOUND_RANKS} ranks")
        for place in places:
            of_large, of_small = (taken[place.name, case, BOUND_RANKS] for case in (large, small))
            for name in (name for name in of_small if name.startswith("mpi_all")):
                ratios = [statistics.median(of[name].ratios("writing")) for of in (of_small, of_large)]
                self.figures.append(Figure(f"interleaved.{place.name}.{name}.writing.{small.name}_over_{large.name}", [ratios[0] / ratios[1]],
                                           "ratio", SMALL_OVER_LARGE, "higher", f"{times(ratios[0])} and {times(ratios[1])}"))
                say(self.figures[-1].line())

    def flush(self):
        case = Case.pieces(1024, (1024 if self.args.large else 64) * MIB // 1024)
        self.sweep("flush", [(case, (1, BOUND_RANKS))], self.places()[:1])

    def latency(self):
        """A contender with a call for each piece takes calls * latency, on any number of ranks: larger grids are measured on
        one number of ranks."""
        larger = [] if self.args.quick else self.grids[1:]
        pieces = [Case.pieces(1024, 2048), Case.pieces(32, 2048)]
        self.sweep("latency", [(self.grids[0], self.ranks), *((case, (BOUND_RANKS,)) for case in [*larger, *pieces])],
                   [self.slow_place()])

    def network(self):
        if self.args.mounted:
            with tempfile.TemporaryDirectory(prefix="tailrace-bench-", dir=self.args.mounted) as directory:
                self.on_network(directory, file_system_of(directory))
            return
        missing = why_not()
        try:
            if not missing:
                with Gluster(self.work / "gluster") as mounted:
                    self.on_network(mounted.files, "GlusterFS over loopback")
        except OSError as error:
            missing.append(str(error))
        if missing:
            say(f"\nnetwork: left out: {'; '.join(missing + why_no_nfs())}; --mounted DIR names a directory of one that is mounted")

    def on_network(self, directory, about):
        place = Place("mounted", directory, f"{about}, until it is on storage")
        self.sweep("network", [(case, (1, BOUND_RANKS)) for case in self.grids[:2]], [place])


def bound_of(group, contender, column, ranks):
    """What was promised of a ratio, or None."""
    kind = contender.split(".")[0]
    if group in ("latency", "network") and column == "total" and kind in ("posix", "mpi_at"):
        return OVER_ON_SLOW_STORAGE
    if group == "flush" and (kind, column) == ("blocks", "writing"):
        return FLUSH_OVER_BLOCKS
    if group == "interleaved" and ranks == BOUND_RANKS:
        return {("posix", "writing"): WRITING_OVER_POSIX, ("posix", "reading"): READING_OVER_POSIX,
                ("mpi_all", "writing"): WRITING_OVER_ALL}.get((kind, column))
    return None


def times(ratio):
    return f"x {ratio:.0f}" if ratio >= 100 else f"x {ratio:.3g}" if ratio >= 0.01 else "x <0.01"


def check_counts(one, case):
    """A contender whose bytes went another way was not charged for them."""
    for counted in ("bytes_written", "bytes_read"):
        if min(one.answer[counted]) < case.bytes:
            raise Failure(f"{one.name}, {case.name}: slow storage counted {counted} {min(one.answer[counted])} of {case.bytes}: "
                          "the others came by calls that bench/shared/slow_storage.c does not wrap")


def why_no_nfs():
    known = Path("/proc/filesystems").read_text(encoding="ascii").split()
    return [] if "nfs" in known or "nfs4" in known else ["this kernel has no NFS client (/proc/filesystems)"]


def stop_in_order(*_):
    """Files are removed on the way out."""
    raise KeyboardInterrupt


def main():
    parser = bench_parser(__doc__, GROUPS, quick="1 and 4 ranks, the two smaller grids, 16 and 2 MiB of pieces in place of 64 and 8",
                          large="a grid of 1.1 GB on 4 and 16 ranks too, 1 GiB and 64 MiB of pieces")
    parser.add_argument("--fsync", action="store_true", help="every file is on storage when wclose ends: tr_shared_flush, or one rank's fsync")
    parser.add_argument("--contenders", metavar="NAME,NAME", help="only these beside tailrace: " + ", ".join(CONTENDERS[1:]))
    parser.add_argument("--latency", type=float, default=1, metavar="MS", help="of each call to slow storage (1)")
    parser.add_argument("--handover", type=float, metavar="MS", help="until it has a lock back from another rank (as --latency; 0: locks cost nothing)")
    parser.add_argument("--rate", type=float, default=500, metavar="MB/s", help="of slow storage (500)")
    parser.add_argument("--mounted", type=Path, metavar="DIR", help="a directory on a network file system, in place of a GlusterFS of its own")
    parser.add_argument("--charts", type=Path, default=Path("out/bench"), metavar="DIR", help="for the charts (out/bench)")
    args = parser.parse_args()
    if args.handover is None:
        args.handover = args.latency
    unknown = set((args.contenders or "tailrace").split(",")) - set(CONTENDERS)
    if unknown:
        parser.error(f"--contenders: {', '.join(sorted(unknown))}: there are {', '.join(CONTENDERS)}")
    signal.signal(signal.SIGTERM, stop_in_order)
    return SharedBench(args).measure("shared", GROUPS)


if __name__ == "__main__":
    run_main(main)
