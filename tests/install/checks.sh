# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Sourced by the install tests.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
failures=0

fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# try WHAT COMMAND...: a step without which the rest makes no sense.
try() {
  local what=$1
  shift
  "$@" >step.log 2>&1 || { echo "FAILED: $what"; echo "\$ $*"; tail -n 40 step.log; exit 1; }
}

# runs_right PROGRAM: on 2 ranks it writes exactly the bytes of the field.
runs_right() {
  rm -rf written && mkdir written
  try "$1 runs" $TEST_MPIRUN -n 2 "$1" written
  python3 - "$1" <<'PY' || fail "$1 wrote other bytes than those of the field"
import array, sys
want = array.array("f", [100 * row + column for row in range(10) for column in range(12)])
with open("written/field.raw", "rb") as file:
    got = file.read()
if got != want.tobytes():
    sys.exit(f"{sys.argv[1]}: {len(got)} bytes instead of {len(want.tobytes())}, or other values")
PY
}

# builds_with_cmake PREFIX FURTHER...: configures and builds the consumer project and runs what it makes.
builds_with_cmake() {
  local prefix=$1
  shift
  rm -rf consumer
  try "the consumer project configures" cmake -S "$here/consumer" -B consumer -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
    -DMPI_C_COMPILER="$TEST_MPICC" -DMPI_CXX_COMPILER="$TEST_MPICXX" -DMPI_Fortran_COMPILER="$TEST_MPIFORT" "$@"
  try "the consumer project builds" cmake --build consumer
  for program in from_c from_cpp from_fortran; do runs_right "consumer/$program"; done
}

# builds_with_pkg_config PREFIX: one line for each language is all it takes.
builds_with_pkg_config() {
  local file flags
  file=$(find "$1" -name tailrace.pc)
  flags=$(PKG_CONFIG_PATH=$(dirname "$file") pkg-config --cflags --libs tailrace) || fail "pkg-config does not know tailrace"
  try "mpicc with pkg-config" $TEST_MPICC -std=c99 "$here/from_c.c" -o pc_c $flags
  try "mpicxx with pkg-config" $TEST_MPICXX -std=c++20 "$here/from_cpp.cpp" -o pc_cpp $flags
  try "mpifort with pkg-config" $TEST_MPIFORT "$here/from_fortran.f90" -o pc_fortran $flags
  for program in ./pc_c ./pc_cpp ./pc_fortran; do runs_right "$program"; done
}
