/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Programs for DONIO: the calls of tailrace/donio.h do what they did, and refuse what they refused. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <tailrace/donio.h>
#include <unistd.h>

enum { PIECES = 300, PIECE = 32, BYTES = PIECES * PIECE };

static int rank, ranks, failures;

static void check(int holds, const char* what) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "FAILED on rank %d: %s (%s)\n", rank, what, tr_error());
}

/* Checks that a call failed, and that its text has `part`. */
static void refused(int code, const char* part) {
  check(code == -1, part);
  if (code == -1) check(strstr(tr_error(), part) != NULL, part);
}

static void fill(int piece, int seed, char* to) {
  for (int i = 0; i < PIECE; ++i) to[i] = (char)(seed + piece * 7 + i);
}

/* Returns a file's size on rank 0, and what is expected on the others. */
static long long size_on_disk(const char* name, long long expected) {
  struct stat known;
  if (rank != 0) return expected;
  return stat(name, &known) == 0 ? (long long)known.st_size : -1;
}

/* Pieces are dealt to the ranks in turn. */
static void write_pieces(int fd, int seed) {
  char piece[PIECE];
  for (int i = rank; i < PIECES; i += ranks) {
    fill(i, seed, piece);
    check(do_lseek(fd, i * PIECE, SEEK_SET) == i * PIECE, "do_lseek to a piece");
    check(do_write(fd, piece, PIECE) == PIECE, "do_write");
  }
}

/* Every rank reads pieces that another one has written. */
static void read_pieces(int fd, int seed) {
  char piece[PIECE], expected[PIECE];
  for (int i = (rank + 1) % ranks; i < PIECES; i += ranks) {
    fill(i, seed, expected);
    check(do_lseek(fd, i * PIECE, SEEK_SET) == i * PIECE, "do_lseek to a piece");
    check(do_read(fd, piece, PIECE) == PIECE, "do_read");
    check(memcmp(piece, expected, PIECE) == 0, "what another rank has written");
    check(do_lseek(fd, 0, SEEK_CUR) == (i + 1) * PIECE, "do_read moves the position");
  }
}

static void write_file(const char* name, int flags, int seed) {
  const int fd = do_open(name, flags, 0644);
  check(fd >= 0, "do_open for writing");
  check(do_lsize(fd, BYTES) == BYTES, "do_lsize");
  write_pieces(fd, seed);
  check(do_close(fd) == 0, "do_close");
  check(size_on_disk(name, BYTES) == BYTES, "the size of the file");
}

static void read_file(const char* name, int seed) {
  const int fd = do_open(name, DO_RDONLY, 0);
  check(fd >= 0, "do_open for reading");
  read_pieces(fd, seed);
  check(do_close(fd) == 0, "do_close");
}

static void nothing_goes_before_do_nio(void) {
  refused(do_open("none.bin", DO_RDONLY, 0), "do_nio comes first");
  refused(do_close(3), "do_nio comes first");
  /* One rank alone is wrong, and all are refused. */
  refused(do_nio(rank, ranks + (rank == ranks - 1)), "MPI_Comm_rank");
  refused(do_open("none.bin", DO_RDONLY, 0), "do_nio comes first");
  check(do_nio(rank, ranks) == 0, "do_nio");
  check(do_gsync() == 0, "do_gsync"); /* on several nodes: files are opened */
  refused(do_nio(rank, ranks), "called already");
}

static void files_are_written_and_read(void) {
  write_file("pieces.bin", DO_WRONLY | DO_CREAT, 1);
  read_file("pieces.bin", 1);
}

/* Smaller and larger than was said. The file ends behind the highest byte that was written. */
static void the_size_is_a_hint(void) {
  static const int said[] = {0, PIECE, 100 * BYTES};
  for (int i = 0; i < 3; ++i) {
    const int fd = do_open("hint.bin", DO_WRONLY | DO_CREAT, 0644);
    check(do_lsize(fd, said[i]) == said[i], "do_lsize returns what it was told");
    write_pieces(fd, i);
    check(do_flush(fd) == 0, "do_flush");
    check(do_lseek(fd, 0, SEEK_END) == BYTES, "do_lseek tells the size");
    check(size_on_disk("hint.bin", BYTES) == BYTES, "the size after do_flush");
    check(do_close(fd) == 0, "do_close");
    check(size_on_disk("hint.bin", BYTES) == BYTES, "the size after do_close");
    read_file("hint.bin", i);
  }
}

