#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""How fast collective files are: a float64 array in blocks over 4 ranks to one new file and back, each figure a ratio to a
contender that took turns with ours.

  write       parallel mode against one rank's pwrite, gather + fwrite and, with --peers, MPI-IO, HDF5, PnetCDF, netCDF-4
  durable     the same until the data is on storage
  read        the file back on 3 ranks, against one rank's pread
  whole       64 MiB that every rank reads with tr_fread, against fread on one rank and MPI_Bcast
  aggregators writing with 1, 2 and 4 of them, for orientation
  threshold   from which size on the parallel way beats the serial one, for orientation
  memory      what stripes take of the node's budget, at the defaults
  calls       1e5 calls of tr_fprintf_nr and tr_fputc_nr on 4 ranks, beside the C library's on one

`./dev bench files` builds and calls this; `./dev bench files --peers` installs the peers first. Medians of at least five,
the first repetition dropped, with the lowest and the highest; the exit code is 1 if a bound was missed.
"""
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from _bench import MIB, Bench, Figure, bench_parser, run_main, say  # noqa: E402

GROUPS = ("write", "durable", "read", "whole", "aggregators", "threshold", "memory", "calls")
RANKS, READERS, ROUNDS, CALLS = 4, 3, 5, 100_000
# As their manuals and authors advise where each rank's block is long rows: no collecting on fewer ranks, no sieving.
DIRECT = {"write": "romio_cb_write=disable,romio_ds_write=disable", "read": "romio_cb_read=disable,romio_ds_read=disable"}
OVER_PWRITE, OVER_PEER, OVER_GATHER, DURABLE_OVER_PEER, OVER_PREAD, OVER_BCAST = 0.9, 1.1, 1.5, 0.95, 0.9, 1
WHY_FASTEST = "fastest repetition of each launch: a virtual machine's host may hold others up (bench/README.md)"


class Contender:
    """A program with its ranks, the library's settings and other environment variables."""

    def __init__(self, name, program, ranks=RANKS, settings=None, row_major=True, **environment):
        self.name, self.program, self.ranks, self.row_major = name, "files_" + program, ranks, row_major
        self.settings, self.environment = settings or {}, environment


OURS = Contender("tailrace", "tailrace")
POSIX = Contender("pwrite", "posix", ranks=1)
GATHER = Contender("gather", "gather")


