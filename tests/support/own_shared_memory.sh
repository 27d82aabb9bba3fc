#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# own_shared_memory.sh DIRECTORY COMMAND...: runs the command with Open MPI's shared memory in DIRECTORY, which goes when the
# command ends. Where this script is killed too, the next run empties it. MPICH's memory has its place in /dev/shm; what
# killed ranks have left there goes too.
directory=$1
shift

# A segment that somebody is about to map is open, and one that is closed again is mapped: hence this order.
remove_left_segments() {
  local segment
  for segment in /dev/shm/mpich_shar_tmp* /dev/shm/ucx_shm_posix_*; do
    [ -e "$segment" ] || continue
    ls -l /proc/[0-9]*/fd 2>/dev/null | grep -qF "$segment" && continue
    grep -qsF "$segment" /proc/[0-9]*/maps || rm -f "$segment"
  done
}

rm -rf "$directory" && mkdir -p "$directory" || exit 1
trap 'rm -rf "$directory"; remove_left_segments' EXIT
export OMPI_MCA_btl_vader_backing_directory=$directory  # Open MPI 4
export OMPI_MCA_btl_sm_backing_directory=$directory     # Open MPI 5
"$@"
