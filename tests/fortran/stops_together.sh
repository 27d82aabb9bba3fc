#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# A collective call that fails without ierr: one rank prints the text, whichever rank has the error, all ranks
# stop, the launcher returns non-zero.
# Arguments: the stop_test program, the numbers of ranks for a mistake that all ranks make.
set -u
program=$1
shift

# stops RANKS TEXT MISTAKE [RANK]: TEXT is in the error that is printed.
stops() {
  local ranks=$1 text=$2 output code
  shift 2
  output=$($TEST_MPIRUN -n "$ranks" "$program" "$@" 2>&1)
  code=$?
  if [ $code -eq 0 ]; then
    echo "$ranks ranks, $*: the launcher returned success; output: $output"
    exit 1
  fi
  if grep -q 'the program went on' <<<"$output"; then
    echo "$ranks ranks, $*: a rank went on after the error; output: $output"
    exit 1
  fi
  if [ "$(grep -c "$text" <<<"$output")" != 1 ]; then
    echo "$ranks ranks, $*: expected one text with '$text'; output: $output"
    exit 1
  fi
}

for ranks in "$@"; do
  stops "$ranks" rwa format -1
done
# One rank is in another call than the others. Not every rank hears of it: the others do not come to its call any more.
export TAILRACE_SERVERS=0
for rank in 0 1; do
  stops 3 'lead 0 s: rank '$rank' came to a collective call' create $rank
done
stops 3 'lead 0 s: rank 0 came to a collective call' stopping 0
stops 3 'tr_stream_close inside of a step' close 0
stops 3 'lead 0 s: rank 1 came to a collective call' finalize 1
TAILRACE_SERVERS=1 stops 3 'close' stopping 0
# The first rank of the world has no error.
stops 2 stagign setting 1
# A server that goes on as a compute rank.
TAILRACE_SERVERS=1 stops 2 'this rank was a server' server -1
