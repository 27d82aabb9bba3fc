/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Preloaded by ./dev bench shared: a file under BENCH_SLOW_FILE (a path or the begin of one) behaves as on
 * storage that serves one call after another, as a file of a parallel file system whose lock goes from client
 * to client. Each call that moves data, and fsync, takes BENCH_SLOW_LATENCY_NS and its bytes at
 * BENCH_SLOW_RATE bytes a second, during which the file serves nobody else, on whatever rank. A write or
 * fsync of a rank that is not the last to have used the file, and a read behind another rank's write, takes
 * BENCH_SLOW_HANDOVER_NS besides: the server calls the lock back from the client that has it, before it
 * grants it to the next one. Readers share it. No other call is charged.
 *
 * The lock is a reservation. The clock of each file, in memory that all ranks share (BENCH_SLOW_CLOCKS, made
 * by the bench), says until when the file is taken. A call moves it on by what it costs, atomically, and
 * sleeps until its own end. So ranks are served in the order in which they came, the time that one of them
 * oversleeps delays nobody else, and a rank that is killed leaves no lock behind.
 *
 * glibc's stdio calls read(2) and write(2) from within, where a preload does not see it: FILEs of such a file
 * are made with fopencookie(3), which has the same buffers and calls functions of ours. It fills a caller's
 * memory byte by byte where there is no buffer, which a FILE of a descriptor does not: fread does it here
 * with one call. */
#define _GNU_SOURCE
#include "slow_storage.h"

#include <aio.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { most_files = 4096, clocks = 64, small = 1 << 20, most_clients = 2047, use_bits = 12, step_bits = 4 };

static const char* slow_file;
static int64_t latency_ns, handover_ns, bytes_per_second;
static _Atomic uint64_t* clock_of;            /* by inode: the end in steps of 16 ns, and the use before */
static unsigned me;                           /* among the clients, from 1 */
static atomic_uchar clock_number[most_files]; /* of a descriptor, from 1; 0: not one of ours */
static atomic_int is_charged = 1;
static atomic_long writes, bytes_written, small_writes, last_write_is_small, reads, bytes_read, small_reads,
    syncs;

/* The function behind the one that has this name here. */
#define NEXT(name)               \
  static __typeof__(&name) next; \
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, #name)

static int64_t number_of(const char* variable) {
  const char* const text = getenv(variable);
  return text == NULL ? 0 : atoll(text);
}

/* The rank that Open MPI or MPICH has given to this process. */
static unsigned client(void) {
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank == NULL) rank = getenv("PMI_RANK");
  return 1 + (rank != NULL ? (unsigned)atoi(rank) : (unsigned)getpid()) % most_clients;
}

__attribute__((constructor)) static void set_up(void) {
  const char* const path = getenv("BENCH_SLOW_CLOCKS");
  latency_ns = number_of("BENCH_SLOW_LATENCY_NS");
  handover_ns = number_of("BENCH_SLOW_HANDOVER_NS");
  me = client();
  bytes_per_second = number_of("BENCH_SLOW_RATE");
  if (path == NULL || getenv("BENCH_SLOW_FILE") == NULL || bytes_per_second <= 0) return;
  const int file = open(path, O_RDWR);
  void* const memory =
      file < 0 ? MAP_FAILED
               : mmap(NULL, clocks * sizeof *clock_of, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) {
    fprintf(stderr, "slow_storage: %s: %s; BENCH_SLOW_CLOCKS names a file of %zu bytes\n", path,
            strerror(errno), clocks * sizeof *clock_of);
    abort(); /* unslowed figures would be believed */
  }
  clock_of = memory;
  slow_file = getenv("BENCH_SLOW_FILE");
}

/* ---- the charge
 * ---------------------------------------------------------------------------------------------- */

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int clock_number_of(int file) { return file >= 0 && file < most_files ? clock_number[file] : 0; }

enum use { reads_it, writes_it };

/* Returns how many nanoseconds a call waits for the lock of the file. `last` is the client that has used the
 * file last, and how. */
