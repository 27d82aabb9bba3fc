/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* MPI_File_write_all with a view. The launcher is told which of Open MPI's I/O layers does it. */
#include "contender.h"

static MPI_File open_file(const char* path, const struct block* b, int how, MPI_Datatype part) {
  MPI_File file;
  must(MPI_File_open(b->comm, path, how, hints(), &file) == MPI_SUCCESS, "MPI_File_open");
  must(MPI_File_set_view(file, 0, MPI_DOUBLE, part, "native", hints()) == MPI_SUCCESS, "MPI_File_set_view");
  return file;
}

static void write_arrays(const char* path, const struct block* b, int arrays, int sync) {
  MPI_Datatype part = part_of_whole(b);
  MPI_File file = open_file(path, b, MPI_MODE_CREATE | MPI_MODE_WRONLY, part);
  const int count = (int)(b->count[0] * b->count[1]);
  for (int i = 0; i < arrays; i++)
    must(MPI_File_write_all(file, b->data, count, MPI_DOUBLE, MPI_STATUS_IGNORE) == MPI_SUCCESS, "write_all");
  MPI_File_close(&file);
  MPI_Type_free(&part);
  if (sync) sync_file(path, b);
}

static void read_array(const char* path, const struct block* b) {
  MPI_Datatype part = part_of_whole(b);
  MPI_File file = open_file(path, b, MPI_MODE_RDONLY, part);
  const int count = (int)(b->count[0] * b->count[1]);
  must(MPI_File_read_all(file, b->data, count, MPI_DOUBLE, MPI_STATUS_IGNORE) == MPI_SUCCESS, "read_all");
  MPI_File_close(&file);
  MPI_Type_free(&part);
}

const struct contender contender = {"mpi_io", 1, NULL, NULL, write_arrays, read_array};
