#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# A program that calls DONIO's Fortran names as subroutines ends with a text and a failure, where a call fails that it
# cannot see; with TAILRACE_DONIO_ERRORS=return it goes on. Argument: the donio_stops program.
set -u
program=$1
failed=0
# run EXPECTED_END TEXT CALL [RANK]: "stops" or "goes on"; TEXT is in what one rank prints.
run() {
  local end=$1 text=$2 output code
  shift 2
  rm -f donio_stops.bin
  output=$($TEST_MPIRUN -n 3 "$program" "$@" 2>&1)
  code=$?
  case $end in
  stops) [ $code -ne 0 ] && ! grep -q 'the program went on' <<<"$output" ;;
  *) [ $code -eq 0 ] && grep -q 'the program went on' <<<"$output" ;;
  esac && [ "$(grep -c -- "$text" <<<"$output")" = 1 ] && return
  echo "$*: expected that the program $end, and '$text' once; code $code; output: $output"
  failed=1
}
# SIGTERM of the launcher ends the other ranks at once.
export TAILRACE_STOP_SIGNALS=none
full="nth=1 fault=enospc calls=write for=good"
run "goes on" 'missing.bin' nothing
TAILRACE_SERVERS=1 run stops 'TAILRACE_SERVERS' nothing
run stops 'nproc is 4, but this is rank' donio
TAILRACE_FAULT=$full run stops 'do_close(donio_stops.bin).*No space left' doclose
TAILRACE_FAULT=$full run stops 'donio_stops.bin.*No space left' MPI_Finalize
run stops 'do_lsize: 3 is not the descriptor' dolsize
run stops 'do_read(donio_stops.bin)' doread 2
export TAILRACE_DONIO_ERRORS=return
TAILRACE_FAULT=$full run "goes on" 'do_close(donio_stops.bin).*No space left' doclose
run "goes on" 'do_write(donio_stops.bin)' dowrite 1
exit $failed
