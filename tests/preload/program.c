/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A program that uses a file (argument 2) in one of many ways (a word, argument 1), as programs do that know
 * nothing of Tailrace. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { records = 200000, threads = 4, record = 12 };

static int failures;
static int file;
static const char* name;
static char seen[records];
static pthread_barrier_t together;

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "FAILED: %s (%s)\n", what, strerror(errno));
  ++failures;
}

/* Reads records in one of several threads that share a descriptor. Each read must give the next record. */
static void* read_records(void* unused) {
  char text[record + 1];
  (void)unused;
  pthread_barrier_wait(&together);
  while (read(file, text, record) == record) {
    text[record] = '\0';
    __atomic_fetch_add(&seen[atoi(text)], 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

/* Appends records in one of several threads. Each thread opens the file itself. */
static void* append_records(void* first) {
  char text[record + 1];
  const int own = open(name, O_WRONLY | O_APPEND);
  pthread_barrier_wait(&together);
  for (int n = (int)(long)first; n < records; n += threads) {
    snprintf(text, sizeof(text), "%011d\n", n);
    if (write(own, text, record) != record) abort();
  }
  expect(close(own) == 0, "close");
  return NULL;
}

static void in_threads(void* (*work)(void*)) {
  pthread_t all[threads];
  pthread_barrier_init(&together, NULL, threads);
  for (long n = 0; n < threads; ++n) pthread_create(&all[n], NULL, work, (void*)n);
  for (int n = 0; n < threads; ++n) pthread_join(all[n], NULL);
}

static void test_threads(const char* path) {
  name = path;
  file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  in_threads(append_records);
  expect(lseek(file, 0, SEEK_END) == (off_t)records * record, "the size after appends of threads");
  lseek(file, 0, SEEK_SET);
  in_threads(read_records);
  for (int n = 0; n < records; ++n) expect(seen[n] == 1, "a record was read once");
  expect(close(file) == 0, "close");
}

static void test_stdio(const char* path) {
  char text[100];
  FILE* stream = fopen(path, "w+");
  expect(stream != NULL && fileno(stream) > 2, "fopen");
  for (int n = 0; n < 20000; ++n) fprintf(stream, "%011d\n", n);
  expect(fseek(stream, 500 * record, SEEK_SET) == 0 && fgets(text, sizeof(text), stream) && atoi(text) == 500,
         "fseek and fgets");
  expect(fflush(stream) == 0 && ftruncate(fileno(stream), 600 * record) == 0, "ftruncate");
  expect(fseek(stream, 0, SEEK_END) == 0 && ftell(stream) == 600 * record, "ftell");
  expect(fclose(stream) == 0, "fclose");
  stream = fopen(path, "a");
  fputs("appended\n", stream);
  expect(fclose(stream) == 0, "fclose");
  stream = fopen(path, "a");
  expect(ftell(stream) == 600 * record + 9, "ftell of a stream that appends");
  expect(fclose(stream) == 0, "fclose");
  file = open(path, O_RDONLY);
  expect(fdopen(file, "w") == NULL && errno == EINVAL, "fdopen of what may not be written");
  expect(fdopen(file, "q") == NULL && errno == EINVAL, "fdopen with no mode");
  close(file);
  stream = fdopen(open(path, O_RDONLY), "r");
  int lines = 0;
  while (fgets(text, sizeof(text), stream)) ++lines;
  expect(lines == 601 && !strcmp(text, "appended\n"), "reading by fdopen");
  expect(fclose(stream) == 0, "fclose");
  expect(fopen(path, "wx") == NULL && errno == EEXIST, "fopen of what is there");
  fflush(stdout);
  expect(freopen(path, "a", stdout) != NULL, "freopen");
  printf("printed\n");
  expect(fclose(stdout) == 0, "fclose of stdout");
}

static void test_more_stdio(const char* path) {
  char text[100] = "";
  file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  expect(dprintf(file, "%s %d\n", "first", 1) == 8, "dprintf");
  const int second = open(path, O_WRONLY);
  FILE* stream = fdopen(file, "a");
  expect(stream != NULL && (fcntl(file, F_GETFL) & O_APPEND) != 0, "fdopen for appending");
  expect(pwrite(second, "other\n", 6, 8) == 6 && fputs("last\n", stream) >= 0 && fclose(stream) == 0,
         "appending by fdopen");
  close(second);
  for (int round = 0; round < 2; ++round) {
    expect(freopen(path, "r", stdin) != NULL, "freopen of stdin");
    const char* const lines[] = {"first 1\n", "other\n", "last\n"};
    for (int n = 0; n < 3; ++n)
      expect(fgets(text, sizeof(text), stdin) && !strcmp(text, lines[n]), "a line of stdin");
    expect(!fgets(text, sizeof(text), stdin) && feof(stdin), "the end of stdin");
  }
  expect(freopen(path, "r", stdin) != NULL && getchar() == 'f' && ftell(stdin) == 1, "ftell of stdin");
  FILE* const before = stdin;
  expect(fclose(stdin) == 0 && stdin != before, "fclose of stdin");
}

/* A stream that has reached the end of a file must return the bytes by which the file grows afterwards, as
 * libc's streams do. */
static void test_growing(const char* path) {
  static char bytes[9000], got[9000];
  file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  for (int is_buffered = 0; is_buffered < 2; ++is_buffered) {
    expect(ftruncate(file, 0) == 0 && pwrite(file, "0123456789", 10, 0) == 10, "write");
    FILE* const stream = fopen(path, "r");
    if (!is_buffered) setvbuf(stream, NULL, _IONBF, 0);
    expect(fread(got, 1, 8192, stream) == 10 && feof(stream), "fread to the end");
    expect(pwrite(file, bytes, sizeof(bytes), 10) == (ssize_t)sizeof(bytes), "pwrite");
    expect(fread(got, 1, 8192, stream) == 8192, "fread after the file has grown");
    fclose(stream);
  }
  close(file);
}

/* Copies that the kernel refuses before it reads anything must fail with the same errors. */
static void test_copying(const char* path) {
  char byte = 0;
  off_t zero = 0;
  int ends[2];
  file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  const int reader = open(path, O_RDONLY), writer = open(path, O_WRONLY);
  const int appender = open(path, O_WRONLY | O_APPEND), source = open("/bin/sh", O_RDONLY);
  expect(write(file, "content", 7) == 7 && pipe(ends) == 0 && write(ends[1], "x", 1) == 1, "write");
  expect(sendfile(reader, source, NULL, 10) < 0 && errno == EBADF, "sendfile to a read-only descriptor");
  expect(lseek(source, 0, SEEK_CUR) == 0, "the position of what was not copied");
  expect(sendfile(reader, file, NULL, 10) < 0 && errno == EBADF, "sendfile from the end");
  expect(sendfile(file, writer, &zero, 10) < 0 && errno == EBADF, "sendfile from a write-only descriptor");
  expect(sendfile(appender, source, &zero, 10) < 0 && errno == EINVAL, "sendfile to one that appends");
  expect(sendfile(file, ends[0], NULL, 1) < 0 && errno == EINVAL, "sendfile from a pipe");
  expect(read(ends[0], &byte, 1) == 1 && byte == 'x', "what the pipe has");
  expect(copy_file_range(source, &zero, reader, NULL, 10, 0) < 0 && errno == EBADF, "copy_file_range");
  expect(copy_file_range(source, &zero, appender, NULL, 10, 0) < 0 && errno == EBADF, "copy_file_range");
  zero = 0;
  expect(sendfile(file, source, &zero, 4) == 4 && zero == 4 && pread(file, &byte, 1, 8) == 1 && byte == 'E',
         "sendfile");
}

static int child_of(int (*work)(const char* path), const char* path) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) _exit(work(path));
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Returns 0 if the whole file, and the bytes from 0 to 10, can be locked, plus 1 and 2 if they cannot. */
static int try_locks(const char* path) {
  const int own = open(path, O_RDWR);
  struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
  int refused = flock(own, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (fcntl(own, F_SETLK, &range) != 0 && (errno == EAGAIN || errno == EACCES)) refused += 2;
  return refused;
}

/* Waits for both locks. Returns 0 when it has them. */
static int wait_for_locks(const char* path) {
  const int own = open(path, O_RDWR);
  const struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
  return flock(own, LOCK_EX) != 0 || fcntl(own, F_SETLKW, &range) != 0;
}

static int lock_and_die(const char* path) {
  if (wait_for_locks(path) == 0) kill(getpid(), SIGKILL);
  return 1;
}

/* Locks must exclude other processes, and end as POSIX and flock(2) say. */
static void test_locks(const char* path) {
  int status = 0;
  file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  expect(write(file, "0123456789", 10) == 10, "write");
  expect(flock(file, LOCK_EX | LOCK_NB) == 0, "flock");
  expect(child_of(try_locks, path) == 1, "flock of another process is refused");
  const int twin = dup(file), reader = open(path, O_RDONLY);
  expect(flock(reader, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK, "flock of another open file");
  expect(flock(twin, LOCK_SH | LOCK_NB) == 0 && flock(reader, LOCK_SH | LOCK_NB) == 0, "shared locks");
  close(file);
  expect(child_of(try_locks, path) == 1, "the lock stays with a duplicate");
  file = twin;
  expect(flock(file, LOCK_UN) == 0 && close(reader) == 0, "unlocking");
  struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -5};
  expect(fcntl(file, F_SETLK, &range) == 0, "fcntl");
  expect(child_of(try_locks, path) == 2, "a range of another process is refused");
  expect(lockf(file, F_TEST, 0) == 0, "lockf of a range that is ours");
  range.l_type = F_RDLCK;
  const int writer = open(path, O_WRONLY);
  expect(fcntl(writer, F_SETLK, &range) < 0 && errno == EBADF, "a read lock without reading");
  const pid_t child = fork();
  if (child == 0) {
    range.l_type = F_RDLCK;
    range.l_whence = SEEK_SET;
    range.l_start = 0;
    const int asked = fcntl(file, F_GETLK, &range);
    _exit(asked != 0 || range.l_type != F_WRLCK || range.l_start != 5 || range.l_len != 0);
  }
  expect(waitpid(child, &status, 0) == child && status == 0, "F_GETLK tells of the range");
  close(writer);
  expect(child_of(try_locks, path) == 0, "a range is free when its process has closed the file");
  expect(flock(file, LOCK_EX) == 0 && lseek(file, 3, SEEK_SET) == 3 && lockf(file, F_LOCK, 4) == 0, "lockf");
  const pid_t waiter = fork();
  if (waiter == 0) _exit(wait_for_locks(path));
  usleep(100000);
  expect(waitpid(waiter, &status, WNOHANG) == 0, "a process waits for a lock");
  expect(flock(file, LOCK_UN) == 0 && lseek(file, 3, SEEK_SET) == 3 && lockf(file, F_ULOCK, 4) == 0,
         "unlocking");
  expect(waitpid(waiter, &status, 0) == waiter && status == 0, "a process that has waited gets the lock");
  expect(child_of(lock_and_die, path) == -1 && child_of(try_locks, path) == 0, "locks of a killed process");
  close(file);
}

static volatile int is_forking = 1;

static void* flush_all(void* stream) {
  while (is_forking) {
    fputs("flushed\n", (FILE*)stream);
    fflush(NULL);
  }
  return NULL;
}

/* Forks while another thread flushes all streams: fork takes locks of libc, too. Each child uses its parent's
 * descriptor. */
static void test_forks(const char* path) {
  enum { children = 300 };
  pthread_t flusher;
  char of_children[200], bytes[children];
  FILE* const stream = fopen(path, "w");
  snprintf(of_children, sizeof(of_children), "children-%s", path);
  file = open(of_children, O_RDWR | O_CREAT | O_TRUNC, 0600);
  pthread_create(&flusher, NULL, flush_all, stream);
  for (int n = 0; n < children; ++n) {
    const char byte = (char)n;
    int status = 0;
    const pid_t child = fork();
    if (child == 0) _exit(pwrite(file, &byte, 1, n) != 1);
    expect(waitpid(child, &status, 0) == child && status == 0, "a child wrote its byte");
  }
  is_forking = 0;
  pthread_join(flusher, NULL);
  expect(fclose(stream) == 0, "fclose");
  expect(pread(file, bytes, children, 0) == children, "the bytes of the children");
  for (int n = 0; n < children; ++n) expect(bytes[n] == (char)n, "the byte of a child");
  expect(close(file) == 0, "close");
}

/* The child of vfork has its parent's memory, and descriptors of its own. */
static void test_vforks(const char* path) {
  struct stat status;
  int wrong = 0;
  const pid_t child = vfork();
  if (child == 0) _exit(stat(path, &status) != 0);
  expect(waitpid(child, &wrong, 0) == child && wrong == 0, "stat between vfork and exec");
  file = open(path, O_RDWR);
  expect(file >= 0 && write(file, "after", 5) == 5 && close(file) == 0, "writing after vfork");
}

/* Calls that no library can take over must fail, and read and write nothing. */
static void test_escapes(const char* path) {
  char byte = 'x', link[64];
  struct stat status;
  file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  expect(write(file, "content", 7) == 7, "write");
  expect(syscall(SYS_write, file, &byte, 1) < 0 && errno == EBADF, "a system call");
  expect(mmap(NULL, 7, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED && errno == EBADF, "mmap");
  expect(syscall(SYS_mmap, NULL, 7, PROT_READ, MAP_SHARED, file, 0) == -1 && errno == EBADF,
         "mmap by a system call");
  snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  expect(syscall(SYS_openat, AT_FDCWD, link, O_RDWR, 0) < 0 && errno == ENXIO,
         "opening /proc/self/fd by a system call");
  const struct iovec part = {&byte, 1};
  expect(preadv2(file, &part, 1, 0, 0) == 1 && byte == 'c', "preadv2");
  expect(preadv2(file, &part, 1, 0, RWF_NOWAIT) < 0 && errno == EOPNOTSUPP, "preadv2 with a flag");
  expect(pwritev2(file, &part, 1, 0, RWF_APPEND) < 0 && errno == EOPNOTSUPP, "pwritev2 with a flag");
  expect(fstat(file, &status) == 0 && status.st_size == 7 && S_ISREG(status.st_mode), "fstat");
  /* Opens the file again by the kernel's name of the descriptor. */
  const int again = open(link, O_RDONLY);
  expect(again >= 0 && read(again, &byte, 1) == 1 && byte == 'c', "opening /proc/self/fd");
  close(again);
  /* A program that closes all descriptors must not close those that the library needs. */
  for (int n = 3; n < 70000; ++n)
    if (n != file) close(n);
  expect(pwrite(file, "C", 1, 0) == 1 && fsync(file) == 0, "after all was closed");
  expect(close(file) == 0, "close");
}

static void write_until_killed(int begun) {
  char bytes[3000];
  memset(bytes, 'k', sizeof(bytes));
  for (int round = 0;; ++round) {
    for (off_t at = 0; at < 60000; at += 3000)
      if (pwrite(file, bytes, sizeof(bytes), at) != (ssize_t)sizeof(bytes)) _exit(1);
    if (round == 0 && write(begun, "", 1) != 1) _exit(1);
  }
}

/* Processes that are killed while they write must not block others that use the same pages. */
static void test_killed_writers(const char* path) {
  char bytes[3000];
  int begun[2], status = 0;
  file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  expect(pipe(begun) == 0, "pipe");
  for (int n = 0; n < 60; ++n) {
    const pid_t child = fork();
    if (child == 0) write_until_killed(begun[1]);
    expect(read(begun[0], bytes, 1) == 1, "the pipe");
    usleep((useconds_t)(1000 + 300 * (n % 7)));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    expect(WIFSIGNALED(status), "a child wrote until it was killed");
    for (int each = 0; each < 20; ++each)
      expect(pread(file, bytes, sizeof(bytes), each * 3000) >= 0, "pread");
  }
  expect(pread(file, bytes, sizeof(bytes), 0) == 3000 && bytes[0] == 'k' && bytes[2999] == 'k',
         "what was written before kills");
  expect(pwrite(file, "whole", 5, 60000) == 5 && fsync(file) == 0 && close(file) == 0, "after kills");
}

enum { appenders = 6, lines = 4000, block = 1 << 20 };
static const double longest_s = 20;

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void append_lines(const char* path, int who) {
  char line[3000];
  memset(line, 'a' + who, sizeof(line));
  const int own = open(path, O_WRONLY | O_APPEND);
  for (int n = 0; n < lines; ++n)
    if (write(own, line, (size_t)(20 + 97 * (n % 30))) < 0) _exit(1);
  _exit(close(own) != 0);
}

/* Returns how many of the children end before the time is over. */
static int ended(const pid_t* children, int count) {
  const double begin = now_s();
  int found = 0, status = 0;
  for (int n = 0; n < count; ++n) {
    pid_t pid = 0;
    while ((pid = waitpid(children[n], &status, WNOHANG)) == 0 && now_s() - begin < longest_s) usleep(2000);
    found += pid == children[n];
    if (pid == 0) kill(children[n], SIGKILL);
    if (pid == 0) waitpid(children[n], &status, 0);
  }
  return found;
}

/* Kills processes that wait for a lock. The wake-ups of the other waiters must not be lost. */
static void test_killed_appenders(const char* path) {
  for (int round = 0; round < 20 && failures == 0; ++round) {
    pid_t children[appenders];
    file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int who = 0; who < appenders; ++who)
      if ((children[who] = fork()) == 0) append_lines(path, who);
    for (int who = 0; who < appenders / 2; ++who) {
      usleep((useconds_t)(3000 + 1000 * (round % 8)));
      kill(children[who], SIGKILL);
    }
    expect(ended(children, appenders) == appenders, "processes append while others are killed");
    close(file);
  }
}

static off_t size_of_file(void) {
  struct stat status;
  return fstat(file, &status) == 0 ? status.st_size : -1;
}

static void write_blocks(const char* path, int who) {
  static char bytes[block];
  memset(bytes, 'a' + who, sizeof(bytes));
  /* The children share the parent's position if they get no name. */
  const int own = path != NULL ? open(path, O_WRONLY | O_APPEND) : file;
  for (;;)
    if (size_of_file() > 300 * block)
      usleep(1000);
    else if (write(own, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes))
      _exit(1);
}

/* While one of three processes is stopped, the other two must go on writing, and each write must stay whole.
 */
static void stop_some(const char* path) {
  static char bytes[block];
  pid_t children[3];
  for (int who = 0; who < 3; ++who)
    if ((children[who] = fork()) == 0) write_blocks(path, who);
  for (int stop = 0; stop < 12; ++stop) {
    usleep(30000);
    kill(children[stop % 3], SIGSTOP);
    expect(ftruncate(file, 0) == 0 && (path != NULL || lseek(file, 0, SEEK_SET) == 0), "ftruncate");
    const double begin = now_s();
    while (size_of_file() < 8 * block && now_s() - begin < longest_s) usleep(2000);
    expect(size_of_file() >= 8 * block, "processes write while another one is stopped");
    kill(children[stop % 3], SIGCONT);
  }
  usleep(100000);
  for (int who = 0; who < 3; ++who) kill(children[who], SIGTERM);
  expect(ended(children, 3) == 3, "the children end");
  for (off_t at = 0; path != NULL && at + block <= size_of_file(); at += block) {
    expect(pread(file, bytes, block, at) == block, "pread");
    expect(bytes[0] != 0 && !memcmp(bytes, bytes + 1, block - 1), "a block is whole");
  }
}

/* Stops a process while it copies to a page, and later lets it go on. */
static void stop_in_page(void) {
  static char bytes[3 * block];
  char text[8];
  memset(bytes, 'p', sizeof(bytes));
  const pid_t child = fork();
  while (child == 0)
    if (pwrite(file, bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) _exit(1);
  for (int stop = 0; stop < 8; ++stop) {
    usleep(20000);
    kill(child, SIGSTOP);
    const double begin = now_s();
    expect(pwrite(file, "parent", 6, sizeof(bytes) + 8 * stop) == 6 && pread(file, text, 1, 0) == 1 &&
               fsync(file) == 0 && now_s() - begin < longest_s,
           "writing to the page of a process that is stopped");
    kill(child, SIGCONT);
  }
  usleep(100000);
  kill(child, SIGTERM);
  expect(ended(&child, 1) == 1 && pread(file, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes) &&
             bytes[0] == 'p' && !memcmp(bytes, bytes + 1, sizeof(bytes) - 1),
         "the bytes of the stopped process");
  for (int stop = 0; stop < 8; ++stop)
    expect(pread(file, text, 6, sizeof(bytes) + 8 * stop) == 6 && !memcmp(text, "parent", 6),
           "bytes beside those of the stopped process");
}

static void test_stopped_writers(const char* path) {
  file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  stop_in_page();
  expect(ftruncate(file, 0) == 0, "ftruncate");
  stop_some(path);
  expect(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0, "ftruncate");
  stop_some(NULL);
  expect(close(file) == 0, "close");
}

/* Several processes use more pages than there are frames, each its own bytes of every page, so that a page
 * may lose its frame at any moment. Returns how many values are wrong. */
static int wrong_of(int who) {
  enum { crowd = 3, places = 400, steps = 12000 };
  static int values[places];
  unsigned draw = (unsigned)who + 1;
  int wrong = 0;
  for (int step = 0; step < steps; ++step) {
    const int place = (int)((unsigned)rand_r(&draw) % places);
    const off_t at = ((off_t)place * crowd + who) * 500;
    int value = crowd * step + who;
    if (step < places || step % 2 == 0) {
      wrong += pwrite(file, &value, sizeof(value), at) != sizeof(value);
      values[place] = value;
    } else if (values[place] != 0) {
      wrong += pread(file, &value, sizeof(value), at) != sizeof(value) || value != values[place];
    }
  }
  return wrong;
}

static void test_crowd(const char* path) {
  int status = 0;
  file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  for (int who = 0; who < 3; ++who)
    if (fork() == 0) _exit(wrong_of(who) != 0);
  while (wait(&status) > 0)
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child found what it had written");
  expect(close(file) == 0, "close");
}

int main(int argc, char** argv) {
  static const struct {
    const char* word;
    void (*test)(const char* path);
  } tests[] = {{"threads", test_threads},
               {"stdio", test_stdio},
               {"more_stdio", test_more_stdio},
               {"forks", test_forks},
               {"vforks", test_vforks},
               {"escapes", test_escapes},
               {"killed_writers", test_killed_writers},
               {"growing", test_growing},
               {"copying", test_copying},
               {"locks", test_locks},
               {"killed_appenders", test_killed_appenders},
               {"stopped_writers", test_stopped_writers},
               {"crowd", test_crowd}};
  for (size_t n = 0; argc > 2 && n < sizeof(tests) / sizeof(tests[0]); ++n) {
    if (strcmp(argv[1], tests[n].word) != 0) continue;
    tests[n].test(argv[2]);
    return failures != 0;
  }
  return 2;
}
