#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# A rank that exits with a failure ends the job at once, also where do_nio has begun MPI: the others wait for it, and
# MPI_Finalize would wait for them. Argument: the exit_handlers program.
set -u
# SIGTERM of the launcher ends the other ranks at once.
export TAILRACE_STOP_SIGNALS=none
timeout 30 $TEST_MPIRUN -n 2 "$1" failure
code=$?
[ $code -ne 0 ] && [ $code -ne 124 ] && exit 0
echo "expected a failure before the timeout; code $code"
exit 1
