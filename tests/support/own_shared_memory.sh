#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# own_shared_memory.sh DIRECTORY COMMAND...: runs the command with Open MPI's shared memory in DIRECTORY, which goes when the
# command ends. Where this script is killed too, the next run empties it.
directory=$1
shift
rm -rf "$directory" && mkdir -p "$directory" || exit 1
trap 'rm -rf "$directory"' EXIT
export OMPI_MCA_btl_vader_backing_directory=$directory  # Open MPI 4
export OMPI_MCA_btl_sm_backing_directory=$directory     # Open MPI 5
"$@"
