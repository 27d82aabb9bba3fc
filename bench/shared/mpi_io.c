/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* MPI-IO: MPI_File_write_at and _read_at for each piece, or MPI_File_write_all and _read_all of all pieces in
 * one call, with a view. The launcher is told which of Open MPI's I/O layers does it. Hints as an expert sets
 * them: collective buffering for the collective calls, since the pieces of all ranks together are one
 * contiguous part of the file; no data sieving for the others. Layers ignore hints that they do not know. */
#include <limits.h>

#include "contender.h"

static MPI_File file;
static MPI_Datatype piece_type, view;

static MPI_Info make_hints(const char* const (*pairs)[2], int count) {
  MPI_Info info;
  MPI_Info_create(&info);
  for (int i = 0; i < count; i++) MPI_Info_set(info, pairs[i][0], pairs[i][1]);
  return info;
}

static void open_with(const char* path, const struct share* share, int writes, MPI_Info info) {
  const int how = writes ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
  must(MPI_File_open(share->comm, path, how, info, &file) == MPI_SUCCESS, "MPI_File_open");
}

static void open_independent(const char* path, const struct share* share, int writes) {
  static const char* const pairs[][2] = {{"romio_ds_write", "disable"}, {"romio_ds_read", "disable"}};
  MPI_Info info = make_hints(pairs, 2);
  open_with(path, share, writes, info);
  MPI_Info_free(&info);
}

static void put(const void* piece, long bytes, long offset) {
  must(MPI_File_write_at(file, offset, piece, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS,
       "MPI_File_write_at");
}

static void get(void* piece, long bytes, long offset) {
  must(MPI_File_read_at(file, offset, piece, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS,
       "MPI_File_read_at");
}

static void close_independent(const char* path, const struct share* share, int sync) {
  must(MPI_File_close(&file) == MPI_SUCCESS, "MPI_File_close");
  if (sync) sync_file(path, share);
}

/* One piece, and room for those of the other ranks: MPI repeats the view to the end of the file. */
static void open_collective(const char* path, const struct share* share, int writes) {
  static const char* const pairs[][2] = {
      {"romio_cb_write", "enable"}, {"romio_cb_read", "enable"}, {"cb_buffer_size", "16777216"}};
  MPI_Info info = make_hints(pairs, 3);
  open_with(path, share, writes, info);
  must(share->pieces <= INT_MAX, "too many pieces for one call");
  MPI_Type_contiguous((int)share->bytes, MPI_BYTE, &piece_type);
  MPI_Type_create_resized(piece_type, 0, share->bytes * share->ranks, &view);
  MPI_Type_commit(&piece_type);
  MPI_Type_commit(&view);
  must(MPI_File_set_view(file, offset_of(share, 0), MPI_BYTE, view, "native", info) == MPI_SUCCESS,
       "MPI_File_set_view");
  MPI_Info_free(&info);
}

static void put_all(const void* pieces, const struct share* share) {
  must(MPI_File_write_all(file, pieces, (int)share->pieces, piece_type, MPI_STATUS_IGNORE) == MPI_SUCCESS,
       "MPI_File_write_all");
}

static void get_all(void* pieces, const struct share* share) {
  must(MPI_File_read_all(file, pieces, (int)share->pieces, piece_type, MPI_STATUS_IGNORE) == MPI_SUCCESS,
       "MPI_File_read_all");
}

static void close_collective(const char* path, const struct share* share, int sync) {
  close_independent(path, share, sync);
  MPI_Type_free(&view);
  MPI_Type_free(&piece_type);
}

const struct contender mpi_at = {"mpi_at", NULL, NULL, open_independent, put,
                                 get,      NULL, NULL, close_independent};
const struct contender mpi_all = {"mpi_all", NULL,    NULL,    open_collective, NULL,
                                  NULL,      put_all, get_all, close_collective};
