#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What saving costs the Jacobi iteration (examples/jacobi), in every mode, on a disk that sleeping slows to a stated rate;
every save goes to a new file.

  modes   computing, time blocked in saves, and of that a plain copy of the array; asynchronous modes against that copy,
          where computing takes longer than the disk
  total   the whole run of asynchronous modes against the longer of computing and bytes/rate, with either being the longer

`./dev bench jacobi` builds and calls this. Medians of at least five, the first repetition dropped, with the lowest and the
highest; the exit code is 1 if a bound was missed.
"""
import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from _bench import MIB, Bench, Failure, Figure, bench_parser, first_line_of, run_main, say  # noqa: E402

GROUPS = ("modes", "total")
MODES = ("old", "parallel", "local", "async-local", "async-parallel")
CAPTURE_BOUND, TOTAL_BOUND = 1.1, 1.05
FAST, SLOW = 0.7, 2.5             # how long the disk takes for a save, in units of the computing between two saves
COPY_ROOM = 256 * MIB             # of each rank, with which the program measures a plain copy


class JacobiBench(Bench):
    def __init__(self, args):
        super().__init__(args)
        self.points = args.size or (32000 if args.large else 2000 if args.quick else 4000)
        self.ranks = args.ranks or min(len(os.sched_getaffinity(0)), 4)
        self.bytes = 8 * self.points ** 2
        self.captures = self.room_for_captures()
        self.interval = None

    def room_for_captures(self):
        """Memory for what is captured and not written yet: a whole save, or what the machine has."""
        available = int(first_line_of("/proc/meminfo", r"^MemAvailable:\s*(\d+)", "0")) * 1024
        left = available - 2 * self.bytes - self.ranks * min(COPY_ROOM, self.bytes // self.ranks) - 512 * MIB
        if left < 512 * MIB:
            raise Failure(f"{self.points} x {self.points} points on this machine: {available / 1e9:.1f} GB of memory are free, "
                          f"two arrays take {2 * self.bytes / 1e9:.1f}; give a smaller --size")
        wanted = self.bytes + self.bytes // 4 + 64 * MIB
        # Not all that is left: files that were not written back yet are memory too.
        return min(wanted, left // 2)

    @property
    def captures_fit(self):
        return self.captures >= self.bytes

    def jacobi(self, mode, iterations, rate=None, save_every=10):
        is_local = mode.endswith("local")
        shares = self.ranks if is_local else 1     # local files: each rank has a disk and a buffer of its own
        settings = dict(io_buffer=self.captures // shares, aggregators=1)
        if rate:
            settings["throttle"] = f"{rate / shares / 1e6:.3f}MB/s"
        run = self.launcher.run(self.ranks, "jacobi_c", ["--size", self.points, "--iterations", iterations,
                                                         "--save-every", save_every, "--mode", mode, "--json",
                                                         "--keep", "--out", self.work], settings, timeout=7200)
        for left in self.work.glob("jacobi_*"):
            left.unlink()
        return run

    def rate(self, share):
        """Bytes a second at which the disk takes `share` of the computing between two saves for one."""
        if self.interval is None:
            iterations = 20 if self.args.large else 40
            self.interval = self.jacobi("old", iterations, save_every=0)["compute"] / iterations * 10
        return self.bytes / (share * self.interval)

    def state(self, name, rate):
        say(f"\n{name}: {self.points} x {self.points} points, {self.ranks} ranks, {self.bytes / 1e6:.1f} MB every 10 iterations, "
            f"disk slowed to {rate / 1e6:.1f} MB/s ({self.bytes / rate:.3f} s a save; {self.interval:.3f} s of computing), "
            f"{self.captures / MIB:.0f} MiB for captures")
        if not self.captures_fit:
            say("  a save does not fit into the memory that is left: no bounds hold")

    # ---- modes -----------------------------------------------------------------------------------------------

    def modes(self):
        rate = self.rate(FAST)
        self.state("modes", rate)
        say(f"  {'mode':<16}{'whole run':>10}{'computing':>11}{'blocked':>9}{'of which copy':>15}{'last saves':>12}  seconds")
        runs = {}
        for mode in MODES:
            run = runs[mode] = self.jacobi(mode, 60 if self.args.quick else 100, rate)
            say(f"  {mode:<16}{run['total']:>10.3f}{run['compute']:>11.3f}{sum(run['blocked']):>9.3f}{sum(run['copy']):>15.3f}"
                f"{run['last']:>12.3f}")
        if len({run["change"] for run in runs.values()}) > 1:
            raise Failure("the modes computed different numbers")
        figures = []
        for mode, run in runs.items():
            is_async = mode.startswith("async")
            copies, blocked = run["copy"][1:], run["blocked"][1:]
            copy = statistics.median(copies)
            figures.append(Figure(f"modes.blocked_over_copy.{mode}", [b / copy for b in blocked], "ratio",
                                  CAPTURE_BOUND if is_async and self.captures_fit else None, note="for each save"))
            figures.append(Figure(f"modes.copy.{mode}", [c * 1e3 for c in copies], "ms", note="the peer"))
        self.show("Time blocked in a save, against a plain copy of the array", figures)

    # ---- total -----------------------------------------------------------------------------------------------

    def total(self):
        figures = []
        for name, share in (("compute_bound", FAST), ("disk_bound", SLOW)):
            rate = self.rate(share)
            self.state(f"total, {name}", rate)
            values = {mode: [] for mode in MODES if mode.startswith("async")}
            for _ in range(6):
                for mode, list_of in values.items():
                    list_of.append(self.over_longer(self.jacobi(mode, 30 if self.args.quick else 60, rate), rate))
            figures += [Figure(f"total.{name}.{mode}", list_of[1:], "ratio", TOTAL_BOUND if self.captures_fit else None,
                               note="(total - last drain - captures) / max(compute, bytes/rate)")
                        for mode, list_of in values.items()]
        self.show("The whole run, against the longer of computing and the disk", figures)

    def over_longer(self, run, rate):
        copies = sum(run["copy"])         # once measured, which is computing here, and once for capturing
        disk = len(run["blocked"]) * self.bytes / rate
        return (run["total"] - self.bytes / rate - copies) / max(run["compute"] + copies, disk)


def main():
    parser = bench_parser(__doc__, GROUPS, quick="2000 x 2000 points and few saves: about a minute",
                          large="32000 x 32000 points, which take 17 GB and 10 more for captures")
    parser.add_argument("--size", type=int, help="points along each side (default: 4000)")
    parser.add_argument("--ranks", type=int, help="default: as many as cores, at most 4")
    args = parser.parse_args()
    # The largest size would take hours in the second group, which says nothing about size.
    return JacobiBench(args).measure("jacobi", GROUPS[:1] if args.large else GROUPS)


if __name__ == "__main__":
    run_main(main)
