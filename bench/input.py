#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What reading costs.

  decode    all records of a GRIB2 file, read and decoded by as many threads as there are cores, and by one: our decoders against a bare
            loop over ecCodes (pread, codes_handle_new_from_message, codes_get_double_array) on the same threads, in turn
  first     seconds until a new process has one field of 48 files of 120 messages (--quick: 12 files), and then a field of the last file: ours with and
            without kept inventories, against ecCodes with an index of each file, with one of all files, and without; on 1 and 4 ranks
  nodes     how often each record is read and decoded, on one node and on three
  model     a nested forecast (examples/weather) whose boundary files are read ahead, or when it asks for them, over the same forecast
            with its boundaries in memory; reading a file takes 0.6 of the computing between two of them, by a throttle. Needs cdo

`./dev bench input` builds and calls this. Medians of at least five, the first turn dropped, with the lowest and the highest; the exit
code is 1 if a bound was missed.
"""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from _bench import Bench, Figure, bench_parser, run_main, say  # noqa: E402
from _eccodes import newest_eccodes  # noqa: E402
from _input_first import FirstGroup  # noqa: E402
from _input_model import ModelGroup  # noqa: E402

GROUPS = ("decode", "first", "nodes", "model")
PACKINGS = (("simple", 16), ("simple", 12), ("simple", 24), ("ccsds", 16), ("ccsds", 12), ("ccsds", 24), ("complex", 16))
DECODE_BOUNDS = dict(simple=0.9, ccsds=2, complex=0.9)


class InputBench(FirstGroup, ModelGroup, Bench):
    def decode(self):
        size, records = (500, 40) if self.args.quick else (2000, 20) if self.args.large else (1000, 40)
        say(f"records of {size} x {size} points, {records} in the file, which is in the page cache")
        cores = len(os.sched_getaffinity(0))
        figures, newest = [], newest_eccodes()
        for packing, bits in PACKINGS:
            for threads in sorted({1, cores}):
                run = self.launcher.run(1, "input_decode", ["--path", self.work / "decode.grib", "--size", size, "--records", records,
                                                            "--packing", f"grid_{packing}", "--bits", bits, "--threads", threads, *newest], {})
                name = f"decode.{packing}{bits}.threads{threads}"
                for peer, version in (("eccodes", run["version"]), ("newest", run.get("newest_version"))):
                    if version is None:
                        continue
                    for kind in ("f64", "f32"):
                        ratios = [theirs / ours for theirs, ours in zip(run[peer][1:], run[kind][1:])]
                        figures.append(Figure(f"{name}.ours_over_{peer}.{kind}", ratios, "ratio", DECODE_BOUNDS[packing], "higher"))
                    rates = [run["values"] * 8 / 1e6 / seconds for seconds in run[peer][1:]]
                    figures.append(Figure(f"{name}.{peer}", rates, "MB/s", note=f"of float64, the peer {version}"))
        self.show("Reading and decoding a file, against a loop over ecCodes", figures)


def main():
    parser = bench_parser(__doc__, GROUPS, quick="500 x 500 points: some seconds", large="2000 x 2000 points")
    parser.add_argument("--charts", type=Path, default=Path("out/bench"), metavar="DIR", help="for the charts of first (out/bench)")
    return InputBench(parser.parse_args()).measure("input", GROUPS)


if __name__ == "__main__":
    run_main(main)