static int64_t handover(unsigned last, enum use use) {
  const unsigned holder = last >> 1;
  const int is_shared = use == reads_it && (last & 1) == reads_it;
  return holder == 0 || holder == me || is_shared ? 0 : handover_ns;
}

/* Reserves the file for a call that moves so many bytes. Returns when its turn ends. */
static int64_t reserve(int clock_number, int64_t bytes, enum use use) {
  const int64_t cost = latency_ns + (int64_t)((double)bytes * 1e9 / (double)bytes_per_second);
  _Atomic uint64_t* const clock = &clock_of[clock_number - 1];
  uint64_t before = *clock;
  int64_t end;
  do {
    const int64_t now = now_ns(), taken_until = (int64_t)(before >> use_bits << step_bits);
    end = (taken_until > now ? taken_until : now) + cost +
          handover((unsigned)(before & ((1 << use_bits) - 1)), use);
  } while (
      !atomic_compare_exchange_weak(clock, &before, (uint64_t)end >> step_bits << use_bits | me << 1 | use));
  return end;
}

static void sleep_until(int64_t end) {
  static __thread int is_exact;
  if (!is_exact) prctl(PR_SET_TIMERSLACK, 1); /* the default adds 50 us to each call */
  is_exact = 1;
  const struct timespec time = {end / 1000000000, end % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) continue;
}

static void count_write(int64_t bytes) {
  writes++;
  bytes_written += bytes;
  small_writes += bytes < small;
  last_write_is_small = bytes < small;
}

static void count_read(int64_t bytes) {
  reads++;
  bytes_read += bytes;
  small_reads += bytes < small;
}

/* Does `call` and waits as long as what it has moved costs: a read at the end of a file may move nothing. The
 * page cache takes microseconds. */
#define CHARGED(file, call, use, count)                                \
  const __typeof__(call) result = call;                                \
  const int error = errno;                                             \
  const int number = clock_number_of(file);                            \
  if (number == 0 || !is_charged) return result;                       \
  if (result >= 0) count;                                              \
  sleep_until(reserve(number, result > 0 ? (int64_t)result : 0, use)); \
  errno = error;                                                       \
  return result

ssize_t write(int file, const void* data, size_t bytes) {
  NEXT(write);
  CHARGED(file, next(file, data, bytes), writes_it, count_write(result));
}

ssize_t read(int file, void* data, size_t bytes) {
  NEXT(read);
  CHARGED(file, next(file, data, bytes), reads_it, count_read(result));
}

ssize_t writev(int file, const struct iovec* parts, int count) {
  NEXT(writev);
  CHARGED(file, next(file, parts, count), writes_it, count_write(result));
}

ssize_t readv(int file, const struct iovec* parts, int count) {
  NEXT(readv);
  CHARGED(file, next(file, parts, count), reads_it, count_read(result));
}

ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  NEXT(pwrite);
  CHARGED(file, next(file, data, bytes, offset), writes_it, count_write(result));
}

ssize_t pwrite64(int file, const void* data, size_t bytes, off64_t offset) {
  return pwrite(file, data, bytes, offset);
}

ssize_t pread(int file, void* data, size_t bytes, off_t offset) {
  NEXT(pread);
  CHARGED(file, next(file, data, bytes, offset), reads_it, count_read(result));
}

ssize_t pread64(int file, void* data, size_t bytes, off64_t offset) {
  return pread(file, data, bytes, offset);
}

ssize_t pwritev(int file, const struct iovec* parts, int count, off_t offset) {
  NEXT(pwritev);
  CHARGED(file, next(file, parts, count, offset), writes_it, count_write(result));
}

ssize_t pwritev64(int file, const struct iovec* parts, int count, off64_t offset) {
  return pwritev(file, parts, count, offset);
}

ssize_t preadv(int file, const struct iovec* parts, int count, off_t offset) {
  NEXT(preadv);
  CHARGED(file, next(file, parts, count, offset), reads_it, count_read(result));
}

