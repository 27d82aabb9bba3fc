#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Without ierr a collective call that fails prints its text and stops with a non-zero exit; nothing is printed
# when it does not fail. Argument: the face_test program.
set -u
output=$(RECORDER_REFUSE=tr_stream_end "$1" stop_at_end 2>&1)
code=$?
if [ $code -eq 0 ]; then
  echo "a refused end without ierr did not stop the program"
  exit 1
fi
if [ "$(grep -c 'tr_stream_end: refused by the recorder' <<<"$output")" != 1 ]; then
  echo "expected the error text once, got: $output"
  exit 1
fi
output=$("$1" stop_at_end 2>&1)
code=$?
if [ $code -ne 0 ] || [ -n "$output" ]; then
  echo "an end that succeeds gave exit $code and: $output"
  exit 1
fi
