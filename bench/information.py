#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What accuracy=auto costs: finding the bits of a record that carry information, beside encoding it.

  counting  nanoseconds of processor time a value on one thread: the pairs of neighbours of a record in memory, float32 and float64, in each way that
            this processor has
  choosing  the same until the number of bits is known (float32), also of records whose neighbours are often equal: a fifth of each row is one
            value, or all are multiples of a coarse step, in rows of 1000 and of 3
  encoding  records of float32 in GRIB2 (simple and CCSDS packing), NetCDF-4 and Zarr, with accuracy=auto and without (16 bits, or all), in turn: the
            ratio of both, and how many times smaller the record becomes

`./dev bench information` builds and calls this. Medians of at least five, the first turn dropped, with the lowest and the highest; the exit
code is 1 if a bound was missed.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from _bench import Bench, Figure, bench_parser, run_main, say  # noqa: E402

GROUPS = ("counting", "choosing", "encoding")
WAYS = ("avx512", "avx2", "portable")  # the fastest first
BOUND = 1.5  # nanoseconds a float32 value


class InformationBench(Bench):
    def measured(self):
        rows = 250 if self.args.quick else 4000 if self.args.large else 1000
        say(f"{rows} rows of 1000 values, one thread")
        return self.launcher.run(1, "information_rate", ["--rows", rows], {})

    def counting(self):
        run = self.measured()
        best = next(way for way in WAYS if run[f"float32.{way}"])
        figures = []
        for kind in ("float32", "float64"):
            for way in WAYS:
                if run[f"{kind}.{way}"]:
                    figures.append(Figure(f"counting.{kind}.{way}", [second * 1e9 / run["values"] for second in run[f"{kind}.{way}"][1:]],
                                          "ns", BOUND if (kind, way) == ("float32", best) else None))
        self.show("Counting the pairs of neighbours, a value", figures)

    def choosing(self):
        run = self.measured()
        self.show("Choosing the number of bits, a value", [
            Figure(f"choosing.{kind}", [second * 1e9 / run["values"] for second in run[f"choosing.{kind}"][1:]], "ns")
            for kind in ("waves", "area", "steps", "short_rows")])

    def encoding(self):
        run = self.measured()
        figures = []
        for name in ("simple", "ccsds", "netcdf4", "zarr"):
            if f"{name}.auto" not in run:
                continue
            auto, whole = run[f"{name}.auto"][1:], run[f"{name}.whole"][1:]
            smaller = run[f"{name}.whole.bytes"] / run[f"{name}.auto.bytes"]
            figures.append(Figure(f"encoding.{name}.auto_over_whole", [one / other for one, other in zip(auto, whole)], "ratio",
                                  note=f"{run[f'{name}.auto.kept']} bits kept, {smaller:.2f} times smaller"))
            figures.append(Figure(f"encoding.{name}.auto", [second * 1e9 / run["values"] for second in auto], "ns"))
            figures.append(Figure(f"encoding.{name}.whole", [second * 1e9 / run["values"] for second in whole], "ns"))
        self.show("Encoding a record with accuracy=auto, against encoding it without, a value", figures)


def main():
    parser = bench_parser(__doc__, GROUPS, quick="250,000 values", large="4 million values")
    return InformationBench(parser.parse_args()).measure("information", GROUPS)


if __name__ == "__main__":
    run_main(main)
