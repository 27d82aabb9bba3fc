#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""`tailrace top`: it follows a report that changes, ends with the job, and leaves the terminal as it was."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from reports import COMMAND, Files, compute, old_report, put, report, server, stamp, stream, tailrace  # noqa: E402

QUICK = ("--interval", "0.05")
WITHIN = 20  # seconds; far more than anything here takes


def running(seconds, steps=10, written=1_000_000_000, skew=0.0, age=0.0, **more):
    """A job that has run for so long."""
    processes = [compute(rank, seconds, skew=skew) for rank in range(2)] + [server(2, seconds, own={"assemble": 0.6 * seconds})]
    told = stream(steps=steps + 2, durable_steps=steps, bytes_written=written, bytes_captured=2 * written, last_durable=f"step {steps}")
    return report(processes, [told], **{"elapsed_seconds": seconds, "state": "running", "written": stamp(age), **more})


class Watching(Files, unittest.TestCase):
    """Lines, on a pipe."""

    def start(self, *arguments):
        self.come = ""
        process = subprocess.Popen([COMMAND, "top", self.path(), *(arguments if "--interval" in arguments else (*QUICK, *arguments))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def line(self, process):
        """Returns the next line. Two may come at once."""
        while "\n" not in self.come:
            self.assertTrue(select.select([process.stdout], [], [], WITHIN)[0], "no line came")
            got = os.read(process.stdout.fileno(), 65536).decode()
            self.assertTrue(got, "it ended")
            self.come += got
        line, _, self.come = self.come.partition("\n")
        return line + "\n"

    def test_it_follows_until_the_job_has_ended(self):
        put(self.path(), running(10.0))
        process = self.start()
        self.assertEqual(self.line(process), "running 10.0 s: 10 of 12 steps durable, 1.00 GB written; compute ranks: model 100 %; servers: assemble 60 %, idle 40 %; threads of servers: idle 100 %\n")
        put(self.path(), running(12.0, 14, 1_500_000_000, skew=1.0))
        self.assertIn("running 12.0 s: 14 of 16 steps durable, 1.50 GB written, 250 MB/s now; compute ranks: model 50 %, skew 50 %;", self.line(process))
        self.assertIn("advice: Skew: ", self.line(process))
        put(self.path(), running(14.0, 16, 2_000_000_000, skew=1.0, state="ended"))
        self.assertIn("ended 14.0 s: 16 of 18 steps durable, 2.00 GB written, 250 MB/s now", self.line(process))
        self.assertIn("run.json: ended after 14.0 s", self.line(process))
        _, err = process.communicate(timeout=WITHIN)
        self.assertEqual((process.returncode, err), (0, ""))

    def test_a_job_that_failed_is_a_failure_and_says_why(self):
        put(self.path(), report(state="failed", error="rank 3: disk full"))
        got = tailrace("top", self.path(), "--lines")
        self.assertEqual(got.returncode, 1)
        self.assertIn("error: rank 3: disk full", got.stdout)

    def test_a_file_that_is_not_there_is_an_error_that_names_wait(self):
        got = tailrace("top", self.path())
        self.assertEqual((got.returncode, got.stdout), (1, ""))
        self.assertIn("--wait waits for it", got.stderr)

    def test_wait_waits_for_the_file(self):
        process = self.start("--wait")
        self.assertEqual(self.line(process), f"waiting for {self.path()}\n")
        self.assertIsNone(process.poll())
        put(self.path(), report())
        self.assertIn("ended 100 s", self.line(process))
        self.assertEqual(process.wait(WITHIN), 0)

    def test_wait_passes_over_a_run_that_has_ended(self):
        for state in ("ended", "failed"):
            put(self.path(), report(state=state))
            process = self.start("--wait")
            self.assertEqual(self.line(process), f"{self.path()} is of a run that has ended; waiting for the next run\n")
            put(self.path(), running(1.0))
            self.assertIn("running 1.00 s", self.line(process))
            put(self.path(), running(2.0, state="ended"))
            self.assertIn("ended 2.00 s", self.line(process))
            self.assertEqual(process.wait(WITHIN), 0)

    def test_a_pipe_is_refused_at_once(self):
        os.mkfifo(self.path())
        for path in (self.path(), "/dev/zero"):
            got = tailrace("top", path)
            self.assertEqual(got.returncode, 2)
            self.assertIn("a pipe or a device", got.stderr)

    def test_an_interval_without_sense_is_refused(self):
        put(self.path(), report())
        for interval in ("nan", "-nan", "NAN", "inf", "0", "-1", "x"):
            self.assertEqual(tailrace("top", self.path(), f"--interval={interval}").returncode, 2, interval)

    def test_a_number_that_is_too_large_is_an_error(self):
        put(self.path(), '{"compute_ranks": 1e999, "streams": []}')
        self.assertEqual(tailrace("top", self.path()).returncode, 2)

    def test_lines_that_nobody_takes_end_it(self):
        put(self.path(), running(10.0))
        with open("/dev/full", "w", encoding="utf-8") as full:
            got = subprocess.run([COMMAND, "top", self.path(), "--lines"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=WITHIN)
        self.assertEqual(got.returncode, 1)
        self.assertIn("standard output", got.stderr)
        process = subprocess.Popen([COMMAND, "top", self.path(), *QUICK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, restore_signals=False, text=True)
        self.addCleanup(self.end, process)
        process.stdout.readline()
        process.stdout.close()
        put(self.path(), running(11.0))
        self.assertEqual(process.wait(WITHIN), 1)
        process.stdout = None

    def test_processes_without_news_do_not_count_with_their_past(self):
        def run(seconds, first, second, skew):
            return report([compute(0, first, skew=skew), compute(1, second)], [stream()], elapsed_seconds=seconds, state="running", written=stamp())
        put(self.path(), run(1000.0, 1000.0, 1000.0, 0.0))
        process = self.start()
        self.line(process)
        put(self.path(), run(1001.0, 1001.0, 1000.0, 1.0))  # rank 1 has told nothing new
        self.assertIn("compute ranks: skew 100 %", self.line(process))
        put(self.path(), run(1002.0, 1001.0, 1000.0, 1.0))  # nobody has
        self.assertIn("compute ranks: skew 100 %", self.line(process))
        put(self.path(), run(1003.0, 1003.0, 1003.0, 1.0))
        self.assertIn("compute ranks: model 100 %", self.line(process))

    def test_threads_that_begin_meanwhile_have_not_been_idle_before(self):
        def run(seconds, storage, encode):
            return report([compute(0, seconds), server(1, seconds, encoders=1, storage=storage, encode=encode)], elapsed_seconds=seconds, state="running", written=stamp())
        put(self.path(), run(1000.0, 0, 500.0))
        process = self.start()
        self.line(process)
        put(self.path(), run(1001.0, 1, 501.0))
        self.assertIn("threads of servers: encode 50 %, idle 50 %", self.line(process))
        put(self.path(), run(1002.0, 0, 502.0))
        self.assertIn("threads of servers: encode 100 %", self.line(process))

    def test_a_file_that_is_no_report_is_refused_at_once(self):
        put(self.path(), "{}")
        got = tailrace("top", self.path())
        self.assertEqual(got.returncode, 2)
        self.assertIn("no report", got.stderr)

    def test_a_half_written_file_is_looked_at_again(self):
        put(self.path(), "{\"version\": 2, ")
        process = self.start("--interval", "0.25")
        self.assertIn("waiting for", self.line(process))
        put(self.path(), report())
        self.assertIn("ended 100 s", self.line(process))
        self.assertEqual(process.wait(WITHIN), 0)

    def test_one_that_stays_half_written_is_an_error(self):
        put(self.path(), "{\"version\": 2, ")
        process = self.start()
        out, err = process.communicate(timeout=WITHIN)
        self.assertEqual(process.returncode, 4)
        self.assertIn("ends in the middle", err)

    def test_a_report_that_goes_away_for_a_moment_is_no_error(self):
        put(self.path(), running(10.0))
        process = self.start("--interval", "0.25")
        self.line(process)
        os.remove(self.path())
        time.sleep(0.6)
        self.assertIsNone(process.poll())
        put(self.path(), running(11.0, state="ended"))
        self.assertIn("ended 11.0 s", self.line(process))
        self.assertEqual(process.wait(WITHIN), 0)

    def test_old_news_are_said_to_be_old(self):
        put(self.path(), running(10.0, age=40))
        process = self.start()
        self.assertRegex(self.line(process), "; no news for [4-9][0-9] s: is the job alive[?]\n")
        put(self.path(), running(50.0))
        self.assertNotIn("no news", self.line(process))

    def test_no_news_are_told_from_35_seconds_on(self):
        """Ages are whole seconds, so both sides of the threshold can be tried, in whatever second is not over before the line has come."""
        for age, is_told in ((34, False), (35, True)):
            for _ in range(50):
                second = int(time.time())
                put(self.path(), running(10.0, age=age))
                process = self.start()
                line = self.line(process)
                self.end(process)
                if int(time.time()) == second:
                    break
            else:
                self.skipTest("the machine is too slow: no line has come within the second of its report")
            self.assertEqual(f"; no news for {age} s: is the job alive?\n" in line, is_told, line)

    def test_an_ended_job_is_not_asked_for_news(self):
        put(self.path(), running(10.0, age=4000, state="ended"))
        self.assertNotIn("no news", tailrace("top", self.path()).stdout)

    def test_a_clock_that_is_ahead_is_no_trouble(self):
        put(self.path(), running(10.0, age=-4000))
        self.assertNotIn("no news", self.line(self.start()))

    def test_another_run_in_the_same_file_has_no_rates_of_both(self):
        put(self.path(), running(10.0))
        process = self.start()
        self.line(process)
        put(self.path(), running(12.0, 1, 5_000_000_000, begun="2026-12-01T00:00:00Z"))
        self.assertNotIn(" now", self.line(process))

    def test_an_old_report_is_shown_and_has_no_end(self):
        put(self.path(), old_report())
        process = self.start()
        self.assertIn("no state: 50 steps", self.line(process))
        self.assertIn("older version", self.line(process))
        self.assertIsNone(process.poll())

    def test_signals_end_it_as_the_shell_expects(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            put(self.path(), running(10.0))
            process = self.start()
            self.line(process)
            process.send_signal(number)
            self.assertEqual(process.wait(WITHIN), -number)
            self.assertEqual(process.stderr.read(), "")


class Drawing(Files, unittest.TestCase):
    """On a terminal of 100 columns."""

    def start(self, *arguments, columns=100, rows=40):
        self.terminal, slave = pty.openpty()
        self.addCleanup(os.close, self.terminal)
        self.addCleanup(os.close, slave)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.slave, self.before, self.drawn = slave, termios.tcgetattr(slave), ""

        def own_terminal():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        process = subprocess.Popen([COMMAND, "top", self.path(), *QUICK, *arguments], stdin=slave, stdout=slave, stderr=slave, preexec_fn=own_terminal)
        self.addCleanup(Watching.end, process)
        return process

    def read(self, seconds=0.2):
        if select.select([self.terminal], [], [], seconds)[0]:
            self.drawn += os.read(self.terminal, 65536).decode()
            return True
        return False

    def until(self, text):
        end = time.monotonic() + WITHIN
        while text not in self.drawn:
            self.assertLess(time.monotonic(), end, f"{text!r} does not come: {self.drawn[-2000:]!r}")
            self.read()

    def ends(self, process, code):
        end = time.monotonic() + WITHIN
        while process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        while self.read(0):
            pass
        self.assertEqual(process.returncode, code)
        # The cursor is back, lines are broken, and what stood on the terminal stands there again.
        last = {mode: re.findall(rf"\x1b\[\?{mode}([hl])", self.drawn)[-1] for mode in ("25", "7", "1049")}
        self.assertEqual(last, {"25": "h", "7": "h", "1049": "l"})
        self.assertEqual(termios.tcgetattr(self.slave), self.before)

    def test_it_draws_anew_and_ends_with_the_job(self):
        put(self.path(), running(10.0))
        process = self.start()
        self.until("running 10.0 s, 2 ranks, 1 server")
        self.until("nothing to advise so far")
        put(self.path(), running(12.0, 14, 1_500_000_000, skew=1.0, staging_used_bytes=128 << 20))
        self.until("500 MB/s captured, 250 MB/s written")
        self.until("134 MB of 537 MB in use (25 %)")
        self.until("compute ranks       model 50 %, skew 50 %")
        self.until("step 14")
        put(self.path(), running(12.0, state="ended"))
        self.ends(process, 0)
        self.assertIn("ended after 12.0 s", self.drawn.split("\x1b[?1049l")[-1])

    def test_a_line_that_is_too_long_and_a_screen_that_is_too_low_are_cut(self):
        put(self.path(), running(10.0))
        process = self.start(columns=30, rows=5)
        self.until("running")
        self.drawn = ""
        self.until("\x1b[J\x1b[H")
        frame = self.drawn.split("\x1b[J")[1].removeprefix("\x1b[H")
        lines = [line.replace("\x1b[K", "").replace("\r", "") for line in frame.split("\r\n")]
        self.assertLessEqual(len(lines), 5)
        self.assertLessEqual(max(map(len, lines)), 30)
        os.write(self.terminal, b"q")
        self.ends(process, 0)

    def test_what_it_leaves_behind_fits_into_the_terminal(self):
        put(self.path(), running(10.0))
        process = self.start(columns=60)
        self.until("running")
        put(self.path(), running(12.0, skew=4.0, state="ended", error="no room " * 40))
        self.ends(process, 0)
        left = self.drawn.split("\x1b[?1049l")[-1].replace("\r", "").splitlines()
        self.assertGreater(len(left), 8)
        self.assertEqual([line for line in left if len(line) > 60], [])

    def test_ctrl_c_ends_it(self):
        put(self.path(), running(10.0))
        process = self.start()
        self.until("running")
        os.write(self.terminal, b"\x03")
        self.ends(process, -signal.SIGINT)

    def test_a_failed_job_restores_the_terminal_too(self):
        put(self.path(), running(10.0))
        process = self.start()
        self.until("running")
        put(self.path(), running(12.0, state="failed", error="disk full"))
        self.ends(process, 1)
        self.assertIn("error: disk full", self.drawn)

    def test_a_file_that_goes_bad_restores_the_terminal_too(self):
        put(self.path(), running(10.0))
        process = self.start()
        self.until("running")
        os.remove(self.path())
        self.ends(process, 1)
        self.assertIn("No such file", self.drawn)

    def test_lines_on_a_terminal_do_not_draw(self):
        put(self.path(), report())
        process = self.start("--lines")
        self.until("ended 100 s")
        self.assertNotIn("\x1b", self.drawn)
        self.assertEqual(process.wait(WITHIN), 0)

    def test_ctrl_z_gives_the_terminal_back_and_takes_it_again(self):
        put(self.path(), running(10.0))
        process = self.start()
        self.until("running")
        # A process without a shell above it is not stopped by the terminal's key: its group is orphaned.
        os.kill(process.pid, signal.SIGTSTP)
        self.until("\x1b[?1049l")
        os.kill(process.pid, signal.SIGCONT)
        self.drawn = ""
        self.until("running")
        os.write(self.terminal, b"q")
        self.ends(process, 0)

    def shell(self):
        """Starts a shell whose job is `top`; what is written is for the shell, or for `top`."""
        self.terminal, slave = pty.openpty()
        self.addCleanup(os.close, self.terminal)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.slave, self.drawn = slave, ""
        self.addCleanup(os.close, slave)

        def own_terminal():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        process = subprocess.Popen(["/bin/bash", "--norc", "--noediting", "-i"], stdin=slave, stdout=slave, stderr=slave, preexec_fn=own_terminal, env={**os.environ, "PS1": "READY> ", "top": f"{COMMAND} top {self.path()} --interval 0.05"})
        self.addCleanup(Watching.end, process)
        self.until("READY> ")
        return process

    def say(self, text, answer):
        self.drawn = ""
        os.write(self.terminal, text)
        self.until(answer)

    def test_in_the_background_it_does_not_draw_over_the_shell(self):
        put(self.path(), running(10.0))
        self.shell()
        self.say(b"$top &\n", "READY> ")
        time.sleep(0.3)
        self.say(b"echo a$((1+1))b\n", "a2b")
        self.assertNotIn("\x1b[", self.drawn)
        self.say(b"fg\n", "\x1b[?1049h")
        self.until("running 10.0 s")
        self.say(b"\x1a", "\x1b[?1049l")
        self.until("READY> ")
        self.say(b"bg\n", "READY> ")
        time.sleep(0.3)
        self.say(b"echo a$((1+1))b\n", "a2b")
        self.assertNotIn("\x1b[", self.drawn)
        self.say(b"fg\n", "running 10.0 s")
        self.assertFalse(termios.tcgetattr(self.slave)[3] & termios.ECHO)
        self.say(b"q", "READY> ")
        self.assertIn("\x1b[?1049l", self.drawn)
        self.say(b"echo $?; exit\n", "0")


if __name__ == "__main__":
    unittest.main()
