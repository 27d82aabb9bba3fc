# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A disk that is really full: the verdict, what was committed, and on_full=wait. The small file system lives in a mount namespace of
this script, so that nothing of it is left however the script ends."""
import json
import os
import subprocess
import sys
import threading
import time

if os.environ.get("FULL_DISK_ISOLATED") != "1":
    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True)
    if os.geteuid() != 0 or probe.returncode != 0:
        print("skipped: mounting a small file system needs root and mount namespaces")
        sys.exit(77)
    os.environ["FULL_DISK_ISOLATED"] = "1"
    os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

SIZE = 256 << 10
LAST = 79  # 80 steps of 5148 bytes are more than the disk has


def mount(kind):
    fresh("disk")
    if kind == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", "disk"]
    else:
        with open("image", "wb") as image:
            image.truncate(1 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", "-F", "image"], check=False)
        command = ["mount", "-o", "loop", "image", "disk"]
    return subprocess.run(command, capture_output=True).returncode == 0


def unmount():
    subprocess.run(["umount", "-l", "disk"], capture_output=True)


ANY_ORDER = ("offset_sharing", "mpiio_shared")  # of the records of a step


def leads(path):
    code, out, err = tailrace("index", path, "--json")
    check(code == 0, f"the index of a file on a full disk: {code}, {err}")
    return [step["lead"] // 3600 for step in json.loads(out)["steps"]] if code == 0 else []


def fails_with_a_verdict(kind, servers, how):
    what = f"{kind} with {servers} servers, {how}"
    path = "disk/fc.raw"
    steps = LAST if kind == "tmpfs" else 400
    code, out, err = run(2 + servers, arguments(path, "format=raw", steps), TAILRACE_SERVERS=str(servers), **method_settings(how))
    check(code == 1, f"{what}: ended with {code}: {err}")
    check("No space left on device" in err or "no space for" in err, f"{what}: said {err}")
    told = leads(path)
    check(len(told) > 5 and told[:5] == [0, 1, 2, 3, 4], f"{what}: the index tells {told}")
    check(len(told) < steps, f"{what}: every step is there")
    data = contents(path)
    check(len(data) >= len(told) * STEP_BYTES, f"{what}: {len(data)} bytes for {len(told)} steps")
    for number, hour in enumerate(told):
        whole = contents("all.raw")[hour * STEP_BYTES:(hour + 1) * STEP_BYTES]
        if how not in ANY_ORDER:
            check(data[number * STEP_BYTES:(number + 1) * STEP_BYTES] == whole, f"{what}: step {hour} is damaged")
    if how in ANY_ORDER:
        every = records_of("all.raw")
        check(records_of(path) == [every[hour] for hour in told], f"{what}: steps are damaged")
    for name in ("fc.raw", "fc.raw.trx"):
        os.remove(f"disk/{name}")


def waits_for_space(servers, how):
    with open("disk/filler", "wb") as filler:
        filler.write(b"x" * (SIZE - 40 * 1024))

    def make_room():
        time.sleep(1.5)
        os.remove("disk/filler")

    helper = threading.Thread(target=make_room)
    helper.start()
    path = "disk/fc.raw"
    code, out, err = run(2 + servers, arguments(path, "format=raw on_full=wait:30s", 19), TAILRACE_SERVERS=str(servers), **method_settings(how))
    helper.join()
    check(code == 0, f"on_full=wait with {servers} servers, {how}, ended with {code}: {err}")
    is_whole = records_of(path) == records_of("all.raw")[:20] if how in ANY_ORDER else contents(path) == contents("all.raw")[:20 * STEP_BYTES]
    check(is_whole, f"on_full=wait with {servers} servers, {how}: other bytes")
    for name in ("fc.raw", "fc.raw.trx"):
        os.remove(f"disk/{name}")


code, out, err = run(1, arguments("all.raw", "format=raw", 400))
check(code == 0 and raw_steps("all.raw", 0, 400), f"the run with space enough: {code}, {err}")
tried = 0
for kind in ("tmpfs", "ext4"):
    if not mount(kind):
        print(f"no {kind} can be mounted here", flush=True)
        continue
    tried += 1
    for servers, how in ((0, "scan"), (2, "scan"), (2, "mpiio"), (2, "offset_sharing"), (2, "writer_aio"), (2, "mpiio_shared")):
        fails_with_a_verdict(kind, servers, how)
        if kind == "tmpfs":
            waits_for_space(servers, how)
    unmount()
if tried == 0:
    print("skipped: no file system can be mounted here")
    sys.exit(77)
finish()
