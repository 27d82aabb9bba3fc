#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# compare.py finds no difference between files of one version, and finds the bytes of a version that writes others.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
rm -rf one && cmake --install "$TEST_BUILD" --prefix "$PWD/one" >/dev/null
compare() { python3 "$here/compare.py" --ranks 3 --servers 1 --launcher "$TEST_MPIRUN" --compilers "$TEST_MPICC" "$TEST_MPIFORT" "$@"; }
compare one one
# Where only the random numbers of the two differ, their indexes and checkpoints do.
if compare one one --random-differs >found; then echo "FAILED: other run numbers were not found"; exit 1; fi
grep -q "one.0" found && grep -q "ccsds.grib2.trx" found || { echo "FAILED: not all differences were found"; cat found; exit 1; }
rm -rf one found
