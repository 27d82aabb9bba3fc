#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# The demo, with the model of this build: it ends well and leaves readable files, in GRIB2 by its quick way, in NetCDF with servers
# and a page that is drawn from them.
#   demo_test.sh grib2|cdf5
set -eu

need() {
  for tool in "$@"; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
  done
}
demo() {
  rm -rf out
  python3 "$TEST_SOURCE/examples/weather/demo.py" --build "$TEST_BUILD" --out out --quiet "$@"
}

need cdo
if [ "$1" = grib2 ]; then
  need grib_count
  demo --quick
  for file in out/*.grib2; do
    [ "$(grib_count "$file")" -gt 0 ] || { echo "FAILED: $file has no message"; exit 1; }
  done
else
  demo --format "$1" --size 72x60 --levels 6 --hours 12 --output-every 6 --ranks 2 --servers 1
  for file in out/fc_2026030100+006.nc out/fc_2026030100+012.nc out/surface_2026030100.nc; do
    [ "$(head -c 4 "$file" | od -An -tx1)" = " 43 44 46 05" ] || { echo "FAILED: $file is no CDF-5 file"; exit 1; }
  done
  for text in "fc_2026030100+006.nc … fc_2026030100+012.nc" "12, to 2026-03-01 12:00" "Decoded from the NetCDF files"; do
    grep -q "$text" out/demo.html || { echo "FAILED: demo.html does not say '$text'"; exit 1; }
  done
  if ls out/fc_*.grib2 2>/dev/null; then echo "FAILED: there are GRIB2 files of the forecast"; exit 1; fi
fi
rm -rf out
