#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# The demo, with the model of this build: it ends well and leaves readable files, in GRIB2 by its quick way, in NetCDF and Zarr with
# servers and a page that is drawn from them.
#   demo_test.sh grib2|cdf5|netcdf4|zarr
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
  case $1 in
    cdf5) ending=nc title=NetCDF begins="43 44 46 05" ;;
    netcdf4) ending=nc4 title=NetCDF-4 begins="89 48 44 46" ;;
    zarr) ending=zarr title=Zarr begins="7b 22 7a 61" ;;        # the text {"za of zarr.json
  esac
  demo --format "$1" --size 72x60 --levels 6 --hours 12 --output-every 6 --ranks 2 --servers 1
  for file in out/fc_2026030100+006.$ending out/fc_2026030100+012.$ending out/surface_2026030100.$ending; do
    [ ! -d "$file" ] || file=$file/zarr.json
    [ "$(head -c 4 "$file" | od -An -tx1)" = " $begins" ] || { echo "FAILED: $file is no file of $title"; exit 1; }
  done
  for text in "fc_2026030100+006.$ending … fc_2026030100+012.$ending" "12, to 2026-03-01 12:00" "Decoded from the $title files"; do
    grep -q "$text" out/demo.html || { echo "FAILED: demo.html does not say '$text'"; exit 1; }
  done
  if ls -d out/fc_*.grib2 out/for-cdo-* 2>/dev/null; then echo "FAILED: there is more than the files of $title"; exit 1; fi
fi
rm -rf out
