#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# The target programs' output half: the same files from one rank and from three ranks with a server, readable by ecCodes.
set -eu

sample=$(codes_info -s)/rotated_ll_sfc_grib2.tmpl
grib_set -s Ni=117,Nj=94,numberOfDataPoints=10998,latitudeOfFirstGridPointInDegrees=-20,longitudeOfFirstGridPointInDegrees=0,latitudeOfLastGridPointInDegrees=26.5,longitudeOfLastGridPointInDegrees=58,iDirectionIncrementInDegrees=0.5,jDirectionIncrementInDegrees=0.5,jScansPositively=1,latitudeOfSouthernPoleInDegrees=-30,longitudeOfSouthernPoleInDegrees=10 \
  "$sample" climate.grib2
for k in $(seq 0 40); do echo "$k $((k * (40 - k) * 12)) $(awk "BEGIN { print ($k / 40)^2 }")"; done > vcoord.txt
export TAILRACE_STAGING=64MiB

for program in "$@"; do
  for ranks in 1 4; do
    mkdir -p "r$ranks" && cp climate.grib2 vcoord.txt "r$ranks"
    (cd "r$ranks" && rm -f fc_* && TAILRACE_SERVERS=$((ranks > 1)) $TEST_MPIRUN -n "$ranks" "$program")
  done
  for lead in 003 006 009; do
    file="fc_2026030100+$lead.grib2"
    cmp "r1/$file" "r4/$file"
    [ "$(grib_count "r4/$file")" = 122 ]
    [ "$(grib_get -w shortName=t,level=7 -p typeOfLevel,gridType,packingType,endStep "r4/$file")" = "hybrid rotated_ll grid_ccsds $((10#$lead))" ]
    [ "$(grib_get -w shortName=tp -p stepType,stepRange "r4/$file")" = "accum 0-$((10#$lead))" ]
  done
  echo "ok $(basename "$program")"
done
