#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# A static library without any optional part: built, installed and used.
. "$(dirname "$0")/checks.sh"

# As in the release build and beside it, as deep in the tree: ccache has the objects of all modules that the options do
# not change, and knows them by paths relative to the build directory.
build=$2
try "the static build configures" cmake -S "$TEST_SOURCE" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
  -DCMAKE_CXX_COMPILER="$1" -DMPI_C_COMPILER="$TEST_MPICC" -DMPI_Fortran_COMPILER="$TEST_MPIFORT" \
  -DBUILD_SHARED_LIBS=OFF -DTAILRACE_GRIB=OFF -DTAILRACE_HDF5=OFF -DTAILRACE_URING=OFF -DTAILRACE_ZSTD=OFF -DTAILRACE_LZ4=OFF -DTAILRACE_NETCDF=OFF -DTAILRACE_JSON=OFF -DTAILRACE_YAML=OFF -DTAILRACE_CLI=OFF \
  -DTAILRACE_BUILD_TESTS=OFF -DTAILRACE_BUILD_EXAMPLES=OFF -DTAILRACE_BUILD_BENCH=OFF
try "the static build builds" cmake --build "$build"
rm -rf prefix
try "cmake --install" cmake --install "$build" --prefix "$PWD/prefix"
test -z "$(find prefix -name 'libtailrace*.so*')" || fail "a shared library was installed"
builds_with_cmake "$PWD/prefix"
builds_with_pkg_config "$PWD/prefix"
ldd pc_c | grep -E 'tailrace|eccodes|hdf5|deflate|uring' && fail "a program with the static library needs these libraries"
rm -rf prefix consumer written
exit $((failures > 0))
