#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The demo's page says beside its figures what they are to be compared with and what disturbed them, and its map leaves
out the rim that the model holds to its boundary values."""
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(os.environ["TEST_SOURCE"]) / "examples" / "weather"))
import demo  # noqa: E402
import make_page  # noqa: E402


def run(name, servers, **figures):
    every = {key: 0.5 for _, key in make_page.TABLE}
    return {"name": name, "title": name, "servers": servers, "bytes": 1e6, "files": 17, "others_share": 0.0, **every, **figures}


def summary(*runs, remarks=(), form="grib2"):
    return {"runs": list(runs), "remarks": list(remarks), "format": form}


class Tiles(unittest.TestCase):
    def test_the_forecast_that_writes_nothing_stands_beside_the_others(self):
        tiles = make_page.tiles_html(summary(run("no output", None, total_seconds=5.9), run("inline", 0, total_seconds=13.4),
                                             run("1 server", 1, total_seconds=15.7, forecast_seconds=8.2,
                                                 blocked_in_steps_seconds=0.25)))
        for text in ("5.90 s", "13.40 s", "15.70 s", "last step after 8.20 s, 0.25 s of it waiting for output", "17 identical"):
            self.assertIn(text, tiles)

    def test_there_are_tiles_without_servers(self):
        self.assertIn("inline", make_page.tiles_html(summary(run("no output", None), run("inline", 0))))


class Remarks(unittest.TestCase):
    quiet = [run("no output", None, step_median_seconds=0.0010), run("inline", 0, step_median_seconds=0.0011)]

    def test_a_quiet_machine_with_cores_for_all_needs_none(self):
        self.assertEqual(demo.remarks(2, [1, 2], 4, self.quiet), [])

    def test_shared_cores_are_named(self):
        (said,) = demo.remarks(2, [1, 2], 2, self.quiet)
        self.assertIn("2 ranks and their servers share 2 cores", said)
        self.assertEqual(demo.remarks(4, [], 2, self.quiet), ["4 ranks share 2 cores here."])

    def test_other_programs_on_the_cores_are_named(self):
        busy = [dict(self.quiet[0], others_share=0.31), self.quiet[1]]
        (said,) = demo.remarks(1, [], 2, busy)
        self.assertIn("31 %", said)

    def test_steps_that_got_slower_from_run_to_run_are_named(self):
        slower = [self.quiet[0], dict(self.quiet[1], step_median_seconds=0.0023)]
        (said,) = demo.remarks(1, [], 2, slower)
        self.assertIn("1.0 ms", said)
        self.assertIn("2.3 ms", said)

    def test_figures_that_the_system_does_not_tell_are_passed_over(self):
        unknown = [dict(each, others_share=None, step_median_seconds=None) for each in self.quiet]
        self.assertEqual(demo.remarks(1, [], 2, unknown), [])

    def test_they_stand_on_the_page(self):
        self.assertIn("<li>a &amp; b</li>", make_page.remarks_html(summary(remarks=["a & b"])))
        self.assertEqual(make_page.remarks_html(summary()), "")


class BusyTicks(unittest.TestCase):
    stat = ("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 4 1000 2000 8 16 32 0 0\ncpu1 100 0 0 0 0 0 0 0 0 0\n"
            "cpu10 7 0 0 0 0 0 0 0 0 0\nctxt 5\n")

    def test_all_but_idle_and_waiting_counts_and_what_a_hypervisor_took_too(self):
        self.assertEqual(demo.busy_ticks(self.stat, {0}), 63)

    def test_only_the_cores_on_which_we_may_run_count(self):
        self.assertEqual(demo.busy_ticks(self.stat, {1}), 100)
        self.assertEqual(demo.busy_ticks(self.stat, {1, 10}), 107)


class Rim(unittest.TestCase):
    def test_the_map_leaves_it_out(self):
        nx, ny = 60, 70
        packer = make_page.Packer(nx, ny, make_page.rim_of(nx, ny), 3, Path("scratch"))
        numbers = [j * nx + i for j in range(ny) for i in range(nx)]
        kept = list(packer.thin(numbers))
        self.assertEqual(kept, [j * nx + i for j in range(10, ny - 10, 3) for i in range(10, nx - 10, 3)])
        self.assertEqual(len(kept), len(packer.rows) * len(packer.columns))

    def test_a_small_grid_is_shown_whole(self):
        self.assertEqual(make_page.rim_of(24, 100), 0)


if __name__ == "__main__":
    unittest.main()
