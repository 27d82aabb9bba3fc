# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A shared file on a tmpfs that fills up: the call that finds no room says so, nothing is lost, and the next flush with room succeeds.
The file system lives in a mount namespace of this script, so that nothing of it is left however the script ends.
    shared_full_test.py PROGRAM"""
import os
import subprocess
import sys

if os.environ.get("SHARED_FULL_ISOLATED") != "1":
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        print("skipped: mounting a small file system needs root and mount namespaces")
        sys.exit(77)
    os.environ["SHARED_FULL_ISOLATED"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

KIBIBYTE = 1 << 10
PROGRAM = os.path.abspath(sys.argv[1])
# What has to fit in the end: the file and, with journal, what it held, each piece with a head and a tail of 512 bytes.
CASES = (("none", 400, 1000), ("rename", 400, 1000), ("journal", 150, 1000))


def try_full(safety, pieces, ballast, ranks):
    what = f"{safety}, {ranks} ranks"
    place = os.path.abspath(fresh(f"full-{safety}-{ranks}"))
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tailrace", place], capture_output=True, text=True)
    if mounted.returncode != 0:
        print(f"skipped: no tmpfs can be mounted: {mounted.stderr.strip()}")
        sys.exit(77)
    try:
        with open(f"{place}/ballast", "wb") as file:
            file.write(bytes(ballast * KIBIBYTE))
        code, out, err = run(ranks, [PROGRAM, place, safety, str(pieces)], TAILRACE_AGGREGATORS="2")
        check(code == 0 and "done" in out, f"{what}: {code}, {out} {err}")
        check("0 writes failed" not in out.splitlines(), f"{what}: no write had to make room")
        check(sorted(os.listdir(place)) == ["file"], f"{what}: {os.listdir(place)} are left")
    finally:
        subprocess.run(["umount", "-l", place], check=False)


for safety, pieces, ballast in CASES:
    for ranks in (1, 2, 3) if ALL else (2,):
        try_full(safety, pieces, ballast, ranks)
finish()
