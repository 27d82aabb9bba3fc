#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# A rank that exits with a failure ends the job at once, also where do_nio has begun MPI: the others wait for it, and
# MPI_Finalize would wait for them, as would MPI_Win_free with TAILRACE_METHOD=offset_sharing. Argument: the
# exit_handlers program.
set -u
# SIGTERM of the launcher ends the other ranks at once.
export TAILRACE_STOP_SIGNALS=none
for method in scan offset_sharing; do
  TAILRACE_METHOD=$method timeout 25 $TEST_MPIRUN -n 2 "$1" failure
  code=$?
  [ $code -ne 0 ] && [ $code -ne 124 ] && continue
  echo "$method: expected a failure before the timeout; code $code"
  exit 1
done
