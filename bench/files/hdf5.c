/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Parallel HDF5: one dataset for each array, contiguous or in chunks (BENCH_LAYOUT), written collectively or
 * not (BENCH_TRANSFER). */
#include <hdf5.h>
#include <stdio.h>

#include "contender.h"

static void write_dataset(hid_t file, const struct block* b, int number) {
  const hsize_t shape[] = {(hsize_t)b->shape[0], (hsize_t)b->shape[1]};
  const hsize_t lower[] = {(hsize_t)b->lower[0], (hsize_t)b->lower[1]};
  const hsize_t count[] = {(hsize_t)b->count[0], (hsize_t)b->count[1]};
  char name[16];
  snprintf(name, sizeof name, "array%d", number);
  const hid_t whole = H5Screate_simple(2, shape, NULL), mine = H5Screate_simple(2, count, NULL);
  const hid_t how = H5Pcreate(H5P_DATASET_CREATE), collective = H5Pcreate(H5P_DATASET_XFER);
  long chunk[2];
  if (chunk_of_blocks(b, chunk)) {
    const hsize_t extents[] = {(hsize_t)chunk[0], (hsize_t)chunk[1]};
    H5Pset_chunk(how, 2, extents);
  }
  H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
  H5Pset_dxpl_mpio(collective, is_independent() ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE);
  const hid_t dataset = H5Dcreate(file, name, H5T_NATIVE_DOUBLE, whole, H5P_DEFAULT, how, H5P_DEFAULT);
  H5Sselect_hyperslab(whole, H5S_SELECT_SET, lower, NULL, count, NULL);
  must(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, mine, whole, collective, b->data) >= 0, "H5Dwrite");
  H5Dclose(dataset);
  H5Pclose(collective);
  H5Pclose(how);
  H5Sclose(mine);
  H5Sclose(whole);
}

static void write_arrays(const char* path, const struct block* b, int arrays, int sync) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, b->comm, hints());
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  must(file >= 0, "H5Fcreate");
  for (int i = 0; i < arrays; i++) write_dataset(file, b, i);
  must(H5Fclose(file) >= 0, "H5Fclose");
  H5Pclose(access);
  if (sync) sync_file(path, b);
}

const struct contender contender = {"hdf5", 0, NULL, NULL, write_arrays, NULL};
