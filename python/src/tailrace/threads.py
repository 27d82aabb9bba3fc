# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Decodes messages at the same time in several threads: ecCodes releases Python's global lock while it works."""
from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
_guard = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def _cores() -> int:
    return max(1, min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))


def _forget() -> None:
    # The threads of a pool do not exist in a forked child.
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def side_by_side(function: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """Returns the results of the function, in the order of the things. Raises the first error. The function must not
    call side_by_side: it could wait for itself."""
    global _pool
    each = list(things)
    if len(each) < 2 or _cores() == 1:
        return [function(one) for one in each]
    with _guard:
        if _pool is None:
            _pool = ThreadPoolExecutor(_cores(), "tailrace")
        pool = _pool
    return list(pool.map(function, each))
