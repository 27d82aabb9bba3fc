# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Translates programs with directives of DVM into programs with MPI and Tailrace."""
