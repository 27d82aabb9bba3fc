#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What checkpoints cost: a float64 array in blocks over the ranks, saved and loaded in both modes, each figure a ratio to
what memory and storage give to anybody, taken in turn with ours in the same run.

  save      on 1 to 8 ranks: time blocked in an asynchronous save against one warm memcpy, a synchronous save against pwrite into as many
            files with as many fsyncs, memory, and the time until an asynchronous save is committed
  rewrite   what asynchronous saves cost a program that rewrites nothing, 5 % in one piece or all of the array meanwhile, captured
            by a copy and copy-on-write, on one rank with a core for what works behind it, in warm copies
  journal   what it costs to write over a file that a save has recorded, with overwritten=journal, on one rank
  first     the first save of a process against its later ones, with a second of computing before each: time blocked, and time until
            it is committed beside the first file of pwrite and fsync, which the kernel makes slow; on storage and in /dev/shm
  load      on the same ranks, half of them and twice as many, against pread of the same files into warm memory;
            the files are in the page cache for both
  memory    what captures take of the node's budget, at the defaults
  compress  what lz4 and zstd cost and save, of a smooth field

`./dev bench checkpoint` builds and calls this. Medians of seven, the first two repetitions dropped, with the lowest and the
highest; the exit code is 1 if a bound was missed.
"""
import statistics
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from _bench import MIB, Bench, Figure, bench_parser, run_main, say  # noqa: E402

GROUPS = ("save", "first", "rewrite", "journal", "load", "memory", "compress")
MODES = ("parallel", "local")
DROPPED, REPETITIONS = 2, 7       # a checkpoint has two copies: the first save to each makes its files
OVER_COPY, OVER_WRITE, OVER_READ = 1.1, 0.85, 0.7
KEEP_OVER_FIRST = 0.7
FIRST_OVER_LATER, LATER = 2, 3    # a bound; saves of a process behind its first
PROTECTED = {"blocked": 0.15, "part": 0.5, "all": 2.5}  # in copies
GIB = 1024 * MIB


class CheckpointBench(Bench):
    def __init__(self, args):
        super().__init__(args)
        self.bytes = (32 if args.quick else 4096 if args.large else 256) * MIB
        self.ranks = args.ranks or (1 if args.quick else 2)
        self.saving_ranks = (self.ranks,) if args.ranks or args.quick else (1, 2, 4, 8)
        say(f"{self.bytes / MIB:.0f} MiB in all")

    def cost(self, ranks, name, options, *more):
        """Seconds of each repetition that counts, by what was timed."""
        run = self.launcher.run(ranks, "checkpoint_cost", [
            "--bytes", self.bytes, "--repeat", DROPPED + REPETITIONS, "--name", self.work / name, "--options", options, *more],
            {}, timeout=1800)
        return {key: value[DROPPED:] if isinstance(value, list) else value for key, value in run.items()}

    def remove(self, name):
        for path in self.work.glob(f"{name}.*"):
            path.unlink()

    @staticmethod
    def ratios(above, below):
        return [a / b for a, b in zip(above, below)]

    # ---- save ------------------------------------------------------------------------------------------------

    def save(self):
        for ranks in self.saving_ranks:
            for mode in MODES:
                self.save_on(ranks, mode)

    def save_on(self, ranks, mode):
        run = self.cost(ranks, mode, f"mode={mode}")
        self.remove(mode)
        size, name = run["bytes"], f"save.{mode}.n{ranks}"
        # Ranks that share cores take each other's time: above one rank what counts is the thread's own.
        figures = [
            Figure(f"{name}.async_over_copy", self.ratios(run["async"], run["copy"]), "ratio",
                   OVER_COPY if ranks == 1 else None, note="by the clock"),
            Figure(f"{name}.async_over_copy.thread", self.ratios(run["async_thread"], run["copy_thread"]), "ratio",
                   None if ranks == 1 else OVER_COPY, note="of the calling thread's time"),
            Figure(f"{name}.raw_over_sync", self.ratios(run["raw"], run["sync"]), "ratio", OVER_WRITE, "higher")]
        for what, note in (("async", "blocked in the call"), ("copy", "the peer: memcpy"), ("sync", "blocked in the call"),
                           ("raw", "the peer: pwrite, fsync"), ("durable", "async, until it is committed")):
            figures.append(Figure(f"{name}.{what}", [s * 1e3 / (size / GIB) for s in run[what]], "ms/GiB", note=note))
        figures += [
            Figure(f"{name}.async_rate", [size / 1e6 / s for s in run["durable"]], "MB/s", note="until it is committed"),
            Figure(f"{name}.sync_rate", [size / 1e6 / s for s in run["sync"]], "MB/s"),
            Figure(f"{name}.raw_rate", [size / 1e6 / s for s in run["raw"]], "MB/s", note="the peer"),
            Figure(f"{name}.extra_memory.async", [run["extra_async"] / size], "ratio",
                   note="growth of the peak (VmHWM) over bytes saved"),
            Figure(f"{name}.extra_memory.sync", [run["extra_sync"] / MIB / ranks], "MiB", note="of each rank")]
        self.show(f"Saving, mode {mode}, {ranks} rank(s)", figures)

    # ---- first -----------------------------------------------------------------------------------------------

    def first(self):
        for capture in ("copy", "copy_on_write"):
            self.first_in(self.work, capture, f"first.{capture}", "on storage")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
            self.first_in(Path(memory), "copy", "first.copy.shm", "in /dev/shm")

    def first_in(self, folder, capture, name, where):
        """Each process has one first save: as many launches as there are repetitions of other figures. The kernel makes pages, and
        blocks on storage, for the first two files of ours and of the peer. Which of the two comes first takes turns."""
        blocked, durable, raw = [], [], []
        for launch in range(REPETITIONS):
            run = self.launcher.run(self.ranks, "checkpoint_cost", [
                "--bytes", self.bytes, "--repeat", 1 + LATER, "--name", folder / "first", "--options", f"capture={capture}",
                "--saves", "raw_first" if launch % 2 else "first"], {}, timeout=600)
            for path in folder.glob("first.*"):
                path.unlink()
            blocked.append((run["async"][0], statistics.median(run["async"][1:])))
            for series, of in ((durable, run["durable"]), (raw, run["raw"])):
                series.append((of[0], of[1], statistics.median(of[2:])))

        def ratio(series):
            return [each[0] / each[-1] for each in series]

        def figures_of(what, series, stages, note):
            return [Figure(f"{name}.{what}{stage}", [each[at] * 1e3 / (run["bytes"] / GIB) for each in series], "ms/GiB", note=note)
                    for at, stage in enumerate(stages)]

        self.show(f"The first save of a process, capture={capture}, {where}, {self.ranks} rank(s)", [
            Figure(f"{name}.first_over_later", ratio(blocked), "ratio", FIRST_OVER_LATER, note="blocked in the call"),
            Figure(f"{name}.durable.first_over_later", ratio(durable), "ratio", note="until it is committed"),
            Figure(f"{name}.raw.first_over_later", ratio(raw), "ratio", note="the peer's first file: the kernel's own price"),
            *figures_of("", blocked, ("first", "later"), "blocked"),
            *figures_of("durable.", durable, ("first", "second", "later"), "until it is committed"),
            *figures_of("raw.", raw, ("first", "second", "later"), "the peer: pwrite, fsync")])

    # ---- memory ----------------------------------------------------------------------------------------------

    def memory(self):
        figures = []
        for capture in ("copy", "copy_on_write"):
            arguments = ["--bytes", self.bytes, "--repeat", 2, "--name", self.work / "memory", "--options",
                         f"capture={capture}", "--saves", "first"]
            figures.append(self.launcher.taken(f"memory.{capture}", self.ranks, "checkpoint_cost", arguments, {}))
            self.remove("memory")
        self.show("Memory of the node", figures)

    # ---- rewrite ---------------------------------------------------------------------------------------------

    def rewrite(self):
        notes = {"blocked": "blocked in the call", "part": "cost when 5 % is rewritten", "all": "cost when all is rewritten"}
        for capture in ("copy", "copy_on_write"):
            run = self.cost(1, capture, f"capture={capture}", "--saves", "rewritten")
            self.remove(capture)
            size = run["bytes"]
            bounds = PROTECTED if capture == "copy_on_write" else {}
            figures = [Figure(f"rewrite.{capture}.{what}_over_copy", self.ratios(run[what], run["copy"]), "ratio",
                              bounds.get(what), note=note) for what, note in notes.items()]
            figures += [Figure(f"rewrite.{capture}.{what}", [s * 1e3 / (size / GIB) for s in run[series]], "ms/GiB", note=note)
                        for what, series, note in (("blocked", "blocked", ""), ("copy", "copy", "the peer: memcpy"),
                                                   ("durable", "durable", "until it is committed"))]
            figures.append(Figure(f"rewrite.{capture}.extra_memory", [run["extra_async"] / size], "ratio",
                                  note="growth of the peak (VmHWM) over bytes saved"))
            self.show(f"Saving while the program writes on, capture={capture}, 1 rank", figures)

    # ---- journal ---------------------------------------------------------------------------------------------

    def journal(self):
        run = self.cost(1, "journal", "", "--saves", "journal")
        self.remove("journal")
        figures = []
        for what, name in (("array", "all of the file"), ("number", "8 bytes of it")):
            first, second, raw = (run[f"{series}_{what}"] for series in ("first", "second", "raw"))
            figures += [
                Figure(f"journal.{what}.keep_and_write_over_first", [(r + s) / f for r, s, f in zip(raw, second, first)], "ratio",
                       KEEP_OVER_FIRST, "higher", note=f"{name} written over, the first time after a save"),
                Figure(f"journal.{what}.first", [s * 1e3 for s in first], "ms"),
                Figure(f"journal.{what}.second", [s * 1e3 for s in second], "ms", note="what is kept already"),
                Figure(f"journal.{what}.keep", [s * 1e3 for s in raw], "ms", note="the peer: pread, pwrite, fsync"
                       + (" of 64 KiB" if what == "number" else ""))]
        self.show("Writing over a file that a save has recorded, overwritten=journal, 1 rank", figures)

    # ---- load ------------------------------------------------------------------------------------------------

    def newest(self, name):
        """The file of the copy with the highest generation (docs/formats/checkpoint.md)."""
        def generation(path):
            with open(path, "rb") as file:
                return struct.unpack_from("<q", file.read(128), 24)[0]
        return max((self.work / f"{name}.{slot}" for slot in (0, 1)), key=generation)

    def load(self):
        loaders = [("same", self.ranks), ("half", self.ranks // 2), ("twice", 2 * self.ranks)]
        for mode in MODES:
            self.cost(self.ranks, mode, f"mode={mode}", "--saves", "async")
            figures = []
            for which, ranks in loaders:
                if ranks == 0:
                    continue
                run = self.cost(ranks, mode, f"mode={mode}", "--load", self.newest(mode),
                                "--parts", self.ranks if mode == "local" else 0)
                figures.append(Figure(f"load.{mode}.raw_over_load.{which}", self.ratios(run["raw"], run["load"]), "ratio",
                                      OVER_READ, "higher", f"{self.ranks} saved, {ranks} load"))
                figures += [Figure(f"load.{mode}.{what}_rate.{which}", [run["bytes"] / 1e6 / s for s in run[series]], "MB/s",
                                   note=note) for what, series, note in (("load", "load", ""), ("raw", "raw", "the peer"))]
            self.remove(mode)
            self.show(f"Loading, mode {mode}, page cache warm for both", figures)

    # ---- compress --------------------------------------------------------------------------------------------

    def compress(self):
        figures = []
        for coding in ("none", "lz4", "zstd"):
            run = self.cost(self.ranks, coding, f"compress={coding}", "--saves", "async")
            stored = self.newest(coding).stat().st_blocks * 512
            self.remove(coding)
            figures += [
                Figure(f"compress.{coding}.blocked_over_copy", self.ratios(run["async"], run["copy"]), "ratio"),
                Figure(f"compress.{coding}.rate", [run["bytes"] / 1e6 / s for s in run["durable"]], "MB/s",
                       note="until it is committed"),
                Figure(f"compress.{coding}.stored", [stored / run["bytes"]], "ratio", note="room on storage over bytes")]
        self.show("Compression of a smooth field, parallel mode, asynchronous", figures)


def main():
    parser = bench_parser(__doc__, GROUPS, quick="32 MiB in place of 256 MiB, on one rank", large="4 GiB")
    parser.add_argument("--ranks", type=int, help="that save (default: 1, 2, 4 and 8, and 2 for other groups; 1 with --quick)")
    return CheckpointBench(parser.parse_args()).measure("checkpoint", GROUPS)


if __name__ == "__main__":
    run_main(main)