static void bytes_that_nobody_wrote_are_zeros(void) {
  char bytes[PIECE], zeros[PIECE] = {0};
  int fd = do_open("gap.bin", DO_WRONLY | DO_CREAT, 0644);
  do_lsize(fd, BYTES);
  check(do_lseek(fd, BYTES - PIECE, SEEK_SET) == BYTES - PIECE, "do_lseek behind the end");
  if (rank == 0) check(do_write(fd, zeros, PIECE) == PIECE, "do_write behind the end");
  check(do_close(fd) == 0, "do_close");
  fd = do_open("gap.bin", DO_RDONLY, 0);
  memset(bytes, 1, sizeof bytes);
  check(do_read(fd, bytes, PIECE) == PIECE && memcmp(bytes, zeros, PIECE) == 0, "zeros in a gap");
  check(do_close(fd) == 0, "do_close");
}

static void wrong_calls_are_refused(void) {
  char bytes[PIECE] = {0};
  int fd = do_open("pieces.bin", DO_RDONLY, 0);
  refused(do_lsize(fd, BYTES), "opened for reading only");
  refused(do_write(fd, bytes, PIECE), "opened for reading only");
  check(do_lseek(fd, 8 - BYTES, SEEK_END) == 8, "do_lseek from the end");
  refused(do_lseek(fd, -9, SEEK_CUR), "begin");
  refused(do_lseek(fd, 0, 3), "whence");
  check(do_lseek(fd, INT_MAX, SEEK_SET) == INT_MAX, "do_lseek to the last position");
  refused(do_lseek(fd, 1, SEEK_CUR), "does not fit");
  check(do_lseek(fd, 0, SEEK_CUR) == INT_MAX, "nothing moves");
  check(do_lseek(fd, BYTES - 8, SEEK_SET) == BYTES - 8, "do_lseek");
  refused(do_read(fd, bytes, 9), "8 bytes");
  check(do_lseek(fd, 0, SEEK_CUR) == BYTES - 8, "nothing moves past the end");
  check(do_read(fd, bytes, 8) == 8 && do_read(fd, bytes, 0) == 0, "do_read up to the end");
  refused(do_read(fd, bytes, 1), "0 bytes");
  refused(do_read(fd, NULL, 1), "null pointer");
  refused(do_read(fd, bytes, -1), "below 0");
  check(do_close(fd) == 0, "do_close");
  refused(do_close(fd), "not the descriptor");
  refused(do_read(-1, bytes, 1), "not the descriptor");
  fd = do_open("wrong.bin", DO_WRONLY | DO_CREAT, 0644);
  refused(do_write(fd, bytes, PIECE), "do_lsize comes before");
  check(do_lsize(fd, BYTES) == BYTES, "do_lsize");
  refused(do_read(fd, bytes, 1), "opened for writing only");
  refused(do_lsize(fd, -1), "below 0");
  check(do_close(fd) == 0, "do_close");
  check(size_on_disk("wrong.bin", 0) == 0, "nothing was written");
}

static void flags_are_those_of_both_systems(void) {
  refused(do_open("missing.bin", DO_RDONLY, 0), "No such file");
  refused(do_open("missing.bin", DO_WRONLY, 0), "DO_CREAT");
  refused(do_open("missing.bin", DO_RDWR, 0), "DO_CREAT");
  refused(do_open("missing/directory.bin", DO_WRONLY | DO_CREAT, 0644), "No such file");
  refused(do_open("pieces.bin", DO_RDONLY | DO_CREAT, 0), "only read");
  refused(do_open("pieces.bin", 3, 0), "flags 3");
  refused(do_open("pieces.bin", O_WRONLY | O_APPEND, 0), "flags");
  refused(do_open(NULL, DO_RDONLY, 0), "null pointer");
  check(size_on_disk("missing.bin", -1) == -1, "nothing was made");
  write_file("pieces.bin", DO_WRONLY, 2);
  write_file("pieces.bin", O_WRONLY | O_CREAT, 3);
  write_file("pieces.bin", O_WRONLY | O_CREAT | O_TRUNC, 4);
  read_file("pieces.bin", 4);
  int fd = do_open("pieces.bin", DO_RDWR | DO_CREAT, 0644);
  check(do_lseek(fd, 0, SEEK_END) == BYTES, "DO_RDWR leaves what is there");
  read_pieces(fd, 4);
  check(do_lsize(fd, BYTES) == BYTES, "do_lsize");
  check(do_gsync() == 0, "do_gsync");
  write_pieces(fd, 5);
  check(do_gsync() == 0, "do_gsync");
  read_pieces(fd, 5);
  check(do_close(fd) == 0, "do_close");
  fd = do_open("pieces.bin", O_RDWR | O_CREAT | O_TRUNC, 0644);
  check(do_lseek(fd, 0, SEEK_END) == 0, "O_TRUNC in the company of O_CREAT empties");
  check(do_close(fd) == 0, "do_close");
  check(size_on_disk("pieces.bin", 0) == 0, "an empty file");
}

