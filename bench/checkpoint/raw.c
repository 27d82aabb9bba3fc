/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#include "raw.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { portion = 16 << 20, header = 4096, path_room = 4096 };

struct cost raw_copy(const struct field* f, void* room) {
  MPI_Barrier(f->comm);
  const struct cost begin = cost_now();
  memcpy(room, f->data, f->bytes);
  return longest_cost(f, begin, cost_now());
}

static void part_name(char* name, const char* path, int part) {
  snprintf(name, path_room, "%s.r%05d", path, part);
}

static void write_all(int file, const char* data, size_t bytes, off_t at) {
  while (bytes > 0) {
    const size_t length = bytes < portion ? bytes : portion;
    must(pwrite(file, data, length, at) == (ssize_t)length, "pwrite");
    data += length, at += (off_t)length, bytes -= length;
  }
}

static int open_to_write(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT, 0666);
  must(file >= 0, "open");
  return file;
}

static void sync_directory_of(const char* path) {
  char name[path_room];
  snprintf(name, sizeof name, "%s", path);
  const int directory = open(dirname(name), O_RDONLY | O_DIRECTORY);
  must(directory >= 0 && fsync(directory) == 0, "fsync of the directory");
  close(directory);
}

double raw_write(const struct field* f, const char* path, int is_local) {
  static const char head[128];
  char name[path_room];
  snprintf(name, sizeof name, "%s", path);
  if (is_local) part_name(name, path, f->rank);
  long long before = 0, bytes = (long long)f->bytes;
  MPI_Exscan(&bytes, &before, 1, MPI_LONG_LONG, MPI_SUM, f->comm);
  if (f->rank == 0) before = 0;
  MPI_Barrier(f->comm);
  const double begin = MPI_Wtime();
  const int file = open_to_write(name);
  const int first = f->rank != 0 ? -1 : is_local ? open_to_write(path) : file;
  write_all(file, (const char*)f->data, f->bytes, is_local ? 0 : header + before);
  if (first >= 0) write_all(first, head, sizeof head, 0);
  if (is_local && first >= 0) must(fsync(first) == 0, "fsync");
  must(fsync(file) == 0, "fsync");
  MPI_Barrier(f->comm);
  if (first >= 0) {
    sync_directory_of(path);
    write_all(first, head, sizeof head, 0);
    must(fsync(first) == 0, "fsync");
    if (first != file) close(first);
  }
  close(file);
  MPI_Barrier(f->comm);
  return longest(f, MPI_Wtime() - begin);
}

double raw_keep(const char* from, const char* to, size_t bytes, char* room) {
  unlink(to);
  const double begin = MPI_Wtime();
  const int in = open(from, O_RDONLY), out = open_to_write(to);
  must(in >= 0, "open");
  for (size_t at = 0; at < bytes; at += portion) {
    const size_t length = bytes - at < portion ? bytes - at : portion;
    must(pread(in, room, length, (off_t)at) == (ssize_t)length, "pread");
    must(pwrite(out, room, length, (off_t)at) == (ssize_t)length, "pwrite");
  }
  must(fsync(out) == 0, "fsync");
  sync_directory_of(to);
  close(in);
  close(out);
  return MPI_Wtime() - begin;
}

static off_t size_of(const char* path) {
  struct stat about;
  must(stat(path, &about) == 0, "stat");
  return about.st_size;
}

static off_t size_of_all(const char* path, int parts) {
  char name[path_room];
  off_t all = parts > 0 ? 0 : size_of(path);
  for (int part = 0; part < parts; part++) {
    part_name(name, path, part);
    all += size_of(name);
  }
  return all;
}

size_t raw_share(const struct field* f, const char* path, int parts) {
  return (size_t)(size_of_all(path, parts) / f->ranks + 1);
}

/* Reads the part of [begin, end) of all files, one after another, that lies in this one, which begins at
 * `at`. */
static char* read_some(const char* path, off_t at, off_t begin, off_t end, char* room) {
  const off_t from = begin > at ? begin - at : 0, size = size_of(path),
              to = end - at < size ? end - at : size;
  if (from >= to) return room;
  const int file = open(path, O_RDONLY);
  must(file >= 0, "open");
  for (off_t next = from; next < to;) {
    const ssize_t got = pread(file, room, (size_t)(to - next < portion ? to - next : portion), next);
    must(got > 0, "pread");
    next += got, room += got;
  }
  close(file);
  return room;
}

double raw_read(const struct field* f, const char* path, int parts, char* room, size_t room_bytes) {
  char name[path_room];
  const off_t share = (off_t)raw_share(f, path, parts);
  must((size_t)share <= room_bytes, "too little room");
  MPI_Barrier(f->comm);
  const double begin = MPI_Wtime();
  const off_t mine = share * f->rank;
  if (parts == 0) read_some(path, 0, mine, mine + share, room);
  off_t at = 0;
  for (int part = 0; part < parts; part++) {
    part_name(name, path, part);
    room = read_some(name, at, mine, mine + share, room);
    at += size_of(name);
  }
  return longest(f, MPI_Wtime() - begin);
}
