/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The contents of the pieces: columns of an element list, or numbers. */
#ifndef BENCH_CONTENT_H
#define BENCH_CONTENT_H

/* A hexahedral grid of nx * ny * nz vertices: a piece is the column of nz - 1 elements of 8 vertex numbers,
 * four bytes each. Or, with nx == 0, pieces of `bytes` bytes. */
struct content {
  long nx, ny, nz;
  long bytes;
};

/* Makes piece `number` (from 0) in `words`. Of numbered pieces only the first word is set: the others are the
 * same in all pieces, and were set by prepare_piece. */
void fill_piece(const struct content* content, long number, int* words);
/* Sets the words that all numbered pieces have in common. */
void prepare_piece(const struct content* content, int* words);
/* Returns the first word of piece `number`. */
int first_word(const struct content* content, long number);

#endif
