# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The field's own tools read every GRIB2 file: cdo and grib_ls find each record with its name, level and time."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

missing = [tool for tool in ("cdo", "grib_ls") if shutil.which(tool) is None]
if missing:
    print(f"skipped: {', '.join(missing)} not installed")
    sys.exit(77)
LAST = 2
fresh("grib")
for packing in ("simple", "ccsds"):
    for servers in (0, 2):
        path = f"grib/{packing}-{servers}.grib2"
        code, _, err = run(2 + servers, arguments(path, f"packing={packing}", LAST), TAILRACE_SERVERS=str(servers))
        if not check(code == 0, f"{path}: {code}, {err}"):
            continue
        listed = subprocess.run(["grib_ls", "-p", "shortName,level,dataDate,stepRange,packingType,numberOfPoints", path],
                                capture_output=True, text=True)
        wanted = [[name, level, "20260301", str(hour), "grid_" + packing, str(NX * NY)]
                  for hour in range(LAST + 1) for name in ("t", "u") for level in ("1000", "850", "500")]
        got = [line.split() for line in listed.stdout.split("\n") if line.startswith(("t ", "u "))]
        check(listed.returncode == 0 and got == wanted, f"{path}: grib_ls shows {listed.stdout} {listed.stderr}")
        shown = subprocess.run(["cdo", "-s", "sinfo", path], capture_output=True, text=True)
        check(shown.returncode == 0 and f"points={NX * NY} ({NX}x{NY})" in shown.stdout
              and "2026-03-01 02:00:00" in shown.stdout, f"{path}: cdo sinfo shows {shown.stdout} {shown.stderr}")
        times = subprocess.run(["cdo", "-s", "ntime", path], capture_output=True, text=True)
        check(times.stdout.strip() == str(LAST + 1), f"{path}: cdo ntime says {times.stdout} {times.stderr}")
finish()
