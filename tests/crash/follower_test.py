# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A program follows the files of a model that is killed at random moments and goes on from its checkpoint, on other numbers of ranks and
servers. It gets each step once, with the values of a run that was never disturbed: in two formats, or with --all in each.
    follower_test.py MODEL FOLLOWER FORMAT=ENDING ... [--seed N]"""
import argparse
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from killed_job import Job, end_all  # noqa: E402
from small_model import *  # noqa: E402,F403

STEPS = 26  # of a quarter of an hour; the model saves every third
KILLS = 3

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("follower")
parser.add_argument("formats", nargs="+", metavar="FORMAT=ENDING")
parser.add_argument("--seed", type=int, default=int(time.time()))
given = parser.parse_args()
FOLLOWER = os.path.abspath(given.follower)


def model(directory, pattern, format_, ranks, servers, pause, **settings):
    command = [*MPIRUN, "-n", str(ranks + servers), MODEL, pattern, f"format={format_}", "cp", "overwritten=journal", str(STEPS), str(pause), "w"]
    return Job(command, environment(TAILRACE_SERVERS=str(servers), **settings), directory)


def follower(directory, pattern, options, ranks, servers, **settings):
    command = [*MPIRUN, "-n", str(ranks + servers), FOLLOWER, pattern, options, str(STEPS)]
    return Job(command, environment(TAILRACE_SERVERS=str(servers), **settings), directory)


def play(dice, format_, ending):
    """Whether all went well; the story tells what was done."""
    top = os.path.abspath(fresh(f"{format_}{ending}"))
    # One file that goes on, or a file for each hour.
    pattern = f"{top}/out/" + dice.choice(("fc" + ending, "fc_{valid:%Y%m%d%H}" + ending))
    ranks, servers = dice.choice(((1, 0), (2, 0), (2, 1)))
    prefetch = dice.choice((0, 2))
    story = [f"seed {given.seed}, {format_}, {os.path.basename(pattern)}; followed by {ranks} ranks, {servers} servers, prefetch {prefetch}"]
    jobs = fresh(f"{top}/following"), fresh(f"{top}/model")
    os.makedirs(f"{top}/out")
    reader = follower(jobs[0], pattern, f"follow=on timeout=100s prefetch={prefetch}", ranks, servers)
    good = check(reader.wait_for("following", 60), f"{story}: {reader.lines}")
    for life in range(KILLS + 1 if good else 0):
        writers, served = dice.choice((1, 2)), dice.choice((0, 1))
        last = life == KILLS
        writer = model(jobs[1], pattern, format_, writers, served, 2 if last else 25, TAILRACE_THROTTLE="" if last else "1MB/s,1ms")
        if last:
            story.append(f"completed by {writers} ranks, {served} servers")
            good = check(writer.ended_within(LIMIT) and writer.matches("complete"), f"{story}: {writer.lines}")
            break
        begun = writer.wait_for(r"loaded \d+ \d+", 60)
        time.sleep(dice.uniform(0, 0.6))
        writer.kill_all()
        loaded = writer.matches(r"loaded (\d+) (\d+)")
        story.append(f"killed {writers} ranks, {served} servers, {'loaded step ' + loaded[0][1] if loaded else 'not begun'}, when {len(reader.matches('step .*'))} steps were read")
        good = check(begun and reader.process.poll() is None, f"{story}: {writer.lines} {reader.lines}")
        if not good:
            break
    if good:
        good = check(reader.ended_within(LIMIT) and reader.matches("complete"), f"{story}: {reader.lines[-5:]}")
    if good:
        got = reader.matches(r"step (\d+) ([0-9a-f]{16})")
        undisturbed = fresh(f"{top}/undisturbed"), fresh(f"{top}/reading")
        expected_of = f"{undisturbed[0]}/{os.path.basename(pattern)}"
        writer = model(undisturbed[0], expected_of, format_, 1, 0, 0)
        good = check(writer.ended_within(LIMIT) and writer.process.returncode == 0, f"undisturbed: {writer.lines}")
        second = follower(undisturbed[1], expected_of, "", 1, 0)
        good = check(second.ended_within(LIMIT) and second.process.returncode == 0, f"undisturbed: {second.lines}") and good
        expected = second.matches(r"step (\d+) ([0-9a-f]{16})")
        check(len({digest for _, digest in expected}) == STEPS, f"the undisturbed run has the steps {expected}")
        good = check(got == expected, f"{story}: got {got}, expected {expected}") and good
    end_all()
    print("; ".join(story), flush=True)
    if good:
        shutil.rmtree(top)


print(f"seed {given.seed}", flush=True)
formats = given.formats if ALL else random.Random(given.seed).sample(given.formats, 2)
for text in formats:
    play(random.Random(f"{given.seed} {text}"), *text.split("="))
finish()
