# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""How data reaches servers (handoff=): the same bytes for each way, with several methods and formats; what the report and the log tell; what
is no handoff, or is not possible, is refused; a rank that leaves without tr_finalize holds nobody up.
    handoff_test.py MODEL HANGING_WINDOW HANGING_GET"""
import itertools
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

LAST = 2
HANDOFFS = ("shared", "messages", "onesided")
FORMATS = {name: ending for name, ending in written_formats().items() if name in ("grib2", "raw")}
FEW = (("messages", "mpiio", "raw", 2), ("onesided", "writer", "grib2", 2))  # tests/sim has them all
WITHOUT = "ranks send messages in place of handoff=onesided"


def expected_of(handoff, err, what):
    """What the report must have. The MPI may have no one-sided gets: a warning says so, once. With Open MPI a loaded machine alone is a reason."""
    told = err.count(WITHOUT)
    check(told <= (handoff == "onesided") and (told == 0 or MPI != "openmpi" or "makes no progress" in err), f"{what}: {err}")
    return "messages" if told else handoff


def handed(report, expected, what):
    if not os.path.exists(report):
        return  # built without reports
    told = [each.get("handoff") for each in json.loads(contents(report))["streams"]]
    check(told and set(told) == {expected}, f"{what}: the report has {told}, expected {expected}")
    os.remove(report)


def same_bytes():
    directory = fresh("handoff")
    report = f"{directory}/report.json"
    for name, ending in FORMATS.items():
        code, _, err = run(1, arguments(f"{directory}/whole.{ending}", f"format={name}", LAST), TAILRACE_REPORT=report)
        check(code == 0, f"{name}: {code}, {err}")
        handed(report, "lent", f"{name}, 0 servers")
    cases = itertools.product(HANDOFFS, ("scan", "writer", "mpiio"), FORMATS, (1, 2)) if ALL else [each for each in FEW if each[2] in FORMATS]
    for handoff, method, name, servers in cases:
        path = f"{directory}/{handoff}-{method}-s{servers}.{FORMATS[name]}"
        what = f"{name}, handoff={handoff}, method={method}, {servers} servers"
        code, _, err = run(2 + servers, arguments(path, f"format={name} method={method} handoff={handoff}", LAST), TAILRACE_SERVERS=str(servers), TAILRACE_REPORT=report, SMALL_MODEL_THREADS="1")
        check(code == 0 and image(path) == image(f"{directory}/whole.{FORMATS[name]}"), f"{what}: {code}, {err}")
        handed(report, expected_of(handoff, err, what), what)


def by_the_setting():
    """The setting holds for streams that say nothing, with a stream that says something beside them; and with little memory for many steps."""
    directory = fresh("handoff-setting")
    report = f"{directory}/report.json"
    code, _, err = run(3, arguments(f"{directory}/fc.raw", "format=raw", 8), TAILRACE_SERVERS="1", TAILRACE_HANDOFF="onesided", TAILRACE_STAGING="512KiB", TAILRACE_REPORT=report,
                       SMALL_MODEL_TWIN=f"{directory}/twin.raw")
    check(code == 0 and contents(f"{directory}/fc.raw") == contents(f"{directory}/twin.raw") and len(contents(f"{directory}/fc.raw") or b"") == 9 * STEP_BYTES, f"by the setting: {code}, {err}")
    handed(report, expected_of("onesided", err, "by the setting"), "by the setting")
    if not ALL:
        return
    code, _, err = run(2, arguments(f"{directory}/alone.raw", "format=raw handoff=onesided", LAST), TAILRACE_SERVERS="0", TAILRACE_REPORT=report)
    check(code == 0 and contents(f"{directory}/alone.raw") == contents("handoff/whole.raw"), f"0 servers: {code}, {err}")
    handed(report, "lent", "0 servers")


def on_two_nodes():
    """Ranks of a node without a server: shared is refused, and auto sends messages."""
    nodes = faked_nodes()
    if not nodes:
        return
    directory = fresh("handoff-nodes")
    launcher, settings = nodes
    report = f"{directory}/report.json"
    for handoff in ("auto", *(("shared", "onesided") if ALL else ())):
        path = f"{directory}/{handoff}.raw"
        code, _, err = run(4, arguments(path, f"format=raw handoff={handoff}", LAST), launcher=launcher, TAILRACE_SERVERS="1", TAILRACE_REPORT=report, **settings)
        if handoff == "shared":
            check(code == 1 and "runs on a node without a server" in err and "handoff=auto or messages" in err, f"shared on two nodes: {code}, {err}")
            continue
        check(code == 0 and contents(path) == contents("handoff/whole.raw"), f"{handoff} on two nodes: {code}, {err}")
        handed(report, "shared, messages between nodes" if handoff == "auto" else "messages" if WITHOUT in err else "onesided", f"{handoff} on two nodes")


def refused():
    if not ALL:
        return
    directory = fresh("handoff-refused")
    for options, settings, words in (("handoff=one-sided", {}, 'did you mean "onesided"'), ("", {"TAILRACE_HANDOFF": "mesages"}, 'TAILRACE_HANDOFF=mesages: ')):
        code, _, err = run(3, arguments(f"{directory}/fc.raw", f"format=raw {options}", LAST), TAILRACE_SERVERS="1", **settings)
        check(code == 1 and words in err and not os.path.exists(f"{directory}/fc.raw"), f"{options} {settings}: {code}, {err}")


def preloading(library):
    return ["sh", "-c", f'LD_PRELOAD="{library}${{LD_PRELOAD:+:$LD_PRELOAD}}" exec "$0" "$@"']


def a_get_that_hangs():
    """The limit on waiting ends the job also from within a get, and tells its call. The first steps' gets come through."""
    directory = fresh("handoff-hangs")
    path, hangs = f"{directory}/fc.raw", os.path.abspath(f"{directory}/hangs")

    def hang_behind_the_first_step():
        while not tailrace("index", path)[1].count("lead"):
            time.sleep(0.05)
        open(hangs, "w", encoding="ascii").close()

    threading.Thread(target=hang_behind_the_first_step, daemon=True).start()
    # With one rank a level takes 1,144 bytes, which do not travel in a message.
    code, _, err = run(2, preloading(sys.argv[3]) + arguments(path, "format=raw handoff=onesided", LAST), TAILRACE_SERVERS="1", TAILRACE_WATCHDOG="1s", TAILRACE_TIMEOUT="3s",
                       TEST_HANGS=hangs, SMALL_MODEL_AWAITS=f"1:{hangs}")
    if WITHOUT in err:
        return  # the MPI has no gets
    check(code not in (0, 124) and "s for MPI_Get, from the memory of handoff=onesided" in err and "gives up (TAILRACE_TIMEOUT)" in err, f"a get hangs: {code}, {err}")
    check(tailrace("verify", path)[0] == 0, "what was committed before a get hung is whole")


def at_the_end():
    """A program that ends without tr_finalize does not wait in MPI_Win_free. An MPI that hangs with the window is named."""
    directory = fresh("handoff-end")
    began = time.monotonic()
    code, _, err = run(3, arguments(f"{directory}/fc.raw", "format=raw handoff=onesided", LAST, 0, 0, "forget"), TAILRACE_SERVERS="1")
    check(code != 124 and time.monotonic() - began < LIMIT, f"without tr_finalize: {code}, {err}")
    code, _, err = run(3, preloading(sys.argv[2]) + arguments(f"{directory}/hangs.raw", "format=raw handoff=onesided", LAST), TAILRACE_SERVERS="1", TAILRACE_WATCHDOG="1s", TAILRACE_TIMEOUT="3s")
    check(code not in (0, 124) and "has waited 1 s for MPI_Win_allocate" in err and "take another handoff" in err and "gives up (TAILRACE_TIMEOUT)" in err, f"the MPI hangs: {code}, {err}")


same_bytes()
by_the_setting()
on_two_nodes()
refused()
at_the_end()
a_get_that_hangs()
finish()
