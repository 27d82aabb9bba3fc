#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# The quick way of ./dev demo, with the model of this build: it ends well and leaves GRIB2 files.
set -eu

for tool in cdo grib_set grib_get grib_count; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
rm -rf out
python3 "$TEST_SOURCE/examples/weather/demo.py" --build "$TEST_BUILD" --out out --quick --quiet
for file in out/*.grib2; do
  [ "$(grib_count "$file")" -gt 0 ] || { echo "FAILED: $file has no message"; exit 1; }
done
rm -rf out
