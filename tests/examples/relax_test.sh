#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# The out-of-core example gives what the same gives in memory, and takes no more memory than it was allowed to, beside what MPI takes
# for itself.
set -euo pipefail

program=$1
allowance=16 # MiB; one array is 122
export TAILRACE_STAGING=1MiB

for ranks in 1 3; do
  for options in "--depth 1" "--depth 3" "--depth 1 --sweeps 3"; do
    # shellcheck disable=SC2086
    $TEST_MPIRUN -n "$ranks" "$program" --size 4000 --budget 6 --sweeps 2 $options --check > out.txt || { cat out.txt; exit 1; }
    cat out.txt
    grep -q "the same as in memory" out.txt
    awk -v most=$((6 + allowance)) '$1 == "memory" && $2 > 0 && $2 <= most { held = 1 } END { exit !held }' out.txt ||
      { echo "FAILED: more memory than $((6 + allowance)) MiB"; exit 1; }
    if [ -e relax_a.dat ] || [ -e relax_b.dat ]; then echo "FAILED: files are left"; exit 1; fi
  done
done

TAILRACE_IO_THREADS=0 $TEST_MPIRUN -n 2 "$program" --size 50 --budget 1 --check > out.txt
grep -q "the same as in memory" out.txt
"$program" --help > out.txt
grep -q "usage: mpirun" out.txt
for wrong in "--depth 0" "--size" "--nothing 1" "--budget 1 --size 40000"; do
  # shellcheck disable=SC2086
  if "$program" $wrong 2> error.txt; then echo "FAILED: $wrong was taken"; exit 1; fi
  [ -s error.txt ]
done
if "$program" --size 50 --out missing/directory 2> error.txt; then exit 1; fi
grep -q "tr_window_open.*No such file" error.txt