/* Neither a file that is only read nor one to which nothing was written is touched. */
static void unchanged_files_are_not_touched(void) {
  static const int flags[] = {DO_RDONLY, DO_RDWR};
  struct stat before, after;
  write_file("still.bin", DO_WRONLY | DO_CREAT, 6);
  for (int i = 0; i < 2; ++i) {
    stat("still.bin", &before);
    usleep(20000);
    const int fd = do_open("still.bin", flags[i], 0);
    read_pieces(fd, 6);
    check(do_flush(fd) == 0, "do_flush");
    check(do_close(fd) == 0, "do_close");
    stat("still.bin", &after);
    check(before.st_mtim.tv_sec == after.st_mtim.tv_sec && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec,
          "an unchanged file keeps its time");
  }
}

static void new_files_get_their_permissions(void) {
  struct stat known;
  const mode_t umask_before = umask(027);
  int fd = do_open("mode.bin", DO_WRONLY | DO_CREAT, 0664);
  check(do_close(fd) == 0, "do_close");
  check(stat("mode.bin", &known) == 0 && (known.st_mode & 0777) == 0640, "mode, less the umask");
  fd = do_open("mode.bin", DO_WRONLY | DO_CREAT, 0600);
  check(do_close(fd) == 0, "do_close");
  check(stat("mode.bin", &known) == 0 && (known.st_mode & 0777) == 0640, "a file that exists keeps its mode");
  umask(umask_before);
  fd = do_open("mode0.bin", DO_RDWR | DO_CREAT, 0040);
  check(fd >= 3 && do_close(fd) == 0, "all ranks open a file that its owner may not open afterwards");
  check(stat("mode0.bin", &known) == 0 && (known.st_mode & 0777) == 0040, "the owner gets what mode says");
}

/* Nobody opens the file in a moment in which it has more permissions than mode says. */
static void new_files_never_have_other_permissions(void) {
  char events[4096];
  const int watch = inotify_init1(IN_NONBLOCK);
  inotify_add_watch(watch, ".", IN_ATTRIB);
  const int fd = do_open("mode1.bin", DO_WRONLY | DO_CREAT, 0600);
  check(do_close(fd) == 0, "do_close");
  check(read(watch, events, sizeof events) < 0, "no chmod follows the creation");
  close(watch);
  struct stat known;
  check(stat("mode1.bin", &known) == 0 && (known.st_mode & 0777) == 0600, "mode");
}

static void descriptors_are_used_again(void) {
  const int first = do_open("still.bin", DO_RDONLY, 0);
  const int second = do_open("still.bin", DO_RDONLY, 0);
  check(first >= 3 && second > first, "descriptors");
  check(do_close(first) == 0, "do_close");
  check(do_open("still.bin", DO_RDONLY, 0) == first, "the lowest free one");
  check(do_lseek(second, 0, SEEK_CUR) == 0 && do_lseek(second, 5, SEEK_SET) == 5, "positions are apart");
  check(do_lseek(first, 0, SEEK_CUR) == 0, "positions are apart");
  check(do_close(first) == 0 && do_close(second) == 0, "do_close");
}

static void remove_files(void) {
  static const char* const names[] = {"pieces.bin", "hint.bin", "gap.bin",     "wrong.bin", "still.bin",
                                      "mode.bin",   "left.bin", "missing.bin", "mode0.bin", "mode1.bin"};
  for (size_t i = 0; rank == 0 && i < sizeof names / sizeof *names; ++i) unlink(names[i]);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  remove_files();
  nothing_goes_before_do_nio();
  files_are_written_and_read();
  the_size_is_a_hint();
  bytes_that_nobody_wrote_are_zeros();
  wrong_calls_are_refused();
  flags_are_those_of_both_systems();
  unchanged_files_are_not_touched();
  new_files_get_their_permissions();
  new_files_never_have_other_permissions();
  descriptors_are_used_again();
  /* A session may also end before, and another one begin. */
  check(tr_finalize() == TR_OK, "tr_finalize");
  refused(do_open("still.bin", DO_RDONLY, 0), "do_nio comes first");
  check(do_nio(rank, ranks) == 0 && do_gsync() == 0, "do_nio");
  /* MPI_Finalize closes what is left open, and ends the session. */
  const int fd = do_open("left.bin", DO_WRONLY | DO_CREAT, 0644);
  do_lsize(fd, BYTES);
  write_pieces(fd, 7);
  MPI_Finalize();
  check(size_on_disk("left.bin", BYTES) == BYTES, "a file that was left open");
  return failures != 0;
}
