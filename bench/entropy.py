#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""What the entropy coder of CCSDS packing costs, beside libaec.

  coder     nanoseconds of processor time a value on one thread, from codes in memory to the compressed stream and back, for codes of 12, 16 and 24 bits whose
            differences have 3, 6 and 9 bits: ours in each way that this processor has, and libaec, in turn

`./dev bench entropy` builds and calls this. Medians of at least five, the first turn dropped, with the lowest and the highest; the exit
code is 1 if a bound was missed.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from _bench import Bench, Figure, bench_parser, run_main, say  # noqa: E402

GROUPS = ("coder",)
BITS = (12, 16, 24)
NOISES = (3, 6, 9)
WAYS = ("avx512", "avx2", "portable")  # the fastest first
BOUNDS = {"encode": 2.5, "decode": 2}


class EntropyBench(Bench):
    def coder(self):
        values = 100_000 if self.args.quick else 10_000_000 if self.args.large else 1_000_000
        say(f"{values} values, one thread, blocks of 32 and intervals of 128 blocks as ecCodes writes")
        figures = []
        for bits in BITS:
            for noise in NOISES:
                run = self.launcher.run(1, "entropy_rate", ["--values", values, "--bits", bits, "--noise", noise], {})
                figures += self.of_run(run, f"coder.bits_{bits}.noise_{noise}")
        self.show("The entropy coder, against libaec", figures)

    def of_run(self, run, name):
        found, theirs = [], {work: run[f"libaec.{work}"][1:] for work in BOUNDS}
        best = next(way for way in WAYS if run[f"{way}.encode"])
        for work, bound in BOUNDS.items():
            ours = run[f"{best}.{work}"][1:]
            if theirs[work]:
                found.append(Figure(f"{name}.ours_over_libaec.{work}", [their / our for their, our in zip(theirs[work], ours)], "ratio",
                                    bound, "higher", note=f"{run['bits_a_value']:.1f} bits a value"))
                found.append(Figure(f"{name}.libaec.{work}", [second * 1e9 / run["values"] for second in theirs[work]], "ns a value"))
            for way in WAYS:
                seconds = run[f"{way}.{work}"][1:]
                if seconds:
                    found.append(Figure(f"{name}.{way}.{work}", [second * 1e9 / run["values"] for second in seconds], "ns a value"))
        return found


def main():
    parser = bench_parser(__doc__, GROUPS, quick="100,000 values", large="10 million values")
    return EntropyBench(parser.parse_args()).measure("entropy", GROUPS)


if __name__ == "__main__":
    run_main(main)
