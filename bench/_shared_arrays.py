# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The figures of `shared` about elements of global arrays: gathered and scattered on one node, beside a loop that copies by the same
numbers in memory of the rank's own, and between two nodes."""
import re
import statistics
import tempfile

from _bench import Failure, Figure, say
from _nodes import faked_nodes

RANKS = (1, 2, 4)
REPEAT, REPEAT_FAR = 31, 11  # the first is dropped
ELEMENTS, LARGE_ELEMENTS, BATCH = 1_000_000, 10_000_000, 100_000
OVER_PLAIN, MICROSECONDS_FAR = 3, 0.1
# name: (options of the program, the word in the log, who asks)
PROGRESS = {
    "caller": ((), "caller", "owners answer in their own calls"),
    "threads": (("--threads",), "threads", "service threads answer"),
    "asleep": (("--threads", "--alone"), "threads", "one rank asks, the other one sleeps"),
}
NUMBERS = {"all": (), "others": ("--others",)}


class ArraysGroup:
    """`arrays` of the bench."""

    def arrays(self):
        sizes = (ELEMENTS,) if self.args.quick else (ELEMENTS, LARGE_ELEMENTS)
        figures = []
        for elements in sizes:
            for ranks in RANKS:
                answer = self.array_elements(ranks, elements, REPEAT)
                prefix = f"arrays.1_node.{elements * 8 // 1_000_000}_MB.ranks_{ranks}"
                for call in ("gather", "scatter"):
                    ours, plain = answer[f"{call}_processor"], answer[f"plain_{call}_processor"]
                    note = " and ".join(f"{1e9 * statistics.median(each[1:]) / (answer['each'] * ranks):.3g}" for each in (ours, plain))
                    figures += [Figure(f"{prefix}.{call}_over_plain", ratios(answer[call], answer[f"plain_{call}"]), "ratio", OVER_PLAIN),
                                Figure(f"{prefix}.{call}_over_plain.processor", ratios(ours, plain), "ratio",
                                       note=f"{note} ns of processor time an element")]
        self.show(f"Elements of 8 bytes on one node, in random order, {BATCH} a call: time over that of a plain copy", figures)
        self.far_arrays()

    def far_arrays(self):
        faked = faked_nodes(self.launcher, self.work, 2, 1)
        if faked is None:
            say("several nodes on one machine: neither MPICH nor root with Open MPI; left out")
            return
        _, flags, environment = faked
        figures = []
        for progress, (options, word, about) in PROGRESS.items():
            for numbers, more in NUMBERS.items():
                answer = self.array_elements(2, ELEMENTS, REPEAT_FAR, (*options, *more), flags, environment, word)
                if "--threads" in options and not answer["threads"]:
                    say(f"  {progress}: this MPI does not provide MPI_THREAD_MULTIPLE; left out")
                    break
                note = f"{about}; {'all elements' if numbers == 'all' else 'elements of the other node alone'}"
                figures += [Figure(f"arrays.2_nodes.{progress}.{numbers}.{name}",
                                   [1e6 * seconds / answer["each"] for seconds in answer[name][1:]], "us", MICROSECONDS_FAR, note=note)
                            for name in ("gather", "scatter_synced")]
        self.show(f"The same between two faked nodes of one rank each, {ELEMENTS} elements: microseconds an element; scatters until a sync "
                  "has ended", figures)

    def array_elements(self, ranks, elements, repeat, options=(), flags=(), environment=None, progress=None):
        """What the program printed. With `progress`, the library says that other nodes are answered so."""
        arguments = ["--elements", elements, "--batch", BATCH, "--repeat", repeat, *options]
        with tempfile.TemporaryFile("w+") as errors:
            try:
                answer = self.launcher.run(ranks, "array_elements", arguments, {"LOG": "info"}, environment=environment, errors=errors, flags=flags)
            except Failure as failure:
                raise Failure(f"{failure}; {last_line(errors)}") from None
            errors.seek(0)
            found = re.findall(r"progress=(\w+) \(", errors.read())
        if progress is not None and answer["threads"] == ("--threads" in options) and found != [progress]:
            raise Failure(f"array_elements {' '.join(options)}: progress is {found or 'not told'}, not {progress}: were there several nodes?")
        return answer


def ratios(ours, theirs):
    return [one / other for one, other in zip(ours[1:], theirs[1:])]


def last_line(errors):
    errors.seek(0)
    return next((line for line in reversed(errors.read().splitlines()) if "bench:" in line or "tailrace: " in line), "it said nothing")
