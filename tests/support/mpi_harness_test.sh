#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# The MPI test harness itself: one rank's failure is everybody's, a hang is named, and no case at all is a failure.
set -u
program=$1
failures=0
run() { $TEST_MPIRUN -n 3 "$program" "$@" >out.txt 2>&1; code=$?; }
expect() {  # expect WHAT CONDITION...
  local what=$1
  shift
  "$@" || { echo "FAILED: $what (exit code $code); output:"; cat out.txt; failures=1; }
}

run good
expect "a passing case ends with 0" test "$code" = 0
expect "a passing case is listed" grep -q '^ok     good.passes' out.txt
expect "a skipped case is listed with the reason" grep -q '^SKIPPED good.may_be_skipped (.* ms, there is no moon)$' out.txt
run bad.fails_on_the_last_rank
expect "a failure on one rank ends with another code than 0" test "$code" != 0
expect "a failed check is told with file, line and rank" \
  grep -Eq 'mpi_harness_cases.cpp:[0-9]+: rank 2: CHECK failed: rank\(\) \+ 1 < size\(\)' out.txt
expect "the number of failed ranks is told" grep -q 'FAILED bad.fails_on_the_last_rank .*on 1 of 3 ranks' out.txt
run signs
expect "-1 differs from the largest unsigned number" grep -q 'failed: -1 and 18446744073709551615' out.txt
run thrown
expect "an exception on one rank is a failure" grep -q 'FAILED thrown.is_a_failure .*on 1 of 3 ranks' out.txt
run captured.text_is_kept
expect "what a passing case captures is not printed" test "$code" = 0 -a -z "$(grep 'in vain' out.txt)"
run captured.text_appears
expect "a failed check is told although standard error is captured" grep -q 'rank 2: CHECK failed: rank() + 1' out.txt
expect "what was captured appears when a check has failed" test "$(grep -c '^said before$' out.txt)" = 3
expect "it appears when a check of it has failed" test "$(grep -c '^said something else$' out.txt)" = 3
expect "it is told from which rank it is" grep -q '^rank 2 printed this where it was captured:$' out.txt
run no-such-case
expect "a name that matches nothing is a failure" test "$code" != 0
MPI_TEST_SECONDS=1 run stuck
expect "a hang ends with another code than 0" test "$code" != 0
expect "a hang is named" grep -q 'stuck.in_the_body_of_rank_0 hangs: after 1 s rank 0 of 3 is inside the case' out.txt
expect "the waiting ranks are named" grep -q 'rank 2 of 3 is waiting for the others after the case' out.txt
MPI_TEST_SECONDS=1 run captured.is_what
expect "a hang is named although standard error is captured" grep -q 'hangs: after 1 s rank 0 of 3' out.txt
expect "what was captured appears when a case hangs" grep -q '^said before the hang$' out.txt
exit $failures
