#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# The Jacobi iteration: in every mode, on 1 and 4 ranks, the same numbers and, but for the local modes, the same files.
# The local modes' files are read back and hold as many bytes. The programs of all languages write the same. A run that goes
# on from a checkpoint on another number of ranks, in the same language or another, writes what an undisturbed one does.
set -eu

fail() { echo "FAILED: $*" >&2; exit 1; }
# No array is too small for the parallel way, so that all modes do what they are called.
export TAILRACE_PARALLEL_THRESHOLD=0 TAILRACE_IO_BUFFER=8MiB
names="a b result"

jacobi() { # ranks, program, options
  $TEST_MPIRUN -n "$1" "$2" --size 61 --mode parallel --save-every 8 --quiet "${@:3}" || fail "${*:3} on $1 ranks"
}
change_in() { sed -n 's/^ *change *//p' "$1"; }
same_change() { [ "$(change_in "$1")" = "$(change_in out/whole/printed.txt)" ]; }

# What stands in out/whole is the undisturbed run's. $3 ranks are stopped after 20 iterations, $4 go on, of the program $5 if
# it is given.
check_restart() { # program, checkpoint options, ranks, ranks, program
  local other=${5:-$1}
  rm -rf out/parts && mkdir out/parts
  jacobi "$3" "$1" --iterations 20 --checkpoint 10 --restart $2 --out out/parts >out/parts/first.txt
  jacobi "$4" "$other" --iterations 40 --checkpoint 10 --restart $2 --out out/parts >out/parts/second.txt
  grep -q "starting at iteration 0" out/parts/first.txt || fail "$2: an empty directory was not told"
  grep -q "going on from iteration 20" out/parts/second.txt || fail "$2: $(cat out/parts/second.txt)"
  same_change out/parts/second.txt || fail "$2: another change"
  for name in $names; do
    cmp "out/whole/jacobi_$name.dat" "out/parts/jacobi_$name.dat" || fail "$name: checkpoints $2, $3 ranks and then $4"
  done
  # A run that is complete already has nothing to compute, and its result is the same.
  jacobi 1 "$other" --iterations 40 --restart $2 --out out/parts >out/parts/third.txt
  same_change out/parts/third.txt || fail "$2: another change when complete"
  cmp out/whole/jacobi_result.dat out/parts/jacobi_result.dat || fail "checkpoints $2: a complete run"
}

check_restarts() { # program
  local options=$($TEST_MPIRUN -n 1 "$1" --help)
  for option in --checkpoint --checkpoint-mode --sync --restart; do
    [[ $options == *"  $option "* ]] || fail "$1 --help does not tell of $option"
  done
  rm -rf out/whole && mkdir out/whole
  jacobi 2 "$1" --iterations 40 --out out/whole >out/whole/printed.txt
  check_restart "$1" "--checkpoint-mode p" 4 3
  check_restart "$1" "--checkpoint-mode p --sync" 1 4
  check_restart "$1" "--checkpoint-mode l" 2 4
  check_restart "$1" "--checkpoint-mode l --sync" 4 1
  [ "$(ls out/parts/*.ckpt.r* | wc -l)" = 2 ] || fail "one rank's local checkpoints lie in $(ls out/parts)"
  # Another grid is refused, in words.
  ! $TEST_MPIRUN -n 2 "$1" --size 62 --restart --quiet --out out/parts >out/refused.txt 2>&1 || fail "another grid was taken"
  grep -q "float64 (62, 62)" out/refused.txt || fail "$(cat out/refused.txt)"
  echo "ok $(basename "$1") goes on from its checkpoints"
}

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
  check_restarts "$program"
  # Checkpoints are the same whatever the language: what stands in out/whole is this program's.
  for other in "$@"; do
    [ "$other" != "$program" ] || continue
    check_restart "$program" "--checkpoint-mode p" 3 4 "$other"
    check_restart "$program" "--checkpoint-mode l --sync" 4 2 "$other"
    echo "ok $(basename "$other") goes on from checkpoints of $(basename "$program")"
  done
done
rm -rf out
