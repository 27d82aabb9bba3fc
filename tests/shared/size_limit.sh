#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# A limit on the size of files (ulimit -f) counts for the memory that ranks share. A soft one changes nothing, and a hard
# one is named. Argument: the donio_test program, whose files are small.
set -u
program=$1
failed=0
for kind in -S -; do
  # MPI's own memory is below these 20 MB.
  output=$($TEST_MPIRUN -n 2 bash -c "ulimit ${kind}f 20000; exec $program" 2>&1)
  code=$?
  if [ $kind = -S ] && [ $code -ne 0 ]; then
    echo "soft limit: expected success, got $code; output: $output"
    failed=1
  elif [ $kind = - ] && { [ $code -eq 0 ] || ! grep -q 'the limit on the size of files.*is 20480000 bytes.*ulimit -f unlimited' <<<"$output"; }; then
    echo "hard limit: expected a failure that names it, got $code; output: $output"
    failed=1
  fi
done
exit $failed