class FilesBench(Bench):
    def __init__(self, args):
        super().__init__(args)
        # 128 MiB, 1 GiB and 8 GiB
        self.rows, self.columns = (4096, 4096) if args.quick else (32768, 32768) if args.large else (8192, 16384)
        self.bytes = 8 * self.rows * self.columns
        self.file = self.work / "array.dat"
        self.peers = self.find_peers() if args.peers else []
        say(f"{self.bytes / MIB:.0f} MiB in {self.rows} x {self.columns} float64, {ROUNDS} rounds in which all take turns")

    def find_peers(self):
        """Those of this MPI that were built: each on each of its I/O layers as it is, and as an expert sets it."""
        layers = {"ompio": "ompio", "romio": "^ompio"} if self.launcher.openmpi else {"romio": None}
        romio = {"OMPI_MCA_io": layers["romio"]} if layers["romio"] else {}
        found, missing = [], []
        for program in ("mpi_io", "hdf5", "pnetcdf", "netcdf4"):
            if self.launcher.find("files_" + program) is None:
                missing.append(program)
                continue
            for layer, choice in layers.items():
                environment = {"OMPI_MCA_io": choice} if choice else {}
                found.append(Contender(f"{program}.{layer}", program, **environment))
            found.append(Contender(f"{program}.romio.direct", program, **romio, BENCH_HINTS=DIRECT["write"]))
            if program not in ("hdf5", "netcdf4"):
                continue
            for transfer in ("collective", "independent"):
                found.append(Contender(f"{program}.romio.chunks.{transfer}", program, row_major=False, **romio,
                                       BENCH_LAYOUT="chunks", BENCH_TRANSFER=transfer))
        if missing:
            say(f"missing peers: {', '.join(missing)} (no such library for this MPI was found)")
        return found

    def seconds(self, contender, *options, rows=None, columns=None, repeat=4):
        """Of each repetition of one launch, without its first: memory is cold then."""
        arguments = ["--rows", rows or self.rows, "--columns", columns or self.columns, "--repeat", repeat,
                     "--file", self.file, *options]
        run = self.launcher.run(contender.ranks, contender.program, arguments, contender.settings,
                                environment=contender.environment)
        return run["seconds"][1:]

    def in_turns(self, contenders, *options, **more):
        """Of each contender the seconds of each launch: in each round every one is launched once. The first round is
        dropped."""
        taken = {contender.name: [] for contender in contenders}
        for number in range(ROUNDS + 1):
            for contender in contenders:
                seconds = self.seconds(contender, *options, **more)
                if number > 0:
                    taken[contender.name].append(seconds)
        return taken

    def rates(self, group, taken):
        """Of all repetitions."""
        blocks = {peer.name for peer in self.peers if not peer.row_major}
        return [Figure(f"{group}.{name}", [self.bytes / 1e6 / s for launch in launches for s in launch], "MB/s",
                       note="not row-major: a chunk for each rank" if name in blocks else "")
                for name, launches in taken.items()]

    @staticmethod
    def over(group, taken, ours, other, bound, note=""):
        """Rounds are compared with themselves: what disturbs the machine for longer disturbs both. The medians of each
        launch count; where files are written, its fastest repetitions stand beside them without a bound."""
        def ratios(which):
            return [which(theirs) / which(mine) for mine, theirs in zip(taken[ours], taken[other])]

        name = f"{group}.{ours}_over_{other}"
        figures = [Figure(name, ratios(statistics.median), "ratio", bound, "higher", note)]
        if group in ("write", "durable"):
            figures.append(Figure(f"{name}.fastest", ratios(min), "ratio", None, "higher", WHY_FASTEST))
        return figures

    def over_peers(self, group, taken, bound):
        """Against the best of those whose file has the array's order, as ours has, and the best of the others."""
        figures = []
        for row_major, limit, note in ((True, bound, "the best peer with a row-major file"),
                                       (False, None, "the best peer with another order in its file")):
            names = [peer.name for peer in self.peers if peer.row_major == row_major and peer.name in taken]
            if names:
                best = min(names, key=lambda name: statistics.median(s for launch in taken[name] for s in launch))
                figures += self.over(group, taken, "tailrace", best, limit, note)
        return figures

    # ---- write and durable -----------------------------------------------------------------------------------

    def write(self):
        taken = self.in_turns([POSIX, OURS, *self.peers, GATHER])
        figures = self.rates("write", taken)
        figures += self.over("write", taken, "tailrace", "pwrite", OVER_PWRITE, "aim 0.95")
        figures += self.over("write", taken, "tailrace", "gather", OVER_GATHER)
        figures += self.over_peers("write", taken, OVER_PEER)
        self.show(f"Writing a new file, {RANKS} ranks, no fsync", figures)

    def durable(self):
        taken = self.in_turns([POSIX, OURS, *self.peers, GATHER], "--sync")
        figures = self.rates("durable", taken)
        figures += self.over_peers("durable", taken, DURABLE_OVER_PEER)
        self.show(f"Writing a new file, {RANKS} ranks, with fsync", figures)

    # ---- read ------------------------------------------------------------------------------------------------

    def read(self):
        self.seconds(OURS, "--keep")
        mpi_io = [Contender(peer.name, "mpi_io", READERS, **peer.environment) for peer in self.peers
                  if peer.program == "files_mpi_io"]
        for reader in mpi_io:
            if "BENCH_HINTS" in reader.environment:
                reader.environment["BENCH_HINTS"] = DIRECT["read"]
        readers = [Contender("pread", "posix", ranks=1), Contender("tailrace", "tailrace", ranks=READERS), *mpi_io]
        taken = self.in_turns(readers, "--read")
        self.file.unlink()
        figures = self.rates("read", taken)
        figures += self.over("read", taken, "tailrace", "pread", OVER_PREAD)
        figures += self.over_peers("read", taken, None)
        self.show(f"Reading what {RANKS} ranks wrote, {READERS} ranks, from the page cache", figures)

    def whole(self):
        """Every rank reads all of a file, in turn in each way."""
        size, figures = 64 * MIB, []
        for ranks in (2, READERS):
            turns = self.launcher.run(ranks, "files_read_whole", ["--bytes", size, "--repeat", 2 * ROUNDS, "--file", self.file], {})["turns"][1:]
            for way in turns[0]:
                figures.append(Figure(f"whole.{way}.ranks_{ranks}", [turn[way] * 1e3 for turn in turns], "ms"))
            for way in ("serial", "parallel"):
                figures.append(Figure(f"whole.{way}_over_bcast.ranks_{ranks}", [turn["bcast"] / turn[way] for turn in turns], "ratio", OVER_BCAST, "higher"))
        self.show(f"{size // MIB} MiB that every rank reads, from the page cache: tr_fread, tr_fread_array of a replicated layout, fread and MPI_Bcast", figures)

    # ---- for orientation -------------------------------------------------------------------------------------

    def aggregators(self):
        ours = [Contender(f"aggregators_{n}", "tailrace", settings=dict(aggregators=n)) for n in (1, 2, 4)]
        taken = self.in_turns([POSIX, *ours])
        self.show("Aggregators of a node, writing", self.rates("aggregators", taken))

    def threshold(self):
        """Arrays of each size, 16 in one file, written in either way."""
        figures = []
        serial = Contender("serial", "tailrace", BENCH_MODE="")
        parallel = Contender("parallel", "tailrace", settings=dict(parallel_threshold=0), BENCH_MODE="p")
        for kib in (64, 256, 1024, 4096, 16384):
            edge = int((kib * 128) ** 0.5)
            taken = self.in_turns([serial, parallel], "--arrays", 16, rows=edge, columns=kib * 128 // edge, repeat=6)
            figures.append(Figure(f"threshold.serial.KiB_{kib}", [s / 16 * 1e3 for launch in taken["serial"] for s in launch], "ms"))
            figures += self.over("threshold", taken, "parallel", "serial", None, "above 1: the parallel way is faster")
            figures[-1].name += f".KiB_{kib}"
        self.show("Arrays of each size in either way, 16 in one file: milliseconds for each", figures)

    def memory(self):
        arguments = ["--rows", self.rows, "--columns", self.columns, "--repeat", 2, "--file", self.file]
        self.show("Memory of the node", [
            self.launcher.taken(f"memory.{name}", RANKS, "files_tailrace", arguments, {}, {"BENCH_MODE": mode})
            for name, mode in (("parallel", "p"), ("asynchronous", "ps"))])

    def calls(self):
        ours = self.launcher.run(RANKS, "files_small_calls", ["--calls", CALLS, "--file", self.file], {})
        libc = self.launcher.run(1, "files_small_calls", ["--calls", CALLS, "--file", self.file, "--libc"], {})
        figures = []
        for call in ("fprintf", "fputc"):
            figures.append(Figure(f"calls.tr_{call}_nr.ranks_{RANKS}", [s / CALLS * 1e9 for s in ours[call][1:]], "ns",
                                  note="until the file is closed"))
            figures.append(Figure(f"calls.{call}", [s / CALLS * 1e9 for s in libc[call][1:]], "ns", note="the C library, 1 rank"))
        self.show(f"{CALLS} small calls in the serial mode: nanoseconds for each", figures)


def main():
    parser = bench_parser(__doc__, GROUPS, quick="128 MiB in place of 1 GiB", large="8 GiB")
    parser.add_argument("--peers", action="store_true", help="against MPI-IO, HDF5, PnetCDF and netCDF-4 too")
    return FilesBench(parser.parse_args()).measure("files", GROUPS)


if __name__ == "__main__":
    run_main(main)
