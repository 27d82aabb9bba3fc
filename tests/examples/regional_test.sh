#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# The target programs: the same files from one rank and from three ranks with a server, readable by ecCodes, with the boundary that was
# read at the rim; and from a run that is gone on with from its checkpoint.
set -eu

value_at() { grib_get -w shortName=t,level=40 -i "$1" -F %.0f "$2" | tr -d ' '; }

sample=$(codes_info -s)/rotated_ll_sfc_grib2.tmpl
grib_set -s Ni=117,Nj=94,numberOfDataPoints=10998,latitudeOfFirstGridPointInDegrees=-20,longitudeOfFirstGridPointInDegrees=0,latitudeOfLastGridPointInDegrees=26.5,longitudeOfLastGridPointInDegrees=58,iDirectionIncrementInDegrees=0.5,jDirectionIncrementInDegrees=0.5,jScansPositively=1,latitudeOfSouthernPoleInDegrees=-30,longitudeOfSouthernPoleInDegrees=10 \
  "$sample" climate.grib2
for k in $(seq 0 40); do echo "$k $((k * (40 - k) * 12)) $(awk "BEGIN { print ($k / 40)^2 }")"; done > vcoord.txt
# 40 levels of temperature at each boundary, the same everywhere: 250, 253 and 256 K.
for lead in 0 3 6; do
  echo "set shortName=\"t\"; set typeOfLevel=\"hybrid\"; set dataDate=20260301; set dataTime=0; set forecastTime=$lead;
    set values={$(yes $((250 + lead)) | head -10998 | paste -sd,)};" > levels.rules
  for level in $(seq 40); do echo "set level=$level; write;"; done >> levels.rules
  grib_filter -o "bd_2026030100+00$lead.grib2" levels.rules climate.grib2
done
export TAILRACE_STAGING=64MiB
precipitation=""

for program in "$@"; do
  for ranks in 1 4; do
    mkdir -p "r$ranks" && cp climate.grib2 vcoord.txt bd_* "r$ranks"
    (cd "r$ranks" && rm -rf fc_* restart* && TAILRACE_SERVERS=$((ranks > 1)) $TEST_MPIRUN -n "$ranks" "$program")
  done
  for lead in 003 006 009; do
    file="fc_2026030100+$lead.grib2"
    cmp "r1/$file" "r4/$file"
    [ "$(grib_count "r4/$file")" = 122 ]
    [ "$(grib_get -w shortName=t,level=7 -p typeOfLevel,gridType,packingType,endStep "r4/$file")" = "hybrid rotated_ll grid_ccsds $((10#$lead))" ]
    [ "$(grib_get -w shortName=tp -p stepType,stepRange "r4/$file")" = "accum 0-$((10#$lead))" ]
    # At the south-western corner, and a hundred kilometres from there.
    [ "$(value_at 0 "r4/$file")" = $((250 + 10#$lead - 3)) ]
    [ "$(value_at 236 "r4/$file")" -gt 290 ]
  done
  # From the checkpoint of hour 6 on, hour 9 is written again, by other ranks.
  mv r1/fc_2026030100+009.grib2 expected.grib2
  (cd r1 && rm fc_2026030100+009.grib2.trx && $TEST_MPIRUN -n 2 "$program")
  cmp r1/fc_2026030100+009.grib2 expected.grib2
  # Both programs compute each step once.
  after=$(grib_get -w shortName=tp -F %.1f -p max r1/fc_2026030100+009.grib2)
  [ "${precipitation:=$after}" = "$after" ] || { echo "$(basename "$program") has $after mm of precipitation, not $precipitation"; exit 1; }
  echo "ok $(basename "$program")"
done
