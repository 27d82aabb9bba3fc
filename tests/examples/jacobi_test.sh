#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# The Jacobi iteration: in every mode, on 1 and 4 ranks, the same numbers and, but for the local modes, the same files.
# The local modes' files are read back and hold as many bytes. The programs of all languages write the same.
set -eu

fail() { echo "FAILED: $*"; exit 1; }
# No array is too small for the parallel way, so that all modes do what they are called.
export TAILRACE_PARALLEL_THRESHOLD=0 TAILRACE_IO_BUFFER=8MiB
names="a b result"

rm -rf out && mkdir -p out/expected
for program in "$@"; do
  expected=
  for ranks in 1 4; do
    for mode in old parallel local async-local async-parallel; do
      directory=out/$mode.$ranks
      rm -rf "$directory" && mkdir "$directory"
      printed=$($TEST_MPIRUN -n "$ranks" "$program" --size 61 --iterations 25 --save-every 5 --mode "$mode" --quiet \
        --verify --out "$directory") || fail "$mode on $ranks ranks"
      change=$(echo "$printed" | sed -n 's/^ *change *//p')
      [ -n "$change" ] && [ "$change" = "${expected:=$change}" ] || fail "$mode on $ranks ranks: change $change, not $expected"
      if [ ! -e out/expected/jacobi_result.dat ]; then cp "$directory"/*.dat out/expected; fi
      for name in $names; do
        case $mode in
          *local)
            bytes=$(cat "$directory/jacobi_$name".[0-9]*.dat | wc -c)
            [ "$bytes" = $((61 * 61 * 8)) ] || fail "$mode on $ranks ranks: $bytes bytes in jacobi_$name" ;;
          *) cmp "out/expected/jacobi_$name.dat" "$directory/jacobi_$name.dat" || fail "$program, $mode on $ranks ranks" ;;
        esac
      done
    done
  done
  rm -rf out/kept && mkdir out/kept
  $TEST_MPIRUN -n 4 "$program" --size 61 --iterations 25 --save-every 5 --mode async-parallel --quiet --keep --out out/kept
  cmp out/kept/jacobi_0025.dat out/expected/jacobi_result.dat
  cmp out/kept/jacobi_0020.dat out/expected/jacobi_b.dat
  [ "$(ls out/kept | wc -l)" = 6 ] || fail "--keep left other files than five saves and the result"
  echo "ok $(basename "$program"), change $expected"
done
rm -rf out
