#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""`tailrace report`: its tables, comparisons, pages and JSON, and what it says of files that are no reports."""
import fcntl
import html.parser
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from reports import COMMAND, Files, both, compute, old_report, put, reading, report, server, spread, stamp, stream, tailrace  # noqa: E402

STRANGE = "<script>alert('1')</script> & \"x\" \x1b[2J\u009b31m \u00e9\U0001f30a"


def on_terminal(columns, *arguments):
    """Returns the lines that the command prints on a terminal."""
    terminal, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([COMMAND, *arguments], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    got = b""
    try:
        while part := os.read(terminal, 65536):
            got += part
    except OSError:  # the command has ended
        pass
    os.close(terminal)
    assert process.wait() == 0, got
    return got.decode().replace("\r", "").splitlines()


def many(count):
    return [compute(rank, capture=float(rank % 7)) for rank in range(count - 64)] + \
        [server(rank, own={"assemble": 40.0}, encode=90.0) for rank in range(count - 64, count)]


class Text(Files, unittest.TestCase):
    def test_the_headline_says_what_happened(self):
        text = self.show(report())
        self.assertIn("ended after 100 s, 2026-11-30T21:49:53Z to 2026-11-30T21:51:33Z", text)
        self.assertIn("4 compute ranks, 1 server with 3 threads (2 encode), 1 node, staging of 512MiB on each", text)
        self.assertIn("2 files, 50 steps in 1 stream, 4.00 GB captured, 2.00 GB written (2.00 : 1), 20.0 MB/s to durable over the run", re.sub(r"\s+", " ", text))
        self.assertIn("a compute rank was in calls of the library for 0.40 s of 100 s (mean, 0.4 %)", text)

    def test_a_role_has_sums_shares_and_the_spread_of_its_processes(self):
        processes = [compute(rank, capture=seconds) for rank, seconds in enumerate((1.0, 2.0, 3.0, 10.0))] + [server(4, own={"assemble": 60.0}, encode=50.0)]
        text = self.show(report(processes))
        self.assertIn("compute ranks: 4 processes, 400 s in all", text)
        self.assertRegex(text, r"capture +16[.]00 +4[.]0 % +1[.]00 +2[.]50 +10[.]00")
        self.assertIn("threads of servers: 1 process with 3 threads, 300 s in all", text)
        self.assertRegex(text, r"encode +50[.]00 +17 %")

    def test_waiting_for_mpi_and_for_storage_stand_apart(self):
        own = {"message": 3.0, "barrier": 2.0, "wait_for_messages": 5.0, "wait_for_storage": 20.0, "assemble": 40.0}
        told = report([compute(0), server(1, own=own, write=30.0, fsync=10.0)])
        roles = json.loads(self.show(told, "--json"))["roles"]
        self.assertEqual([(role["waits_for_mpi_seconds"], role["waits_for_storage_seconds"]) for role in roles], [(0, 0), (10, 20), (0, 40)])
        self.assertRegex(self.show(told), r"all that waits for MPI +10[.]00 +10 %\n +all that waits for storage +20[.]00 +20 %")

    def test_processes_have_a_row_each_if_asked_for(self):
        self.assertNotIn("seconds of each process: compute ranks", self.show(report()))
        rows = self.show(report(many(100)), "--processes").split("seconds of each process: compute ranks")[1].split("\n\n")[0]
        self.assertEqual(len(rows.splitlines()), 1 + 1 + 36)

    def test_a_stream_has_its_method_and_why(self):
        text = self.show(report(streams=[stream(method="writer", method_chosen="the files are on NFS", writes_by="io_uring", offsets="one-sided", durable_steps=49)]))
        self.assertIn("fc.grib2: method=auto took writer: the files are on NFS; writes by io_uring; offsets one-sided; 2 files; 49 of 50 steps durable; "
                      "last durable step: 2026-03-01T06:00Z", re.sub(r"\s+", " ", text))
        self.assertRegex(text, r"fc[.]grib2 +writer +50 +500 +4[.]00 GB +2[.]00 GB +2[.]00 : 1 +0[.]40 +0[.]40 +0[.]90 +1[.]10")

    def test_a_failed_run_says_why(self):
        text = self.show(report(state="failed", error="rank 3: write fc.grib2: No space left on device"))
        self.assertIn("failed after 100 s", text)
        self.assertIn("error: rank 3: write fc.grib2: No space left on device", text)

    def test_steps_that_failed_and_a_program_that_was_stopped_are_named(self):
        text = self.show(report(streams=[stream(failed_steps=2, durable_bytes=1_000_000_000)], stopped="signal SIGTERM"))
        self.assertIn("note: 2 steps failed, and are not durable.", text)
        self.assertIn("note: The program was told to stop: signal SIGTERM.", text)
        self.assertIn("10.0 MB/s to durable", text)

    def test_a_running_one_has_advice_so_far(self):
        text = self.show(report(state="running", written=stamp()))
        self.assertIn("running for 100 s", text)
        self.assertIn("advice so far", text)

    def test_without_servers_ranks_compute_and_write(self):
        text = self.show(report([both(rank, encode=1.0) for rank in range(2)]))
        self.assertIn("2 compute ranks, no server", text)
        self.assertIn("ranks that compute and write: 2 processes", text)

    def test_an_old_report_is_read_and_what_it_lacks_is_said(self):
        text = self.show(old_report())
        self.assertIn("note: The report is of an older version of the library. It does not say whether the run has ended,", text)
        self.assertIn("Too little is known of this run for advice", text)
        self.assertIn("fc.grib2", text)

    def test_a_newer_one_is_read_as_far_as_it_is_known(self):
        processes = [{**compute(0), "routines": {"compress": 30.0, "model": 70.0}}]
        text = self.show(report(processes, version=3))
        self.assertIn("newer version (3) than this command (2)", text)
        self.assertRegex(text, r"compress +30[.]00 +30 %")

    def test_texts_of_strangers_cannot_move_the_terminal(self):
        text = self.show(report([{**compute(0), "role": STRANGE, "routines": {STRANGE: 1.0}}], [stream(STRANGE, method=STRANGE, last_durable=STRANGE)], error=STRANGE))
        self.assertFalse([character for character in text if (ord(character) < 32 and character != "\n") or 127 <= ord(character) < 160])
        self.assertIn("<script>", text)

    def test_texts_of_strangers_cannot_turn_lines_round(self):
        turns = [chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C, 0x2028, 0x2029, 0x85)]
        told = report(streams=[stream("".join(f"a{turn}" for turn in turns) + "\u2030\u00e9")], error="".join(turns))
        for options in ((), ("--html", "-")):
            text = self.show(told, *options)
            self.assertFalse([turn for turn in turns if turn in text])
            self.assertIn("\u2030\u00e9", text)

    def test_no_time_and_no_numbers_are_no_shares(self):
        for elapsed in (0.0, None):
            told = report([compute(0, 0.0), server(1, 0.0)], [stream(bytes_written=0, bytes_captured=None, time_to_durable_seconds={"median": None, "count": 0})])
            told["elapsed_seconds"] = elapsed
            told["processes"][0]["routines"]["model"] = None
            for options in ((), ("--json",), ("--html", "-"), ("--processes",)):
                self.assertNotRegex(self.show(told, *options), r"\b(nan|inf|NaN)\b")
        text = self.show(report([compute(0, 0.0)], elapsed_seconds=0.0))
        self.assertIn("No time has passed yet", text)
        self.assertNotIn("no times of processes", text)

    def test_numbers_near_nothing_and_beyond_counting_are_said_well(self):
        huge = self.show(report(streams=[stream(f"{number}.nc", steps=9e18, durable_steps=9e18) for number in range(20)]))
        self.assertNotIn("-9223", huge)
        self.assertIn(" steps in 20 streams", re.sub(r"\s+", " ", huge))
        small = self.show(report([compute(0, capture=1e-6), server(1)], [stream(compute={"blocked_seconds": spread(1e-6)})]))
        self.assertNotRegex(small, r"\b0[.]0 ms|\b0[.]0000\b")
        self.assertIn("for <0.1 ms of 100 s", small)
        self.assertRegex(tailrace("report", "--rules").stdout, r"threshold: 1 wait\n")

    def test_the_least_numbers_have_charts_too(self):
        for least in (1e-320, 5e-310, 1e-13):
            told = report([{**compute(0), "routines": {"model": least}, "elapsed_seconds": least}], [stream(bytes_captured=least, time_to_durable_seconds={"median": least, "p99": least, "max": least, "count": 1})], elapsed_seconds=least)
            for options in ((), ("--html", "-")):
                self.assertNotRegex(self.show(told, *options), r"\b(nan|inf)\b")
            put(self.path("b.json"), told)
            self.assertNotRegex(tailrace("report", self.path("b.json"), self.path("b.json"), "--html", "-").stdout, r"\b(nan|inf)\b")

    def test_wrong_types_and_huge_numbers_are_survived(self):
        odd = report([], [7, {"name": 5}, stream(steps=1e300, bytes_captured=1e308, compute=[], servers="x", time_to_durable_seconds=3)], staging_bytes=1e300, nodes=-1, version="x", begun=3)
        odd["processes"] = [5, {"rank": "x", "routines": [1]}, {"rank": -4, "routines": {"model": "x", "capture": -3, "skew": 1e308}, "elapsed_seconds": 1e308}, {"role": "server", "threads": 1e300, "elapsed_seconds": 1e300, "threads_routines": {"encode": 1e300}}, compute(1)]
        for options in ((), ("--json",), ("--html", "-"), ("--processes",)):
            self.assertIn("fc.grib2", self.show(odd, *options))
        put(self.path("b.json"), report())
        self.assertEqual(tailrace("report", self.path(), self.path("b.json")).returncode, 0)

    def test_a_short_run_is_called_short(self):
        short = [compute(0, 4.9), server(1, 4.9, own={"assemble": 3.0})]
        self.assertIn("note: The run is short (4.90 s)", self.show(report(short, elapsed_seconds=4.9)))
        self.assertNotIn("short", self.show(report([compute(0, 5.0), server(1, 5.0, own={"assemble": 3.0})], elapsed_seconds=5.0)))

    def test_lines_fit_into_a_terminal(self):
        names = ["fc_temperature_and_humidity_of_the_north.grib2", "x" * 400]
        told = report(streams=[stream(name, method="writer_aio", method_chosen="because " * 500, writes_by="io_uring") for name in names] + [reading(names[0])], state="failed", error="no room " * 90)
        for columns in (80, 60):
            for options in ((), ("--processes",)):
                self.check_width(told, columns, *options)
            self.check_width(report(many(80)), columns, "--processes")
        put(self.path("b.json"), report(many(80)))
        self.assertLessEqual(max(map(len, on_terminal(80, "report", self.path(), self.path("b.json")))), 80)
        for option in ("--rules", "--routines"):
            self.assertLessEqual(max(map(len, on_terminal(80, "report", option))), 80)

    def check_width(self, told, columns, *options):
        lines = on_terminal(columns, "report", put(self.path(), told), *options)
        self.assertGreater(len(lines), 20)
        self.assertEqual([line for line in lines if len(line) > columns and "/run.json:" not in line], [])

    def test_a_run_without_streams_says_so(self):
        self.assertIn("No stream has been used.", self.show(report(streams=[])))

    def test_thousands_of_processes_take_no_time(self):
        put(self.path(), report(many(4096)))
        begin = time.monotonic()
        self.assertEqual(tailrace("report", self.path(), "--html", self.path("page.html")).returncode, 0)
        self.assertLess(time.monotonic() - begin, 5)
        page = Path(self.path("page.html")).read_text(encoding="utf-8")
        self.assertIn("One bar for each 126 ranks, in the mean", page)
        self.assertIn("ranks 0 to 125", page)
        self.assertLess(len(page), 500_000)


