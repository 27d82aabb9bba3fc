#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# The finite-element examples write the bytes that a serial program writes, from any number of ranks. Arguments: the programs.
set -euo pipefail

python3 - << 'END'
import array

nx, ny, nz = 13, 8, 21
corners = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))
vertices = array.array("i", (z + dz + (x + dx - 1) * nz + (y + dy - 1) * nz * nx
                             for y in range(1, ny) for x in range(1, nx) for z in range(1, nz) for dx, dy, dz in corners))
with open("serial.bin", "wb") as file:
    vertices.tofile(file)
END

for program in "$@"; do
  for ranks in 1 4; do
    $TEST_MPIRUN -n "$ranks" "$program" 13 8 21 parallel.bin > out.txt || { cat out.txt; exit 1; }
    grep -q "every number was read as it was written" out.txt
    [ "$(grep -c wopen out.txt)" = 1 ]
    cmp parallel.bin serial.bin
    rm parallel.bin
  done
  "$program" --help > out.txt
  grep -q "usage: mpirun" out.txt
  for wrong in "" "13 8" "13 8 21 file.bin more" "13 8 1" "13 8 21x" "3000 3000 3000"; do
    # shellcheck disable=SC2086
    status=0 && "$program" $wrong 2> error.txt || status=$?
    if [ "$status" != 2 ] || [ ! -s error.txt ]; then echo "FAILED: '$wrong' ended with $status"; exit 1; fi
  done
  if $TEST_MPIRUN -n 2 "$program" 13 8 21 missing/directory 2> error.txt; then exit 1; fi
  grep -q "missing/directory: No such file" error.txt
  echo "ok $(basename "$program")"
done

# A server changes nothing; programs that begin with donio have none, and say so.
TAILRACE_SERVERS=1 $TEST_MPIRUN -n 3 "$1" 13 8 21 parallel.bin > out.txt
cmp parallel.bin serial.bin
if [ $# -gt 1 ]; then
  if TAILRACE_SERVERS=1 $TEST_MPIRUN -n 2 "$2" 13 8 21 parallel.bin 2> error.txt; then exit 1; fi
  grep -q "TAILRACE_SERVERS" error.txt
fi
