#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# A collective call that fails without ierr: one rank prints the text, all ranks stop, the launcher returns
# non-zero.
# Arguments: the stop_test program, the numbers of ranks.
set -u
program=$1
shift
for ranks in "$@"; do
  output=$($TEST_MPIRUN -n "$ranks" "$program" 2>&1)
  code=$?
  if [ $code -eq 0 ]; then
    echo "$ranks ranks: the launcher returned success; output: $output"
    exit 1
  fi
  if grep -q 'the program went on' <<<"$output"; then
    echo "$ranks ranks: a rank went on after the error; output: $output"
    exit 1
  fi
  if [ "$(grep -c 'rwa' <<<"$output")" != 1 ]; then
    echo "$ranks ranks: expected the error text once; output: $output"
    exit 1
  fi
done
