#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# The Fortran face compiles with LLVM's flang, without MPI's modules, and hands over the same calls. Skipped
# where there is no flang from 19 on: older ones lack polymorphic types. Arguments: the recorder's library, the
# cases.
set -u
here=$(cd "$(dirname "$0")" && pwd)
recorder=$1
shift
flang=
for name in flang flang-new flang-22 flang-21 flang-20 flang-new-19; do
  version=$("$name" --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p' | head -1)
  if [ -n "$version" ] && [ "$version" -ge 19 ]; then
    flang=$name
    break
  fi
done
if [ -z "$flang" ]; then
  echo "no flang from version 19 on is installed"
  exit 77
fi
options="-cpp -DTAILRACE_NO_MPI_F08 -I$here"
set -e
$flang $options -c "$here/../../bindings/fortran/tailrace.F90" -o tailrace.o
$flang $options -c "$here/checks.F90" -o checks.o
for source in recorder_checks checkpoints_face_test encoders_face_test face_test; do
  $flang $options -c "$here/$source.F90" -o $source.o
done
$flang face_test.o checkpoints_face_test.o encoders_face_test.o recorder_checks.o checks.o tailrace.o "$recorder" -o face_test
failed=0
for name in "$@"; do
  refuse=
  [ "$name" = brackets_keep_errors ] && refuse=tr_stream_put
  [ "$name" = items_keep_errors ] && refuse=tr_checkpoint_end
  RECORDER_REFUSE=$refuse ./face_test "$name" || { echo "failed: $name"; failed=1; }
done
exit $failed
