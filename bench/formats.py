#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What steps of a stream cost in each format, from the first put of four until the last is durable, against peers that write as many bytes in the same run:

  storage   one process that writes the bytes of a step by pwrite of 16 MiB and fsync; for cdf5 also PnetCDF on the compute ranks
            (CDF-5, ncmpi_put_vara_float_all, ncmpi_sync; the better of collective buffering on and off), with each MPI-IO of the MPI
  cache     the same on a file system in memory (/dev/shm), where fsync costs nothing: what the library itself takes

`./dev bench formats` builds and calls this. Medians of at least five, the first step dropped, with the lowest and the highest; the exit
code is 1 if a bound was missed.
"""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from _bench import MIB, Bench, Figure, bench_parser, run_main, say  # noqa: E402

GROUPS = ("storage", "cache")
# Compute ranks and servers: beside the model, two of them, and without any.
JOBS = ((1, 1), (1, 2), (1, 0), (2, 0))
OVER_PLAIN, OVER_PNETCDF = 0.85, 1.3
LAYERS = {"ompio": {"OMPI_MCA_io": "ompio"}, "romio": {"OMPI_MCA_io": "romio321"}}


class FormatsBench(Bench):
    def __init__(self, args):
        super().__init__(args)
        self.size, self.levels = (500, 20) if args.quick else (2000, 10) if args.large else (1000, 10)
        self.steps = 9 if not args.quick and not args.large else 6
        say(f"steps of {self.size ** 2 * self.levels * 4 / MIB:.0f} MiB")

    def storage(self):
        self.jobs("storage", self.work)

    def cache(self):
        with tempfile.TemporaryDirectory(prefix="tailrace-bench-", dir="/dev/shm") as directory:
            self.jobs("cache", Path(directory))

    def jobs(self, group, directory):
        for format in ("raw", "cdf5"):
            for ranks, servers in JOBS:
                self.job(f"{group}.{format}.n{ranks}s{servers}", directory, format, ranks, servers)

    def job(self, name, directory, format, ranks, servers):
        layers = LAYERS if format == "cdf5" and self.launcher.openmpi else {"": {}}
        figures = []
        for layer, environment in layers.items():
            run = self.launcher.run(ranks + servers, "format_rate", [
                "--format", format, "--size", self.size, "--levels", self.levels, "--steps", self.steps, "--name",
                directory / "rate"], {"servers": servers}, environment=environment, timeout=1200)
            for left in directory.glob("rate.*"):
                left.unlink()
            ours, plain = run["ours"][1:], run["plain"][1:]
            if not figures:
                figures += [Figure(f"{name}.plain_over_ours", [p / o for p, o in zip(plain, ours)], "ratio", OVER_PLAIN, "higher"),
                            Figure(f"{name}.rate", [run["bytes"] / 1e6 / o for o in ours], "MB/s", note="until durable"),
                            Figure(f"{name}.plain_rate", [run["bytes"] / 1e6 / p for p in plain], "MB/s", note="the peer")]
            if format == "cdf5" and "direct" in run:
                best = min(run["direct"][1:], run["buffered"][1:], key=sum)
                figures.append(Figure(f"{name}.pnetcdf_over_ours.{layer}", [b / o for b, o in zip(best, ours)], "ratio", OVER_PNETCDF,
                                      "higher", note="with" if best == run["buffered"][1:] else "without collective buffering"))
        self.show(f"{name}: {ranks} compute rank(s), {servers} server(s)", figures)


def main():
    parser = bench_parser(__doc__, GROUPS, quick="steps of 19 MiB", large="steps of 153 MiB, which take 15 GB")
    args = parser.parse_args()
    return FormatsBench(args).measure("formats", GROUPS)


if __name__ == "__main__":
    run_main(main)