class NoReports(Files, unittest.TestCase):
    def fails(self, code, *said, arguments=()):
        got = tailrace("report", self.path(), *arguments)
        self.assertEqual(got.returncode, code, got.stderr)
        for each in said:
            self.assertIn(each, got.stderr)
        self.assertEqual(got.stdout, "")

    def test_a_file_that_is_not_there(self):
        self.fails(1, "tailrace report: open ", "run.json", "No such file")

    def test_a_directory(self):
        os.mkdir(self.path())
        self.fails(1, "Is a directory")

    def test_a_half_written_one(self):
        whole = json.dumps(report())
        for length in (1, 10, len(whole) // 2, len(whole) - 1):
            put(self.path(), whole[:length])
            self.fails(4, f"ends in the middle, after {length} byte")
        for blank in ("", "\n\n"):
            put(self.path(), blank)
            self.fails(4, "is empty")

    def test_other_files(self):
        for text, said in (("GRIB\x02 not a report at all", "is no report: no JSON from byte 1"), ("{\"a\": 1}", "is JSON, but no report"), ("[1, 2]", "is JSON, but no report"),
                           ("5", "is JSON, but no report"), ("{\"traceEvents\": []}", "is a trace (TAILRACE_TRACE)")):
            put(self.path(), text)
            self.fails(2, said, "TAILRACE_REPORT=run.json")

    def test_bytes_that_are_no_text(self):
        Path(self.path()).write_bytes(b"\xff\xfe\x00\x01")
        self.fails(2, "is no report")

    def test_a_name_in_another_encoding_is_only_a_name(self):
        Path(self.path()).write_bytes(json.dumps(report(streams=[stream("NAME")])).encode().replace(b"NAME", "h\u00f6he".encode("latin-1")))
        self.assertIn("h?he", tailrace("report", self.path()).stdout)

    def test_a_number_that_is_too_large(self):
        put(self.path(), '{"compute_ranks": 1e999, "streams": []}')
        self.fails(2, "a number that is too large")

    def test_output_that_cannot_be_written(self):
        put(self.path(), report())
        for arguments in ((), ("--json",), ("--html", "-")):
            with open("/dev/full", "w", encoding="utf-8") as full:
                got = subprocess.run([COMMAND, "report", self.path(), *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(got.returncode, 1)
            self.assertIn("standard output", got.stderr)

    def test_a_report_from_a_pipe(self):
        got = subprocess.run([COMMAND, "report", "/dev/stdin"], input=json.dumps(report()), capture_output=True, text=True, timeout=60)
        self.assertIn("ended after 100 s", got.stdout)

    def test_deep_nesting(self):
        put(self.path(), "[" * 200_000)
        self.fails(4, "ends in the middle")
        put(self.path(), "[" * 200_000 + "]" * 200_000)
        self.fails(2, "no report")

    def test_command_lines_without_sense(self):
        put(self.path(), report())
        for arguments in ((), (self.path(), self.path(), self.path()), ("--rules", "--routines"), (self.path(), "--json", "--html", "x"), (self.path(), "--processes", "--html", "x"), (self.path(), self.path(), "--processes"), (self.path(), "--nonsense")):
            self.assertEqual(tailrace("report", *arguments).returncode, 2, arguments)

    def test_a_page_in_the_place_of_its_report(self):
        put(self.path(), report())
        self.fails(2, "is a report, and would be overwritten", arguments=("--html", f"{self.directory.name}/./run.json"))
        self.assertEqual(json.loads(Path(self.path()).read_text(encoding="utf-8")), report())

    def test_a_page_that_cannot_be_written(self):
        put(self.path(), report())
        self.fails(1, "nowhere", arguments=("--html", self.path("nowhere/page.html")))
        self.assertEqual(sorted(os.listdir(self.directory.name)), ["run.json"])


class Json(Files, unittest.TestCase):
    def test_it_has_processes_if_asked_for_and_what_streams_say(self):
        told = report(streams=[stream(writes_by="io_uring", offsets="one-sided")], stopped="signal SIGTERM")
        self.assertNotIn("processes", json.loads(self.show(told, "--json")))
        got = json.loads(self.show(told, "--json", "--processes"))
        self.assertEqual([each["routines"] for each in got["processes"]], [each["routines"] for each in told["processes"]])
        self.assertEqual(got["processes"][4]["encoders"], 2)
        self.assertEqual((got["streams"][0]["writes_by"], got["streams"][0]["offsets"], got["run"]["stopped"]), ("io_uring", "one-sided", "signal SIGTERM"))


class Compared(Files, unittest.TestCase):
    def compared(self, first, second, *options):
        got = tailrace("report", put(self.path("a.json"), first), put(self.path("b.json"), second), *options)
        self.assertEqual((got.returncode, got.stderr), (0, ""))
        return got.stdout

    def changes(self, first, second):
        return json.loads(self.compared(first, second, "--json"))["changes"]

    def test_what_changed_most_comes_first(self):
        slow = report([compute(rank, 140.0, staging_full=45.0) for rank in range(4)] + [server(4, 140.0, own={"assemble": 60.0}, write=60.0)], elapsed_seconds=140.0)
        told = self.changes(report(), slow)
        self.assertEqual(told[0], "staging_full of the compute ranks: 0 s -> 45.0 s for each process")
        self.assertEqual(told[1], "elapsed: 100 s -> 140 s (+40 %)")

    def test_ranks_are_compared_by_their_means(self):
        def run(count):
            return report([compute(rank, capture=2.0) for rank in range(count)] + [server(count, own={"assemble": 60.0}, encode=40.0)])
        text = self.compared(run(4), run(16))
        self.assertIn("The jobs are not the same: 4 and 16 compute ranks. Means of a process are", text)
        self.assertRegex(text, r"capture +2[.]00 s +2[.]00 s +same +8[.]00 s +32[.]0 s")
        self.assertEqual(self.changes(run(4), run(16)), ["No routine changed by more than 0.5 % of the run."])

    def test_threads_of_servers_do_not_outweigh_their_number(self):
        few, more = report([compute(0, skew=0.0), server(1, encoders=64, encode=64.0)]), report([compute(0, skew=9.0), server(1, encoders=64, encode=64.0 * 5)])
        self.assertIn("skew", self.changes(few, more)[0])

    def test_streams_are_matched_by_name(self):
        first = report(streams=[stream("a.nc"), stream("b.nc"), stream("gone.nc")])
        second = report(streams=[stream("new.nc"), stream("b.nc", bytes_written=4_000_000_000, method="writer"), stream("a.nc")])
        text = self.compared(first, second)
        self.assertIn("stream gone.nc (only in the first run)", text)
        self.assertIn("stream new.nc (only in the second run)", text)
        self.assertIn("stream b.nc (scan and writer)", text)
        self.assertEqual(self.changes(first, second), ["stream b.nc (scan and writer): written 2.00 GB -> 4.00 GB (+100 %)"])

    def test_roles_that_one_run_lacks_have_no_change(self):
        text = self.compared(report([both(0, encode=5.0)]), report())
        self.assertIn("threads of servers (none and 1)", text)

    def test_ranks_without_servers_are_compared_with_those_that_have_some(self):
        text = self.compared(report([both(0, encode=5.0)]), report([compute(0), server(1)]))
        self.assertIn("ranks that compute and write, compute ranks (1 and 1)", text)
        self.assertRegex(text, r"encode +5[.]00 s +0 s")
        self.assertIn("encode of the ranks that compute and write: 5.00 s -> 0 s", self.changes(report([both(0, encode=5.0)]), report([compute(0), server(1)]))[0])
        self.assertIn("encode of the compute ranks: 0 s -> 5.00 s", self.changes(report([compute(0), server(1)]), report([both(0, encode=5.0)]))[0])

    def test_small_changes_and_changes_from_nothing(self):
        text = self.compared(report(elapsed_seconds=100.0), report(elapsed_seconds=100.07))
        self.assertIn("+0.1 %", text)
        self.assertNotIn("+<", text)
        self.assertNotIn("x -", self.compared(report([compute(0, capture=1e-320)]), report([compute(0, capture=50.0)])))

    def test_old_reports_compare_by_their_streams(self):
        other = old_report()
        other["streams"][0]["bytes_written"] *= 2
        self.assertIn("stream fc.grib2: written 2.00 GB -> 4.00 GB (+100 %)", self.changes(old_report(), other))
        self.assertEqual(self.changes(old_report(), old_report()), ["No stream changed by more than 5 %."])
        self.assertIn("a.json: The report is of an older version", re.sub(r"\s+", " ", self.compared(old_report(), report())))

    def test_runs_that_have_not_ended_are_named(self):
        text = self.compared(report(state="running", written=stamp()), report(state="failed"))
        self.assertIn("a.json: the run has not ended.", text)
        self.assertIn("b.json: the run failed.", text)


class Page(html.parser.HTMLParser):
    """Checks that all elements are closed in their order, and collects what the page has."""
    VOID = ("meta", "link", "img", "br", "hr", "input")

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.seen, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        self.svgs = re.findall(r"<svg.*?</svg>", text, re.S)

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.attributes += attributes
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, text):
        self.texts.append(text)


class Pages(Files, unittest.TestCase):
    def page(self, told, *more):
        paths = [put(self.path(f"{number}.json"), each) for number, each in enumerate((told, *more))]
        got = tailrace("report", *paths, "--html", self.path("page.html"))
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, "", ""))
        text = Path(self.path("page.html")).read_text(encoding="utf-8")
        page = Page(text)
        self.assertEqual(page.open, [])
        self.check_charts(page)
        self.check_alone(page, text)
        return page, text

    def check_charts(self, page):
        ids = [value for name, value in page.attributes if name == "id"]
        self.assertEqual(len(ids), len(set(ids)))
        for svg in page.svgs:
            root = xml.etree.ElementTree.fromstring(svg)
            labels = root.get("aria-labelledby").split()
            self.assertEqual(root.get("role"), "img")
            self.assertEqual([root.find(f".//*[@id='{label}']").text != "" for label in labels], [True, True])
            for rectangle in root.iter("{http://www.w3.org/2000/svg}rect"):
                self.assertGreaterEqual(float(rectangle.get("x")), 0)
                self.assertLessEqual(float(rectangle.get("x")) + float(rectangle.get("width")), 970)

    def check_alone(self, page, text):
        self.assertNotIn("script", page.seen)
        self.assertNotIn("link", page.seen)
        self.assertFalse([name for name, _ in page.attributes if name in ("src", "href", "srcset") or name.startswith("on")])
        self.assertNotRegex(text.replace("http://www.w3.org/2000/svg", ""), r"https?:|url\(|@import")
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertIn("@media print", text)

    def test_a_page_has_advice_charts_and_their_tables(self):
        page, text = self.page(report([compute(rank, staging_full=5.0) for rank in range(4)] + [server(4, own={"assemble": 60.0}, encode=40.0)], [stream(), reading()]))
        self.assertEqual(len(page.svgs), 6)  # roles, three of processes, time to durable, bytes
        self.assertGreaterEqual(page.seen.count("table"), 5)
        self.assertLess(text.index("Ranks waited"), text.index("<svg"))
        self.assertIn("rank 3: staging_full 5.0 %, 5.00 s in all", text)

    def test_texts_of_strangers_are_only_texts(self):
        page, text = self.page(report([{**compute(0), "routines": {STRANGE: 1.0}}, server(1)], [stream(STRANGE, method_chosen=STRANGE, last_durable=STRANGE), reading(STRANGE)], error=STRANGE))
        self.assertNotIn("script", page.seen)
        self.assertIn("<script>alert('1')</script>", "".join(page.texts))
        self.assertNotIn("\x1b", text)

    def test_reports_of_all_kinds_have_pages(self):
        for told in (old_report(), report(streams=[]), report([], []), report([both(0)]), report(state="failed", error="x"), report(many(64 + 65)),
                     report([compute(0, 0.0)], elapsed_seconds=0.0), report(streams=[stream(f"{number}.nc") for number in range(60)])):
            self.page(told)
            self.page(told, report())
            self.page(report(), told)

    def test_two_runs_stand_side_by_side(self):
        page, text = self.page(report(), report([compute(rank, skew=9.0) for rank in range(4)] + [server(4, encode=40.0)]))
        self.assertIn("skew of the compute ranks: 0 s -&gt; 9.00 s", text)
        self.assertIn("compute ranks, first: model", text)
        self.assertIn("compute ranks, second: model", text)

    def test_a_page_is_replaced_as_a_whole(self):
        Path(self.path("page.html")).write_text("before", encoding="utf-8")
        self.page(report())
        self.assertEqual(sorted(os.listdir(self.directory.name)), ["0.json", "page.html"])

    def test_a_link_stays_one_and_a_pipe_too(self):
        put(self.path(), report())
        Path(self.path("target")).write_text("before", encoding="utf-8")
        for name, target in (("link", "target"), ("dangling", "new")):
            os.symlink(target, self.path(name))
            self.assertEqual(tailrace("report", self.path(), "--html", self.path(name)).returncode, 0)
            self.assertTrue(os.path.islink(self.path(name)))
            self.assertIn("<!doctype html>", Path(self.path(target)).read_text(encoding="utf-8"))
        os.mkfifo(self.path("pipe"))
        got = []
        reader = threading.Thread(target=lambda: got.append(Path(self.path("pipe")).read_text(encoding="utf-8")), daemon=True)
        reader.start()
        self.assertEqual(tailrace("report", self.path(), "--html", self.path("pipe")).returncode, 0)
        reader.join(20)
        self.assertTrue(got and got[0].endswith("</html>\n"))
        self.assertTrue(Path(self.path("pipe")).is_fifo())

    def test_pages_have_no_marks_of_markdown(self):
        self.assertNotIn("`", self.page(report(many(64 + 65)))[1])

    def test_a_dash_is_standard_output(self):
        self.assertTrue(self.show(report(), "--html", "-").startswith("<!doctype html>"))


class Documented(unittest.TestCase):
    def test_the_page_has_the_tables_that_the_command_prints(self):
        page = (Path(os.environ["TEST_SOURCE"]) / "docs" / "reports.md").read_text(encoding="utf-8")
        for option in ("--rules", "--routines"):
            table = tailrace("report", option, "--markdown").stdout
            self.assertGreater(len(table.splitlines()), 10)
            self.assertIn(f"`tailrace report {option} --markdown`", page)
            self.assertIn(table, page, f"{option}: ./dev docs")
            self.assertNotIn("|", tailrace("report", option).stdout)

    def test_help_has_examples(self):
        for command in ("report", "top"):
            self.assertIn(f"Examples:\n  tailrace {command} ", tailrace(command, "--help").stdout)


if __name__ == "__main__":
    unittest.main()
