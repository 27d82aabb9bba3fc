#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Each rule of the advice speaks at its threshold, and is silent below it."""
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from reports import Files, both, compute, reading, report, server, spread, stamp, stream, tailrace  # noqa: E402


def ranks(count=4, **routines):
    return [compute(rank, **routines) for rank in range(count)]


def busy(rank=4, **more):
    """A server that no rule speaks of."""
    return server(rank, own={"assemble": 60.0}, **more)


class Advice(Files, unittest.TestCase):
    def speaks(self, rule, at, below):
        """Returns the advice of the first report. The second must have none of the rule."""
        self.assertNotIn(rule, self.advice(below))
        told = self.advice(at)
        self.assertIn(rule, told)
        return told[rule]

    def test_a_run_without_faults_has_none_and_says_so(self):
        self.assertEqual(self.advice(report()), {})
        self.assertIn("Nothing to advise", self.show(report()))

    def test_room_in_staging(self):
        small = [stream(bytes_staged_per_step=640_000_000)]
        got = self.speaks("staging", report(ranks(staging_full=1.0) + [busy()], small), report(ranks(staging_full=0.99) + [busy()], small))
        self.assertEqual(got["text"], "Ranks waited 1.00 s each (1.0 % of their time) for room in staging: 512MiB on a node hold 0.6 steps; set TAILRACE_STAGING=1.5GiB.")
        self.assertEqual(got["set"], "TAILRACE_STAGING=1.5GiB")

    def test_staging_that_holds_enough_steps_is_not_to_grow(self):
        for_captures = (512 << 20) * 3 // 4
        waits = ranks(staging_full=12.0) + [busy()]
        below = self.advice(report(waits, [stream(bytes_staged_per_step=for_captures / 1.49)]))["staging"]
        at = self.advice(report(waits, [stream(bytes_staged_per_step=for_captures / 1.5)]))["staging"]
        self.assertIn("set", below)
        self.assertNotIn("set", at)
        self.assertIn("the servers do not keep up", at["text"])

    def test_staging_without_its_size_is_still_named(self):
        told = report(ranks(staging_full=12.0) + [busy()])
        del told["staging_bytes"]
        self.assertIn("set a larger TAILRACE_STAGING", self.advice(told)["staging"]["text"])

    def test_the_nodes_of_a_job_have_staging_each(self):
        waits = ranks(staging_full=12.0) + [busy()]
        one = self.advice(report(waits, [stream(bytes_staged_per_step=1_000_000_000)], nodes=1))["staging"]["set"]
        four = self.advice(report(waits, [stream(bytes_staged_per_step=4_000_000_000)], nodes=4))["staging"]["set"]
        self.assertEqual(one, four)

    def test_the_encoder(self):
        got = self.speaks("encoder", report(ranks() + [busy(encode=130.0, assemble=10.0)]), report(ranks() + [busy(encode=129.0, assemble=10.0)]))
        self.assertIn("close to the limit", got["text"])
        self.assertIn("More servers (2 in place of 1)", got["text"])
        self.assertIn("the threads that encode spent 70 % of their time", got["text"])
        self.assertIn("The encoder is the limit: ", self.advice(report(ranks(staging_full=5.0) + [busy(encode=140.0)]))["encoder"]["text"])

    def test_threads_that_only_write_do_not_make_the_encoder_look_idle(self):
        self.speaks("encoder", report(ranks() + [server(4, encoders=1, storage=2, encode=69.0, assemble=1.0)]),
                    report(ranks() + [server(4, encoders=1, storage=2, encode=68.0, assemble=1.0)]))
        self.assertNotIn("idle_servers", self.advice(report(ranks() + [server(rank, encoders=1, storage=2, encode=60.0) for rank in (4, 5)])))

    def test_without_the_number_of_encoders_all_threads_count(self):
        def run(seconds):
            told = server(4, encoders=1, storage=1, encode=seconds)
            del told["encoders"]
            return report(ranks() + [told])
        self.speaks("encoder", run(140.0), run(139.0))

    def test_storage(self):
        got = self.speaks("storage", report(ranks() + [busy(write=30.0, fsync=20.0)]), report(ranks() + [busy(write=29.0, fsync=20.0)]))
        self.assertIn("servers waited 50 % of their time for it, at 20.0 MB/s over the run", got["text"])
        self.assertIn("more servers do not help", got["text"])
        self.speaks("storage", report(ranks() + [busy(write=30.0, commit=20.0)]), report(ranks() + [busy(write=30.0, commit=19.0)]))
        self.speaks("storage", report(ranks() + [busy(write=30.0, wait=20.0)]), report(ranks() + [busy(write=30.0, wait=19.0)]))
        self.speaks("storage", report(ranks() + [server(4, own={"wait_for_storage": 50.0})]), report(ranks() + [server(4, own={"wait_for_storage": 49.0})]))

    def test_one_writer(self):
        def run(method, seconds, **more):
            told = stream(method=method, servers={"write_seconds": spread(seconds, 1), "fsync_seconds": spread(0.0, 1), **more})
            return report(ranks() + [busy(4), busy(5)], [told])
        for method in ("writer", "writer_aio"):
            got = self.speaks("one_writer", run(method, 50.0), run(method, 49.0))
            self.assertIn(f"One writer (method={method}) saturates: of 2 servers one alone writes \"fc.grib2\"", got["text"])
            self.assertEqual(got["set"], "method=scan")
        self.assertNotIn("one_writer", self.advice(run("scan", 90.0)))
        # One that also encodes, on two threads.
        self.speaks("one_writer", run("serial", 10.0, encode_seconds=spread(79.0, 1)), run("serial", 10.0, encode_seconds=spread(78.0, 1)))
        self.assertNotIn("one_writer", self.advice(run("writer", 10.0, encode_seconds=spread(78.0, 1))))

    def test_one_writer_that_the_file_system_asks_for_is_not_to_become_scan(self):
        told = stream(method="writer", method_chosen="FUSE", servers={"write_seconds": spread(60.0, 1)})
        got = self.advice(report(ranks() + [busy(4), busy(5)], [told]))["one_writer"]
        self.assertNotIn("set", got)
        self.assertIn("cut the stream into several files", got["text"])

    def test_idle_servers(self):
        def run(share, **more):
            return report(ranks(**more) + [server(4, own={"assemble": 100 * share}), server(5, own={"assemble": 100 * share})])
        self.assertEqual(self.advice(run(0.29))["idle_servers"]["text"], "2 servers were idle 71 % of the time: 1 is enough; set TAILRACE_SERVERS=1.")
        self.speaks("idle_servers", run(0.35), run(0.36))  # one server is to be busy for 70 % at most
        self.assertNotIn("idle_servers", self.advice(run(0.29, staging_full=2.0)), "ranks that wait need their servers")
        self.assertNotIn("idle_servers", self.advice(report(ranks() + [server(4)])), "there is one server")
        three = [server(rank, own={"assemble": 50.0}) for rank in (4, 5, 6, 7)]
        more = [server(rank, own={"assemble": 50.1}) for rank in (4, 5, 6, 7)]
        self.assertIn("3 are enough", self.speaks("idle_servers", report(ranks() + three), report(ranks() + more))["text"])

    def test_idle_servers_are_not_judged_too_early_or_from_some_of_them(self):
        lazy = [server(4, own={"assemble": 20.0}), server(5, own={"assemble": 20.0})]
        self.assertIn("idle_servers", self.advice(report(ranks() + lazy)))
        self.assertNotIn("idle_servers", self.advice(report(ranks() + lazy, servers=3)), "one has told nothing")
        self.assertNotIn("idle_servers", self.advice(report(ranks() + lazy, [stream(bytes_written=0)])))
        self.assertNotIn("idle_servers", self.advice(report(ranks() + lazy, state="failed")))
        young = {"state": "running", "written": stamp(), "elapsed_seconds": 4.9}
        self.assertNotIn("idle_servers", self.advice(report(ranks() + lazy, [stream(durable_steps=1)], **young)))
        self.assertIn("idle_servers", self.advice(report(ranks() + lazy, [stream(durable_steps=2)], **young)))
        self.assertIn("idle_servers", self.advice(report(ranks() + lazy, [stream(durable_steps=1)], **{**young, "elapsed_seconds": 5.0})))

    def test_servers_whose_threads_work_are_not_idle(self):
        self.assertNotIn("idle_servers", self.advice(report(ranks() + [server(4, encode=120.0), server(5, encode=120.0)])))

    def test_a_node_keeps_a_server(self):
        lazy = [server(rank, own={"assemble": 5.0}) for rank in range(4, 8)]
        self.assertEqual(self.advice(report(ranks() + lazy, nodes=2))["idle_servers"]["set"], "TAILRACE_SERVERS=node:1")
        self.assertNotIn("idle_servers", self.advice(report(ranks() + lazy, nodes=4)))

    def test_balance_of_servers(self):
        def run(busiest, others):
            return report(ranks() + [server(4, own={"assemble": busiest})] + [server(rank, own={"assemble": others}) for rank in (5, 6, 7)], nodes=4)
        self.speaks("server_balance", run(60.0, 20.0), run(59.0, 20.0))
        self.assertNotIn("server_balance", self.advice(run(40.0, 1.0)), "the busiest has time")

    def test_no_server(self):
        got = self.speaks("no_server", report([both(rank, encode=8.0, write=2.0) for rank in range(4)]),
                          report([both(rank, encode=7.9, write=2.0) for rank in range(4)]))
        self.assertIn("Ranks encoded and wrote themselves for 10 % of their time (10.0 s each)", got["text"])
        self.assertEqual(got["set"], "TAILRACE_SERVERS=1")

    def test_late_gets(self):
        got = self.speaks("late_gets", report(streams=[reading(late=10, memory=90, waited=8.1)]), report(streams=[reading(late=9, memory=91, waited=8.1)]))
        self.assertNotIn("set", got)
        self.speaks("late_gets", report(streams=[reading(late=10, memory=90, waited=4.0)]), report(streams=[reading(late=10, memory=90, waited=3.9)]))
        self.assertIn("of 100 gets of \"boundary.nc\", 10 (10 %) had to wait, 8.10 s in all", got["text"])

    def test_skew(self):
        got = self.speaks("skew", report(ranks(skew=5.0) + [busy()]), report(ranks(skew=4.9) + [busy()]))
        self.assertIn("ranks waited 5.00 s each (5.0 % of their time)", got["text"])

    def test_messages(self):
        got = self.speaks("messages", report(ranks(message=3.0, barrier=2.0) + [busy()], nodes=2), report(ranks(message=3.0, barrier=1.9) + [busy()], nodes=2))
        self.assertEqual(got["set"], "TAILRACE_SERVERS=node:1")
        self.assertNotIn("set", self.advice(report(ranks(message=5.0) + [busy()], nodes=1))["messages"])

    def test_waiting_for_durable_steps(self):
        self.speaks("durable_waits", report(ranks(wait_for_storage=5.0) + [busy()]), report(ranks(wait_for_storage=4.9) + [busy()]))
        self.assertNotIn("durable_waits", self.advice(report([both(0, wait_for_storage=50.0)])))

    def test_servers_that_are_behind_are_not_the_fault_of_who_waits(self):
        later = "Call tr_stream_wait and tr_stream_close later"
        self.assertIn(later, self.advice(report(ranks(wait_for_storage=5.0) + [busy()]))["durable_waits"]["text"])
        late = {"sum": 9.0, "median": 4.0, "p99": 6.0, "max": 9.0, "count": 50}
        for told in (report(ranks(wait_for_storage=5.0, staging_full=5.0) + [busy()]), report(ranks(wait_for_storage=5.0) + [busy()], [stream(time_to_durable_seconds=late)])):
            text = self.advice(told)["durable_waits"]["text"]
            self.assertIn("the servers do not keep up", text)
            self.assertNotIn(later, text)

    def test_advice_does_not_contradict_itself(self):
        late = {"sum": 9.0, "median": 4.0, "p99": 20.0, "max": 22.0, "count": 50}
        told = stream(method="writer", time_to_durable_seconds=late, servers={"write_seconds": spread(62.0, 1)})
        writing = [server(rank, own={"wait_for_storage": 60.0}, encode=20.0) for rank in (4, 5)]
        got = self.advice(report(ranks() + writing, [told]))
        self.assertTrue({"storage", "one_writer", "behind"} <= set(got))
        self.assertNotIn("servers do not help", got["storage"]["text"])
        self.assertIn("Faster storage or fewer bytes help", got["behind"]["text"])
        encoding = [server(rank, own={"wait_for_storage": 60.0}, encode=150.0) for rank in (4, 5)]
        got = self.advice(report(ranks() + encoding))
        self.assertTrue({"storage", "encoder"} <= set(got))
        self.assertNotIn("servers do not help", got["storage"]["text"])
        self.assertIn("More servers or threads", self.advice(report(streams=[stream(time_to_durable_seconds=late)]))["behind"]["text"])

    def test_messages_of_servers(self):
        self.speaks("server_messages", report(ranks() + [server(4, own={"wait_for_messages": 30.0})]), report(ranks() + [server(4, own={"wait_for_messages": 29.0})]))

    def test_stalls(self):
        def run(median, p99):
            return report(streams=[stream(time_to_durable_seconds={"sum": 9.0, "median": median, "p99": p99, "max": 5.0, "count": 50})])
        self.speaks("stalls", run(0.2, 2.0), run(0.2, 1.99))
        self.speaks("stalls", run(0.01, 1.0), run(0.01, 0.99))

    def test_behind(self):
        def run(p99):
            return report(streams=[stream(time_to_durable_seconds={"sum": 9.0, "median": 4.0, "p99": p99, "max": 9.0, "count": 50})])
        self.assertNotIn("behind", self.advice({**run(0.99), "elapsed_seconds": 5.0}), "less than a second is nothing")
        got = self.speaks("behind", run(6.0), run(5.9))  # 50 steps of 2 s
        self.assertIn("while 3 more steps of 2.00 s passed", got["text"])

    def test_full_disk(self):
        got = self.speaks("full_disk", report(streams=[stream(servers={"waits_for_space": 1})]), report(streams=[stream(servers={"waits_for_space": 0})]))
        self.assertIn("waited 1 time for room", got["text"])

    def test_no_news(self):
        self.assertNotIn("No news", self.show(report(state="running", written=stamp(5))))
        self.assertRegex(self.show(report(state="running", written=stamp(40))), "note: No news for [4-9][0-9] s: is the job alive[?]")
        self.assertNotIn("No news", self.show(report(state="ended", written=stamp(4000))))
        self.assertIn("run.json: running for 100 s when it was written, 72 h 0 min ago", self.show(report(state="running", written=stamp(3 * 86400))))

    def test_without_servers_no_news_is_no_alarm(self):
        text = self.show(report([both(0)], state="running", written=stamp(40)))
        self.assertRegex(text, "note: Rank 0 has not called the library for [4-9][0-9] s[.]")
        self.assertNotIn("is the job alive", text)

    def test_the_most_time_comes_first(self):
        text = self.show(report(ranks(staging_full=3.0, skew=20.0) + [busy()]))
        self.assertLess(text.index("Skew"), text.index("room in staging"))

    def test_every_rule_is_tested_at_both_sides(self):
        names = re.findall(r"^\| `(\w+)`", tailrace("report", "--rules", "--markdown").stdout, re.M)
        tests = Path(__file__).read_text(encoding="utf-8")
        for name in names:
            if name not in ("staging_steps", "no_news"):  # they have no advice of their own
                self.assertIn(f'speaks("{name}"', tests, name)
        self.assertEqual(len(names), 17)


if __name__ == "__main__":
    unittest.main()