ssize_t preadv64(int file, const struct iovec* parts, int count, off64_t offset) {
  return preadv(file, parts, count, offset);
}

int fsync(int file) {
  NEXT(fsync);
  CHARGED(file, next(file), writes_it, syncs++);
}

int fdatasync(int file) {
  NEXT(fdatasync);
  CHARGED(file, next(file), writes_it, syncs++);
}

/* ---- calls that return before their turn ends
 * ---------------------------------------------------------------------------------------------- */

/* ompio reads and writes pieces of large files by aio(7). Such a call moves its bytes at once here and
 * reserves its turn; aio_error says EINPROGRESS until the turn has ended. */
static struct turn {
  _Atomic(const struct aiocb*) call; /* NULL: free */
  int64_t end;
  ssize_t result;
  int error;
} turns[256];

static struct turn* turn_of(const struct aiocb* call) {
  for (size_t i = 0; i < sizeof turns / sizeof *turns; i++)
    if (turns[i].call == call) return &turns[i];
  return NULL;
}

static int begin_turn(const struct aiocb* call, int clock_number, ssize_t result, int error, enum use use) {
  for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
    const struct aiocb* nobody = NULL;
    if (!atomic_compare_exchange_strong(&turns[i].call, &nobody, call)) continue;
    turns[i].end = is_charged ? reserve(clock_number, result > 0 ? (int64_t)result : 0, use) : 0;
    turns[i].result = result;
    turns[i].error = result < 0 ? error : 0;
    return 0;
  }
  errno = EAGAIN;
  return -1;
}

int aio_write(struct aiocb* call) {
  NEXT(aio_write);
  const int number = clock_number_of(call->aio_fildes);
  if (number == 0) return next(call);
  static __typeof__(&pwrite) move;
  if (move == NULL) *(void**)&move = dlsym(RTLD_NEXT, "pwrite");
  const ssize_t result =
      move(call->aio_fildes, (const void*)call->aio_buf, call->aio_nbytes, call->aio_offset);
  if (result >= 0 && is_charged) count_write(result);
  return begin_turn(call, number, result, errno, writes_it);
}

int aio_read(struct aiocb* call) {
  NEXT(aio_read);
  const int number = clock_number_of(call->aio_fildes);
  if (number == 0) return next(call);
  static __typeof__(&pread) move;
  if (move == NULL) *(void**)&move = dlsym(RTLD_NEXT, "pread");
  const ssize_t result = move(call->aio_fildes, (void*)call->aio_buf, call->aio_nbytes, call->aio_offset);
  if (result >= 0 && is_charged) count_read(result);
  return begin_turn(call, number, result, errno, reads_it);
}

int aio_error(const struct aiocb* call) {
  NEXT(aio_error);
  const struct turn* const turn = turn_of(call);
  if (turn == NULL) return next(call);
  return now_ns() < turn->end ? EINPROGRESS : turn->error;
}

ssize_t aio_return(struct aiocb* call) {
  NEXT(aio_return);
  struct turn* const turn = turn_of(call);
  if (turn == NULL) return next(call);
  const ssize_t result = turn->result;
  errno = turn->error;
  turn->call = NULL;
  return result;
}

/* struct aiocb64 is struct aiocb where off_t has 64 bits. */
int aio_write64(struct aiocb64* call) { return aio_write((struct aiocb*)call); }
int aio_read64(struct aiocb64* call) { return aio_read((struct aiocb*)call); }
int aio_error64(const struct aiocb64* call) { return aio_error((const struct aiocb*)call); }
ssize_t aio_return64(struct aiocb64* call) { return aio_return((struct aiocb*)call); }

/* ---- which descriptors are of the file
 * ----------------------------------------------------------------------- */

static int is_slow(const char* path) {
  return slow_file != NULL && strncmp(path, slow_file, strlen(slow_file)) == 0;
}

