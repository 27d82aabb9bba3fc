# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The figures of `input` about a model: the nested forecast of examples/weather, whose boundary files lie on storage that sleeping slows
so that reading one takes SHARE of the computing between two of them."""
import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "weather"))
import demo  # noqa: E402
from _bench import Failure, Figure, say  # noqa: E402
from nested import Pair  # noqa: E402

SHARE = 0.6
AHEAD_BOUND, AT_ONCE_BOUND = 1.03, 1.3
EVERY, RANKS, FIELDS = 3, 1, 3
WAYS = {"memory": (["--boundaries-in-memory"], {}), "ahead": ([], {}), "at_once": (["--prefetch", "0"], {"IO_THREADS": 0})}


class ModelGroup:
    """`model` of the bench. In its first minutes a forecast waits for the first two files however it reads; they are told apart."""

    def model(self):
        args = self.args
        size, hours = ("96x78", 24) if args.quick else ("312x252", 24) if args.large else ("156x126", 24)
        try:
            pair = Pair(demo.Launcher(args.build), self.work, size, 1, hours, EVERY)
            demo.require_programs(demo.formats.FORMATS["grib2"])
            pair.make_terrain()
            files = pair.make_boundaries()
        except demo.Failure as failure:
            raise Failure(str(failure)) from failure
        first = self.nested_run(pair, "memory")
        interval = sum(first["steps"]) * EVERY / hours
        file_bytes = max(path.stat().st_size for path in pair.boundaries.glob("*.grib2"))
        rate = file_bytes / (SHARE * interval)
        say(f"nested forecast of {size} points, {hours} hours in steps of {first['time_step']} s on {RANKS} rank; {files} boundary files of "
            f"{file_bytes / 1e3:.0f} kB, {interval:.2f} s of computing between two, storage at {rate / 1e3:.0f} kB/s")
        taken = {way: [] for way in WAYS}
        for repetition in range(4 if args.quick else 6):
            answers = {way: self.nested_run(pair, way, rate) for way in WAYS}
            for way, answer in answers.items():
                if repetition > 0:
                    taken[way].append(answer)
        self.show("a model and its boundary files", list(self.model_figures(taken)))

    def nested_run(self, pair, way, rate=None):
        more, settings = WAYS[way]
        if rate and way != "memory":
            settings = dict(settings, THROTTLE=f"{rate / 1e3:.3f}kB/s,reads")
        try:
            _, timings, report = pair.run_inner(way, "--no-output", *more, ranks=RANKS, settings=settings)
        except demo.Failure as failure:
            raise Failure(str(failure)) from failure
        start = 3600 // timings["time_step"]
        inputs = [stream["input"] for stream in report["streams"] if "input" in stream]
        if len(inputs) != 1:
            raise Failure(f"the report names {len(inputs)} streams that are read instead of one")
        return {"steps": timings["step_seconds"][start:], "time_step": timings["time_step"],
                "first": sum(timings["step_seconds"][:start]) - start * statistics.median(timings["step_seconds"]),
                "late": inputs[0]["gets_late"]}

    @staticmethod
    def model_figures(taken):
        def over_memory(way):
            return [sum(one["steps"]) / sum(memory["steps"]) for one, memory in zip(taken[way], taken["memory"])]
        yield Figure("read ahead / in memory", over_memory("ahead"), "", AHEAD_BOUND, note="from the second hour on")
        yield Figure("read when asked for / in memory", over_memory("at_once"), "", AT_ONCE_BOUND, "higher",
                     note="prefetch=0, no I/O threads")
        # Both files around the first ten minutes are late: nobody knew of them before.
        yield Figure("late gets behind the first two files", [max(0, one["late"] - 2 * FIELDS * RANKS) for one in taken["ahead"]], "", 0)
        yield Figure("wait for the first two files", [one["first"] for one in taken["ahead"]], "s")
        yield Figure("the same, read when asked for", [one["first"] for one in taken["at_once"]], "s")
