/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A program as of 1994, which declares the functions that it calls itself. */
#include <fcntl.h>
#include <tailrace/donio.h>
#ifndef __cplusplus
int do_nio();
int do_close(int fd);
#endif

int main(void) {
  char name[] = "elements.bin";
  int numbers[8] = {0};
  int fd;
  if (do_nio(0, 1) != 0) return 1;
  fd = do_open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  do_lsize(fd, 32);
  do_lseek(fd, 0, 0);
  do_write(fd, (char*)numbers, 32);
  do_read(fd, (char*)numbers, 32);
  do_flush(fd);
  return do_close(fd);
}