static int remember(int file, const char* path) {
  struct stat info;
  if (file >= 0 && file < most_files)
    clock_number[file] = is_slow(path) && fstat(file, &info) == 0 ? 1 + info.st_ino % clocks : 0;
  return file;
}

/* The mode of a file that open(2) makes; a macro, since va_start wants the function's own arguments. */
#define MODE_OF(flags, mode)                                        \
  mode_t mode = 0;                                                  \
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) { \
    va_list arguments;                                              \
    va_start(arguments, flags);                                     \
    mode = va_arg(arguments, mode_t);                               \
    va_end(arguments);                                              \
  }

int open(const char* path, int flags, ...) {
  NEXT(open);
  MODE_OF(flags, mode)
  return remember(next(path, flags, mode), path);
}

int open64(const char* path, int flags, ...) {
  NEXT(open64);
  MODE_OF(flags, mode)
  return remember(next(path, flags, mode), path);
}

int openat(int directory, const char* path, int flags, ...) {
  NEXT(openat);
  MODE_OF(flags, mode)
  return remember(next(directory, path, flags, mode), path);
}

int openat64(int directory, const char* path, int flags, ...) {
  NEXT(openat64);
  MODE_OF(flags, mode)
  return remember(next(directory, path, flags, mode), path);
}

int close(int file) {
  NEXT(close);
  if (file >= 0 && file < most_files) clock_number[file] = 0;
  return next(file);
}

/* ---- stdio
 * ---------------------------------------------------------------------------------------------------- */

static int file_of(void* cookie) { return (int)(intptr_t)cookie; }

static ssize_t cookie_read(void* cookie, char* data, size_t bytes) {
  return read(file_of(cookie), data, bytes);
}

/* fopencookie(3): such a function returns 0, not -1, for an error. */
static ssize_t cookie_write(void* cookie, const char* data, size_t bytes) {
  const ssize_t written = write(file_of(cookie), data, bytes);
  return written < 0 ? 0 : written;
}

static int cookie_seek(void* cookie, off64_t* offset, int whence) {
  *offset = lseek(file_of(cookie), *offset, whence);
  return *offset < 0 ? -1 : 0;
}

static int cookie_close(void* cookie) { return close(file_of(cookie)); }

static _Atomic(FILE*) stream_of[most_files]; /* by descriptor */

static int file_of_stream(FILE* stream) {
  for (int file = 0; file < most_files; file++)
    if (stream_of[file] == stream && clock_number[file] != 0) return file;
  return -1;
}

size_t fread(void* data, size_t size, size_t count, FILE* stream) {
  NEXT(fread);
  const int file =
      __fbufsize(stream) == 1 ? file_of_stream(stream) : -1; /* 1: setvbuf took the buffer away */
  if (file < 0) return next(data, size, count, stream);
  const ssize_t got = read(file, data, size * count);
  return got < 0 || size == 0 ? 0 : (size_t)got / size;
}

FILE* fdopen(int file, const char* mode) {
  NEXT(fdopen);
  if (clock_number_of(file) == 0) return next(file, mode);
  const cookie_io_functions_t calls = {cookie_read, cookie_write, cookie_seek, cookie_close};
  return stream_of[file] = fopencookie((void*)(intptr_t)file, mode, calls);
}

/* ---- counts
 * --------------------------------------------------------------------------------------------------- */

slow_storage_take slow_storage_take_counts;

struct slow_storage_counts slow_storage_take_counts(int charges) {
  const struct slow_storage_counts counts = {
      .writes = atomic_exchange(&writes, 0),
      .bytes_written = atomic_exchange(&bytes_written, 0),
      .small_writes = atomic_exchange(&small_writes, 0),
      .last_write_is_small = atomic_exchange(&last_write_is_small, 0),
      .reads = atomic_exchange(&reads, 0),
      .bytes_read = atomic_exchange(&bytes_read, 0),
      .small_reads = atomic_exchange(&small_reads, 0),
      .syncs = atomic_exchange(&syncs, 0),
  };
  is_charged = charges;
  return counts;
}
