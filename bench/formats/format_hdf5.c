/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* HDF5 by itself: a chunk is one level of one step. Built with a parallel HDF5, the ranks write a step in one
 * collective H5Dwrite; with the serial one, a single process writes all of it. It is a program of its own,
 * since the library that streams are in uses the serial HDF5. */
#include <hdf5.h>
#include <stdlib.h>
#include <unistd.h>

#include "contest.h"

static int rank, ranks;
static long lower[2], upper[2];
static float* data;
static hid_t file, dataset, transfer, memory;

static void open_file(void) {
  const hsize_t size = (hsize_t)options.size, levels = (hsize_t)options.levels;
  const hsize_t shape[] = {0, levels, size, size}, most[] = {H5S_UNLIMITED, levels, size, size};
  const hsize_t chunk[] = {1, 1, size, size};
  const hsize_t own[] = {1, levels, (hsize_t)(upper[0] - lower[0]), size};
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS), how = H5Pcreate(H5P_DATASET_CREATE);
  transfer = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
#ifdef H5_HAVE_PARALLEL
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, hints());
  H5Pset_all_coll_metadata_ops(access, 1);
  H5Pset_coll_metadata_write(access, 1);
  H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
#endif
  H5Pset_chunk(how, 4, chunk);
  H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
  if (options.deflate > 0) {
    H5Pset_shuffle(how);
    H5Pset_deflate(how, (unsigned)options.deflate);
  }
  file = H5Fcreate(options.name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  must(file >= 0, "H5Fcreate", "failed");
  const hid_t space = H5Screate_simple(4, shape, most);
  dataset = H5Dcreate2(file, "t", H5T_IEEE_F32LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
  must(dataset >= 0, "H5Dcreate", "failed");
  memory = H5Screate_simple(4, own, NULL);
  H5Sclose(space);
  H5Pclose(how);
  H5Pclose(access);
}

/* H5Fflush calls MPI_File_sync in the MPI-IO driver, which is an fsync; in the serial one it is none. */
static void flush(void) {
  must(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0, "H5Fflush", "failed");
#ifndef H5_HAVE_PARALLEL
  int* descriptor;
  must(H5Fget_vfd_handle(file, H5P_DEFAULT, (void**)&descriptor) >= 0, "H5Fget_vfd_handle", "failed");
  must(fsync(*descriptor) == 0, "fsync", "failed");
#endif
}

static double write_step(long step) {
  const hsize_t size = (hsize_t)options.size, levels = (hsize_t)options.levels;
  const hsize_t shape[] = {(hsize_t)step + 1, levels, size, size};
  const hsize_t begin[] = {(hsize_t)step, 0, (hsize_t)lower[0], 0};
  const hsize_t count[] = {1, levels, (hsize_t)(upper[0] - lower[0]), size};
  const double started = MPI_Wtime();
  must(H5Dset_extent(dataset, shape) >= 0, "H5Dset_extent", "failed");
  const hid_t space = H5Dget_space(dataset);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, begin, NULL, count, NULL);
  must(H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, transfer, data) >= 0, "H5Dwrite", "failed");
  H5Sclose(space);
  flush();
  return longest_since(started, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  parse_options(argc, argv);
  bind_to_cores();
#ifndef H5_HAVE_PARALLEL
  must(ranks == 1, "the serial HDF5", "knows one writer");
#endif
  lower[0] = options.size * rank / ranks, upper[0] = options.size * (rank + 1) / ranks;
  lower[1] = 0, upper[1] = options.size;
  data = malloc((size_t)(options.levels * (upper[0] - lower[0]) * options.size) * sizeof *data);
  must(data != NULL, "memory", "none");
  make_values(data, lower, upper);
  open_file();
  write_turns(write_step);
  H5Dclose(dataset);
  must(H5Fclose(file) >= 0, "H5Fclose", "failed");
  MPI_Finalize();
  return 0;
}
