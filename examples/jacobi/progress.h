/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Shows how far the iteration is: a bar that is redrawn on a terminal, a line for each tenth otherwise. */
#ifndef JACOBI_PROGRESS_H
#define JACOBI_PROGRESS_H

/* `how`: auto, bar, lines or none. */
void progress_start(const char* how);
void progress_show(long iteration, long iterations);

#endif
